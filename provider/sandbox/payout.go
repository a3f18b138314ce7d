package sandbox

import (
	"context"
	"strings"
	"time"

	"till"
	"till/provider"
)

// Payouts is the sandbox as payouts see it: the same book, other stories.
type Payouts struct{ o *Operator }

var (
	_ provider.Provider    = Payouts{}
	_ provider.Delayer     = Payouts{}
	_ provider.ClaimReader = Payouts{}
	_ provider.Refunder    = Payouts{}
)

// Payouts returns the provider for payouts.
func (o *Operator) Payouts() Payouts { return Payouts{o} }

// Submit accepts a request, and its phone number's story begins.
func (p Payouts) Submit(ctx context.Context, q provider.Request) (provider.Result, error) {
	return p.o.submit(ctx, kindOf(q), q)
}

// kindOf says whether a request gives a payment back.
func kindOf(q provider.Request) kind {
	if q.PaymentID.IsZero() {
		return payout
	}
	return refund
}

// CanRefund implements provider.Refunder. Payments of numbers that end in 0036 are given back by
// a transfer, as where an operator has no such call.
func (p Payouts) CanRefund(o provider.Original, amount till.Money) bool {
	return o.Holds(amount) && !strings.HasSuffix(o.Phone, noRefundCall)
}

// Check returns the state of the request with the reference.
func (p Payouts) Check(ctx context.Context, q provider.Query) (provider.Result, error) {
	return p.o.Check(ctx, q)
}

// ReadClaim implements provider.ClaimReader.
func (p Payouts) ReadClaim(body []byte) (provider.Claim, bool) { return p.o.ReadClaim(body) }

// Traits returns the same traits as for payments. The window is how long a payout may wait
// to be sent.
func (p Payouts) Traits() provider.Traits {
	t := p.o.Traits()
	t.RefundsBounded = true
	return t
}

// Fingerprint names the account: there is one sandbox.
func (p Payouts) Fingerprint() string { return p.o.Fingerprint() }

// SendDelay delays payouts that a tester wants to cancel.
func (p Payouts) SendDelay(r provider.Request) time.Duration {
	if storyOf(kindOf(r), r.Phone) == heldBack {
		return heldBackDelay
	}
	return 0
}

// Credit is money that arrived in a recipient's wallet.
type Credit struct {
	Payout    till.ID
	Reference till.ID
	Amount    till.Money
	At        till.Time
}

// Credits returns every credit up to this moment, as Debits does the debits.
func (o *Operator) Credits(ctx context.Context) ([]Credit, error) {
	moved, err := o.movements(ctx, true)
	credits := make([]Credit, len(moved))
	for i, d := range moved {
		credits[i] = Credit{d.Payment, d.Reference, d.Amount, d.At}
	}
	return credits, err
}
