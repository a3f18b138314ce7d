package till

import (
	"math/bits"
	"strconv"
	"strings"
)

// Money is an exact amount in minor units of a currency. It is never a float:
// a sum that is off by one minor unit is somebody's money.
type Money struct {
	Minor    int64
	Currency string // ISO 4217
}

// Value returns the minor units as the API writes them.
func (m Money) Value() string { return strconv.FormatInt(m.Minor, 10) }

// IsZero reports whether the money is unset. Nothing of a named currency is
// not unset: an operator that says it moved "0 XAF" has said something.
func (m Money) IsZero() bool { return m == Money{} }

// MaxMinor is the largest amount that is read: fifteen digits, which every
// JSON reader in the world keeps exactly and whose sums stay inside an int64.
const MaxMinor = 999_999_999_999_999

const maxMinorDigits = 15

// ParseMinor reads an amount in minor units: "0", or one to fifteen ASCII
// digits without a leading zero. Anything else is refused rather than
// understood: strconv would take "+5" and "007", and two texts for one amount
// would be two bodies under one idempotency key.
func ParseMinor(s string) (int64, bool) {
	if s == "" || len(s) > maxMinorDigits || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// CurrencyDecimals returns how many decimals ISO 4217 gives a currency: all
// that are used in Africa, and those in which operators keep accounts. An
// operator may express fewer; that is the Step of a Market. MGA and MRU have
// two although their subunit is a fifth. Withdrawn codes (SLL, ZWL) are absent.
func CurrencyDecimals(code string) (int, bool) {
	switch code {
	case "BIF", "DJF", "GNF", "KMF", "RWF", "UGX", "XAF", "XOF",
		"JPY":
		return 0, true
	case "AOA", "BWP", "CDF", "CVE", "DZD", "EGP", "ERN", "ETB", "GHS", "GMD",
		"KES", "LRD", "LSL", "MAD", "MGA", "MRU", "MUR", "MWK", "MZN", "NAD",
		"NGN", "SCR", "SDG", "SHP", "SLE", "SOS", "SSP", "STN", "SZL", "TZS",
		"ZAR", "ZMW", "ZWG",
		"AED", "AUD", "BRL", "CAD", "CHF", "CNY", "EUR", "GBP", "INR", "SAR",
		"TRY", "USD":
		return 2, true
	case "LYD", "TND",
		"BHD", "KWD", "OMR":
		return 3, true
	}
	return 0, false
}

// Quantity is an exact decimal number greater than zero, coef / 10^scale,
// without trailing zeros: two quantities of the same value are ==.
type Quantity struct {
	coef  uint64
	scale uint8
}

// The most digits that a quantity has before and after its point. Together
// they fit a uint64, so no literal can make the reader allocate.
const (
	maxQuantityWhole    = 12
	maxQuantityFraction = 6
)

// ParseQuantity reads a JSON number literal without an exponent, greater than
// zero, with at most twelve digits before and six after the point.
func ParseQuantity(literal string) (Quantity, bool) {
	whole, fraction, point := strings.Cut(literal, ".")
	if whole == "" || len(whole) > maxQuantityWhole || whole[0] == '0' && len(whole) > 1 {
		return Quantity{}, false
	}
	if point && fraction == "" || len(fraction) > maxQuantityFraction {
		return Quantity{}, false
	}
	var q Quantity
	for _, digits := range [2]string{whole, fraction} {
		for i := range len(digits) {
			if digits[i] < '0' || digits[i] > '9' {
				return Quantity{}, false
			}
			q.coef = q.coef*10 + uint64(digits[i]-'0')
		}
	}
	q.scale = uint8(len(fraction))
	for q.scale > 0 && q.coef%10 == 0 {
		q.coef /= 10
		q.scale--
	}
	return q, q.coef > 0
}

// Gives reports whether q times unitPrice is exactly total. Both sides are
// multiplied out to 128 bits, so that nothing is rounded and nothing wraps.
func (q Quantity) Gives(unitPrice, total int64) bool {
	if unitPrice < 0 || total < 0 || q.coef == 0 {
		return false
	}
	scale := uint64(1)
	for range q.scale {
		scale *= 10
	}
	hi, lo := bits.Mul64(q.coef, uint64(unitPrice))
	wantHi, wantLo := bits.Mul64(uint64(total), scale)
	return hi == wantHi && lo == wantLo
}

// addMinor adds two amounts. It reports false if either is negative or the
// sum does not fit: rows read back from a database may hold anything.
func addMinor(a, b int64) (int64, bool) {
	sum := a + b
	return sum, a >= 0 && b >= 0 && sum >= 0
}
