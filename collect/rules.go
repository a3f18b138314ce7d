package collect

import (
	"context"
	"fmt"

	"till"
	"till/engine"
	"till/ledger"
	"till/provider"
	"till/store"
	"till/store/matching"
)

// rules is what an answer means to payments. It implements engine.Rules.
type rules struct {
	*engine.Recording[*store.PaymentRow]
	suspended map[store.Ref]store.Suspended // money that was put aside, before and in this batch
}

func newRules(b *engine.Recording[*store.PaymentRow]) engine.Rules[*store.PaymentRow] {
	return &rules{Recording: b}
}

// Preload reads the money in suspense for the payments that an answer may end.
func (b *rules) Preload(ctx context.Context, answers []*engine.Answer) (err error) {
	var refs []store.Ref
	for _, a := range answers {
		p := b.Rows[a.Ref]
		if p == nil || a.Err != nil || !a.Result.Outcome.Final() && a.Result.Outcome != provider.Reversed {
			continue
		}
		if p.Attention || p.Status.Final() { // an open payment with money in suspense has an open case
			refs = append(refs, a.Ref)
		}
	}
	b.suspended, err = b.Tx.Suspended(ctx, refs)
	return err
}

// OnFailure applies the operator's answer that a payment did not succeed.
func (b *rules) OnFailure(ctx context.Context, p *store.PaymentRow, a *engine.Answer) error {
	switch {
	case p.Status == till.Success:
		if a.Action == engine.Resolve {
			a.RecordErr = till.Errorf(till.CodeValidationFailed, "the payment has succeeded and stays so")
			return nil
		}
		b.OpenCase(p, engine.CaseContradiction, till.Because(till.ReasonWasSuccess, string(a.Result.Outcome)))
	case p.Status.Final():
		if a.Action == engine.Resolve {
			b.RecordResolution(p, a)
			return b.giveBack(ctx, p, a, "given back outside, by the word of "+a.By)
		}
	default:
		if a.Action != engine.Resolve || a.UnlessDecided { // a statement's lines were not looked at one by one
			if _, suspended := b.suspended[a.Ref]; suspended {
				b.OpenCase(p, engine.CaseContradiction, till.Because(till.ReasonMoneyCameIn, string(a.Result.Outcome)))
				a.Unchanged = a.UnlessDecided
				return nil
			}
		}
		if err := b.End(ctx, p, a.Result); err != nil {
			return err
		}
		if a.Action == engine.Resolve {
			b.RecordResolution(p, a)
			return b.giveBack(ctx, p, a, "given back outside, by the word of "+a.By)
		}
	}
	return nil
}

// End ends a payment without success.
func (b *rules) End(_ context.Context, p *store.PaymentRow, r provider.Result) error {
	status := till.Failed
	if r.Outcome == provider.Expired {
		status = till.Expired
	}
	b.EndAs(p, string(status), r)
	return nil
}

// OnSuccess applies the operator's answer that a customer's money moved. It is accepted
// only for the requested amount, under a receipt that no other payment has.
func (b *rules) OnSuccess(ctx context.Context, p *store.PaymentRow, a *engine.Answer) error {
	r := a.Result
	if p.Credited() {
		return b.onRepeatedSuccess(ctx, p, a)
	}
	b.ClearRetryable(p)
	if a.Action != engine.Resolve {
		if why := b.Mismatch(p, a); !why.IsZero() {
			b.suspend(p, a, engine.CaseMismatch, why)
			return nil
		}
	}
	if b.ReceiptTaken(p, r.Receipt) {
		if a.Action == engine.Resolve {
			a.RecordErr = till.Errorf(till.CodeValidationFailed, "another payment has this receipt")
			return nil
		}
		b.NeedAttention(p)
		b.OpenReceiptCase(p, r.Receipt)
		return nil
	}
	return b.credit(ctx, p, a)
}

// onRepeatedSuccess applies an answer about money that was credited before. A receipt that
// is new is stored once, and the client gets an event. A case that a person closed is not
// opened again.
func (b *rules) onRepeatedSuccess(ctx context.Context, p *store.PaymentRow, a *engine.Answer) error {
	r, byPerson := a.Result, a.Action == engine.Resolve
	switch {
	case byPerson && p.ReversedEvent != 0:
		a.RecordErr = till.Errorf(till.CodeValidationFailed, "the payment's money was credited and taken back")
		return nil
	case r.Receipt == "" || r.Receipt == p.ProviderReference:
	case p.ProviderReference != "":
		if !byPerson {
			b.OpenCase(p, engine.CaseContradiction, till.Because(till.ReasonSecondSuccess))
		}
	case !byPerson && !b.Mismatch(p, a).IsZero():
		if seen, err := b.hadCase(ctx, p, engine.CaseMismatch); err != nil || seen {
			return err
		}
		b.OpenCase(p, engine.CaseMismatch, b.Mismatch(p, a).Then(till.ThenCredited))
	case b.ReceiptTaken(p, r.Receipt):
		if byPerson {
			a.RecordErr = till.Errorf(till.CodeValidationFailed, "another payment has this receipt")
			return nil
		}
		if seen, err := b.hadCase(ctx, p, engine.CaseReceiptReused); err != nil || seen {
			return err
		}
		b.OpenReceiptCase(p, r.Receipt)
	default:
		head := b.Heads[p.ClientID]
		b.SetReceipt(p, r.Receipt)
		p.UpdatedAt, p.UpdatedEvent = head.NextTime(), head.NextEvent()
		b.AddEvent(p, till.PaymentUpdated, p.UpdatedEvent)
		if err := b.CloseStrays(ctx, p); err != nil { // the receipt shows that it is the stray's money
			return err
		}
	}
	if byPerson {
		b.RecordResolution(p, a)
	}
	return nil
}

// hadCase reports whether a payment has, or had, a case of a kind.
func (b *rules) hadCase(ctx context.Context, p *store.PaymentRow, kind string) (bool, error) {
	cases, err := matching.CasesOf(ctx, b.Tx, kind, []store.Ref{{Client: p.ClientID, ID: p.ID}})
	return len(cases) > 0, err
}

// credit credits the client's wallet: in the commit of the status if the payment was open,
// as late money if it had ended without success.
func (b *rules) credit(ctx context.Context, p *store.PaymentRow, a *engine.Answer) error {
	late := p.Status.Final()
	var suspended int64
	held := b.suspended[a.Ref].Held()
	if held.Currency == p.Amount.Currency {
		suspended = held.Minor
	}
	w, err := b.Wallet(ctx, p.ClientID, p.Amount.Currency)
	if err != nil {
		return err
	}
	if w.Balance > ledger.MaxBalance-p.Amount.Minor {
		if a.Action == engine.Resolve {
			a.RecordErr = till.Errorf(till.CodeValidationFailed, "the wallet cannot hold the money")
			return nil
		}
		b.suspend(p, a, engine.CaseWalletFull, till.Because(till.ReasonWalletFull))
		return nil
	}

	b.SetReceipt(p, a.Result.Receipt)
	if late {
		b.MarkLate(p)
		if a.Action != engine.Resolve { // otherwise a person knows already
			b.OpenCase(p, engine.CaseLateMoney, till.Because(till.ReasonLateMoney, string(p.Status)))
		}
	} else {
		b.Move(p, string(till.Success))
	}
	e := ledger.Settle(&p.Payment, late, suspended)
	e.CreatedAt = p.UpdatedAt
	if err := b.ApplyEntry(w, &e); err != nil {
		return err
	}
	if p.Fee > 0 {
		fee := ledger.TakeFee(&p.Payment)
		if err := b.ApplyEntry(w, &fee); err != nil {
			return err
		}
		b.Fact(p, store.FactFee, &fee)
	}
	if suspended == 0 {
		if err := b.giveBack(ctx, p, a, "the money came in "+p.Amount.Currency); err != nil {
			return err
		}
	}
	if err := b.CloseStrays(ctx, p); err != nil {
		return err
	}
	if a.Action == engine.Resolve {
		b.RecordResolution(p, a)
	}
	return nil
}

// suspend puts money into suspense that came in for a payment but is not what it requested.
// The payment stays as it is until a person decides.
func (b *rules) suspend(p *store.PaymentRow, a *engine.Answer, kind string, why till.Reason) {
	b.MarkProcessing(p)
	b.NeedAttention(p)
	_, found := b.suspended[a.Ref]
	if !found || !p.Status.Final() { // a person who ended it has seen the money
		b.ReopenCase(p, kind, why.Then(till.ThenNotCredited), found)
	}
	if found {
		return
	}
	reported := a.Result.Amount
	if reported.Currency == "" {
		reported = p.Amount
	}
	if reported.Minor <= 0 {
		return // nothing moved
	}
	e := ledger.Suspend(&p.Payment, reported)
	e.CreatedAt = b.Heads[p.ClientID].NextTime()
	e.ID = till.NewID(e.CreatedAt)
	b.AddEntry(&e, fmt.Sprintf("%s %s put aside: %s", reported.Value(), reported.Currency, why))
	b.suspended[a.Ref] = store.Suspended{Came: reported, Left: reported.Minor}
}

// levelGiveBack is the level from which on money in suspense is given back. An older program
// would take it from there again if the payment were credited after all.
const levelGiveBack = 3

// giveBack takes money out of suspense that will not be the client's: a person ended the
// payment as failed, or it was paid in its own currency, and the report of another was wrong.
func (b *rules) giveBack(ctx context.Context, p *store.PaymentRow, a *engine.Answer, why string) error {
	aside := b.suspended[a.Ref]
	held := aside.Held()
	if held.IsZero() {
		return nil
	}
	if level, err := b.Tx.InstallationLevel(ctx); err != nil || level < levelGiveBack {
		return err
	}
	e := ledger.GiveBack(&p.Payment, held)
	e.CreatedAt = b.Heads[p.ClientID].NextTime()
	e.ID = till.NewID(e.CreatedAt)
	b.AddEntry(&e, fmt.Sprintf("%s %s put aside no more: %s", held.Value(), held.Currency, why))
	aside.Left = 0
	b.suspended[a.Ref] = aside
	return nil
}
