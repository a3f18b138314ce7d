package payout

import (
	"context"
	"fmt"
	"slices"

	"till"
	"till/engine"
	"till/ledger"
	"till/provider"
	"till/store"
	"till/store/refunds"
)

// rules is what an answer means to payouts. It implements engine.Rules.
type rules struct {
	*engine.Recording[*store.PayoutRow]
	mismatched map[store.Ref]bool // payouts whose money moved, but not as requested

	originals map[store.Ref]*refunds.Original // the payments that refunds may now be paid for, with the running sums
}

func newRules(b *engine.Recording[*store.PayoutRow]) engine.Rules[*store.PayoutRow] {
	return &rules{Recording: b}
}

// Preload reads which of the payouts have an open mismatch.
func (b *rules) Preload(ctx context.Context, answers []*engine.Answer) (err error) {
	var refs []store.Ref
	for _, a := range answers {
		// A payout with such a case needs attention.
		if p := b.Rows[a.Ref]; p != nil && p.Attention && a.Err == nil {
			refs = append(refs, a.Ref)
		}
	}
	if b.mismatched, err = b.Tx.Mismatched(ctx, refs, engine.CaseMismatch); err != nil {
		return err
	}
	return b.preloadOriginals(ctx, answers)
}

// preloadOriginals reads the payments of refunds that may be paid now.
func (b *rules) preloadOriginals(ctx context.Context, answers []*engine.Answer) (err error) {
	var refs []store.Ref
	for _, a := range answers {
		if p := b.Rows[a.Ref]; p != nil && p.IsRefund() && a.Err == nil && a.Result.Outcome == provider.Success && !slices.Contains(refs, paymentOf(p)) {
			refs = append(refs, paymentOf(p))
		}
	}
	b.originals, err = refunds.Originals(ctx, b.Tx, refs)
	return err
}

// moveSums changes the sums of the payment that a refund gives back; nothing for a payout.
func (b *rules) moveSums(p *store.PayoutRow, refunding, refunded, late int64) error {
	if !p.IsRefund() {
		return nil
	}
	if of := b.originals[paymentOf(p)]; of != nil {
		of.Sums.Refunding += refunding
		of.Sums.Refunded += refunded
		of.Sums.Late += late
	}
	return refunds.Move(b.Tx, paymentOf(p), refunding, refunded, late)
}

// checkSums opens cases about a refund whose money left: for a payment that the operator took
// back, and for more than was paid.
func (b *rules) checkSums(p *store.PayoutRow, late bool) {
	of := b.originals[paymentOf(p)]
	if !p.IsRefund() || of == nil {
		return
	}
	if of.Reversed {
		b.OpenCaseOf(paymentOf(p), engine.CaseRefundedAndReversed, engine.WhyRefundedAndReversed(of.Sums, of.Payment.Amount))
	}
	if late && of.Sums.Beyond() {
		sum := till.Money{Minor: of.Sums.Refunding + of.Sums.Refunded + of.Sums.Late, Currency: p.Amount.Currency}
		b.OpenCase(p, engine.CaseRefundedBeyond, till.Because(till.ReasonRefundedBeyond, engine.AmountOf(sum), engine.AmountOf(of.Payment.Amount)))
	}
}

// neverSent reports whether a payout was cancelled before any send began: nothing of it can
// have come to the operator.
func neverSent(p *store.PayoutRow) bool {
	return p.Status == till.PayoutCancelled && p.Resolution.Attempts == 0
}

func errNeverSent(p *store.PayoutRow) error {
	return till.Errorf(till.CodeValidationFailed, "the %s was cancelled before anything was sent", p.Noun())
}

// OnSuccess applies the operator's answer that the recipient has the money. It is accepted
// only for the requested amount, under a receipt that no other payout has. Otherwise the
// reserve is kept and a person decides.
func (b *rules) OnSuccess(ctx context.Context, p *store.PayoutRow, a *engine.Answer) error {
	r := a.Result
	switch {
	case neverSent(p):
		if a.Action == engine.Resolve {
			a.RecordErr = errNeverSent(p)
			return nil
		}
		b.OpenCase(p, engine.CaseContradiction, till.Because(till.ReasonNeverSent))
		return nil
	case p.Status == till.PayoutSuccess || p.LateEvent != 0:
		if a.Action == engine.Resolve {
			b.RecordResolution(p, a)
		} else if r.Receipt != "" && p.ProviderReference != "" && r.Receipt != p.ProviderReference {
			b.OpenCase(p, engine.CaseContradiction, till.Because(till.ReasonSecondSuccess))
		}
		return nil
	}
	b.ClearRetryable(p)
	if a.Action != engine.Resolve {
		if why := b.Mismatch(p, a); !why.IsZero() {
			b.MarkProcessing(p)
			b.NeedAttention(p)
			b.OpenCase(p, engine.CaseMismatch, why.Then(till.ThenNotPosted))
			b.mismatched[a.Ref] = true
			return nil
		}
	}
	if b.ReceiptTaken(p, r.Receipt) {
		if a.Action == engine.Resolve {
			a.RecordErr = till.Errorf(till.CodeValidationFailed, "another payout has this receipt")
			return nil
		}
		b.NeedAttention(p)
		b.OpenReceiptCase(p, r.Receipt)
		return nil
	}
	b.SetReceipt(p, r.Receipt)
	var err error
	if p.Status.Final() {
		err = b.postLate(ctx, p, a)
	} else {
		err = b.post(ctx, p)
	}
	if err == nil {
		err = b.CloseStrays(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("post payout %s: %w", p.ID, err)
	}
	if a.Action == engine.Resolve {
		b.RecordResolution(p, a)
	}
	return nil
}

// post posts the reserve as what was paid, and the fee.
func (b *rules) post(ctx context.Context, p *store.PayoutRow) error {
	w, err := b.Wallet(ctx, p.ClientID, p.Amount.Currency)
	if err != nil {
		return err
	}
	if !b.Move(p, string(till.PayoutSuccess)) {
		return till.ErrIllegalTransition
	}
	if err := w.Release(p.Reserve(), p.UpdatedAt); err != nil {
		return err
	}
	if err := b.moveSums(p, -p.Amount.Minor, p.Amount.Minor, 0); err != nil {
		return err
	}
	b.checkSums(p, false)
	e := ledger.PayOut(&p.Payout)
	if err := b.addEntry(p, w, &e, p.UpdatedAt, store.FactMoneyOut); err != nil || p.Fee == 0 {
		return err
	}
	fee := ledger.TakePayoutFee(&p.Payout)
	return b.addEntry(p, w, &fee, b.Heads[p.ClientID].NextTime(), store.FactFee)
}

// postLate posts a payout that was paid after it had failed or was cancelled. Its reserve
// was released and may be spent, so the client owes what the wallet lacks.
func (b *rules) postLate(ctx context.Context, p *store.PayoutRow, a *engine.Answer) error {
	w, err := b.Wallet(ctx, p.ClientID, p.Amount.Currency)
	if err != nil {
		return err
	}
	b.MarkLate(p)
	if err := b.moveSums(p, 0, 0, p.Amount.Minor); err != nil {
		return err
	}
	b.checkSums(p, true)
	e := ledger.PayOutLate(&p.Payout, w.Available())
	if a.Action != engine.Resolve { // otherwise a person knows already
		b.OpenCase(p, engine.CaseLateMoney, till.Because(till.ReasonLatePayout, string(p.Status)))
	}
	return b.addEntry(p, w, &e, p.UpdatedAt, store.FactMoneyOut)
}

// addEntry applies an entry to the wallet and collects it, with the fact that prevents a
// second one.
func (b *rules) addEntry(p *store.PayoutRow, w *ledger.Wallet, e *ledger.Entry, at till.Time, fact string) error {
	e.CreatedAt, e.ID = at, till.NewID(at)
	b.Fact(p, fact, e)
	if _, touches := e.WalletAmount(); !touches {
		b.AddEntry(e, fmt.Sprintf("%s %s owed", p.Amount.Value(), e.Currency))
		return w.Owe(e)
	}
	t, err := w.Post(e)
	if err != nil {
		return err
	}
	b.AddTransaction(&t, e)
	return nil
}

// OnFailure applies the operator's answer that the recipient does not get the money.
func (b *rules) OnFailure(ctx context.Context, p *store.PayoutRow, a *engine.Answer) error {
	byPerson := a.Action == engine.Resolve
	switch {
	case p.Status == till.PayoutSuccess && byPerson:
		a.RecordErr = till.Errorf(till.CodeValidationFailed, "the %s has succeeded and stays so", p.Noun())
	case p.Status == till.PayoutSuccess:
		b.OpenCase(p, engine.CaseContradiction, till.Because(till.ReasonWasSuccess, string(a.Result.Outcome)))
	case neverSent(p) && byPerson:
		a.RecordErr = errNeverSent(p)
	case p.Status.Final():
		if byPerson {
			b.RecordResolution(p, a)
		}
	case b.mismatched[a.Ref] && !byPerson:
		b.OpenCase(p, engine.CaseContradiction, till.Because(till.ReasonMoneyWentOut, string(a.Result.Outcome)))
	default:
		if err := b.End(ctx, p, a.Result); err != nil {
			return err
		}
		if byPerson {
			b.RecordResolution(p, a)
		}
	}
	return nil
}

// End ends a payout without success and releases its reserve.
func (b *rules) End(ctx context.Context, p *store.PayoutRow, r provider.Result) error {
	if !b.EndAs(p, string(till.PayoutFailed), r) {
		return nil
	}
	switch r.Original {
	case provider.RefundedElsewhere:
		b.OpenCase(p, engine.CaseRefundedElsewhere, till.Because(till.ReasonRefundedElsewhere, r.Code))
	case provider.NotPaidThere:
		b.OpenCase(p, engine.CaseContradiction, till.Because(till.ReasonNotPaidThere, r.Code))
	}
	return b.release(ctx, p, "engine", act(p, actionRelease, actionReleaseRefund), "")
}

// release releases the reserve of a payout that has just ended. That is a decision about
// money without an entry in the ledger, so the audit log records it.
func (b *rules) release(ctx context.Context, p *store.PayoutRow, actor, action, reason string) error {
	w, err := b.Wallet(ctx, p.ClientID, p.Amount.Currency)
	if err != nil {
		return err
	}
	if err := w.Release(p.Reserve(), p.UpdatedAt); err != nil {
		return fmt.Errorf("release payout %s: %w", p.ID, err)
	}
	if err := b.moveSums(p, -p.Amount.Minor, 0, 0); err != nil {
		return err
	}
	detail := reserved(p) + " released"
	if reason != "" {
		detail += "; " + reason
	}
	b.AddAudit(p.ClientID, p.ID, p.UpdatedAt, actor, action, detail)
	return nil
}

// OnReversal applies the operator's answer that the money came back. An open payout has
// failed then; a person decides about one that succeeded.
func (b *rules) OnReversal(ctx context.Context, p *store.PayoutRow, a *engine.Answer) error {
	a.Result.Reason = till.ProviderRejected
	return b.OnFailure(ctx, p, a)
}
