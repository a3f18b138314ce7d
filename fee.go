package till

// FeeKind says what a fee is taken for.
type FeeKind string

// The kinds of fees.
const (
	PaymentFee FeeKind = "payment" // taken when a customer's money came in
	PayoutFee  FeeKind = "payout"  // taken on top of what a recipient gets
	RefundFee  FeeKind = "refund"  // taken on top of what a customer gets back
)

// Valid reports whether k is one of the kinds.
func (k FeeKind) Valid() bool { return k == PaymentFee || k == PayoutFee || k == RefundFee }

// Fee is what the service takes from a client for each payment, payout or refund by a
// method in a currency: a flat amount and a part of the whole. It is off
// until somebody sets it.
type Fee struct {
	Kind        FeeKind
	Method      string
	Currency    string
	Flat        int64 // minor units, 0 to MaxMinor
	BasisPoints int64 // hundredths of a percent, 0 to MaxBasisPoints
}

// MaxBasisPoints is the whole of an amount.
const MaxBasisPoints = 10_000

// Of returns the fee on an amount in minor units, at most MaxMinor. The part
// is rounded to the nearest minor unit, and half of one up: 1.5 % of 5 100 is
// 76.5, and so 77. The sum is never more than the amount itself.
func (f Fee) Of(amount int64) int64 {
	// The whole ten thousands have no remainder, so only the rest is rounded;
	// and amount * BasisPoints might not fit.
	whole, rest := amount/MaxBasisPoints, amount%MaxBasisPoints
	part := whole*f.BasisPoints + (rest*f.BasisPoints+MaxBasisPoints/2)/MaxBasisPoints
	return min(f.Flat+part, amount)
}

// FeeFor returns the fee on an amount by a client's schedule: nothing where
// the schedule does not name the kind, method and currency.
func FeeFor(schedule []Fee, kind FeeKind, method string, m Money) int64 {
	for i := range schedule {
		if f := &schedule[i]; f.Kind == kind && f.Method == method && f.Currency == m.Currency {
			return f.Of(m.Minor)
		}
	}
	return 0
}
