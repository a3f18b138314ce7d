package provider

import (
	"context"

	"till"
)

// Original is a payment that is given back by naming it.
type Original struct {
	Reference till.ID // under which the payment was sent
	Method    string
	Country   string
	Phone     string // "" if the person's data was erased
	Amount    till.Money
}

// Holds reports whether an amount is a part of the payment, or all of it.
func (o *Original) Holds(amount till.Money) bool {
	return amount.Currency == o.Amount.Currency && amount.Minor > 0 && amount.Minor <= o.Amount.Minor
}

// Refunder is a provider of payouts whose operator gives a payment back by a call that names
// it. The payment is one of the same connection.
type Refunder interface {
	Provider
	// CanRefund reports whether an amount of a payment can be given back by that call. It asks
	// nobody, and the answer never changes: a refund that was lost and is made again takes the
	// same road.
	CanRefund(o Original, amount till.Money) bool
}

// RefundTester is a Refunder that can test whether the account may give payments back, without
// moving money, for 'till doctor'.
type RefundTester interface {
	// TestRefunds returns nil if it may. Its error says what is wrong and what to do.
	TestRefunds(ctx context.Context) error
}

// OriginalState is what an operator's answer about a refund shows of the payment; "" if
// nothing.
type OriginalState string

// The states.
const (
	// RefundedElsewhere: it has been given back, or is being, by somebody else: in the
	// operator's portal, say.
	RefundedElsewhere OriginalState = "refunded_elsewhere"
	// NotPaidThere: the operator does not know the payment, or not as one that succeeded.
	NotPaidThere OriginalState = "not_paid"
)
