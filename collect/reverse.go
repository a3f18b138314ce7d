package collect

import (
	"context"
	"fmt"
	"strconv"

	"till"
	"till/engine"
	"till/ledger"
	"till/store"
	"till/store/refunds"
)

// OnReversal applies the operator's answer that it took a payment's money back. It is
// recorded once, whatever the wallet holds. The status stays, because the money did come
// in. Before anything was credited it is a failure like any other.
func (b *rules) OnReversal(ctx context.Context, p *store.PaymentRow, a *engine.Answer) error {
	switch {
	case !p.Credited() && a.Action == engine.Resolve:
		a.RecordErr = till.Errorf(till.CodeValidationFailed, "the payment's money was never credited")
		return nil
	case !p.Credited():
		return b.OnFailure(ctx, p, a)
	case p.ReversedEvent != 0:
		if a.Action == engine.Resolve { // it was reversed already: its case is closed
			b.RecordResolution(p, a)
		}
		return nil
	}
	if a.Action != engine.Resolve {
		if why := b.Mismatch(p, a); !why.IsZero() {
			b.OpenCase(p, engine.CaseMismatch, why.Then(till.ThenNotDebited))
			return nil
		}
	}

	w, err := b.Wallet(ctx, p.ClientID, p.Amount.Currency)
	if err != nil {
		return err
	}
	head := b.Heads[p.ClientID]
	p.UpdatedAt, p.ReversedEvent = head.NextTime(), head.NextEvent()
	b.AddEvent(p, till.PaymentReversed, p.ReversedEvent)
	e := ledger.Reverse(&p.Payment, w.Available())
	e.CreatedAt = p.UpdatedAt
	before := *w
	if err := b.ApplyEntry(w, &e); err != nil {
		return err
	}
	b.Fact(p, store.FactReversal, &e)
	if err := b.alsoRefunded(ctx, p); err != nil {
		return err
	}
	if a.Action == engine.Resolve { // a person knows already
		b.RecordResolution(p, a)
		return nil
	}
	b.OpenCase(p, engine.CaseReversed, till.Because(till.ReasonReversed,
		fmt.Sprintf("%d %s", before.Balance-w.Balance, w.Currency), strconv.FormatInt(w.Owed-before.Owed, 10)))
	return nil
}

// alsoRefunded opens a case if the customer was refunded what the operator has taken back, or
// is about to be. A person gets it back from one of the two.
func (b *rules) alsoRefunded(ctx context.Context, p *store.PaymentRow) error {
	ref := store.Ref{Client: p.ClientID, ID: p.ID}
	sums, err := refunds.Sums(ctx, b.Tx, []store.Ref{ref})
	if s := sums[ref]; err == nil && s.Refunding+s.Refunded+s.Late > 0 {
		b.OpenCase(p, engine.CaseRefundedAndReversed, engine.WhyRefundedAndReversed(s, p.Amount))
	}
	return err
}
