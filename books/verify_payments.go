package books

import (
	"context"
	"slices"

	"till"
	"till/collect"
	"till/engine"
	"till/ledger"
	"till/store"
	"till/store/auditlog"
	"till/store/proof"
)

// verifyPayments reads a client's payments in slices by id. A slice is read in
// one snapshot; payments without the usual history come with all their rows
// and are checked after it.
func (v *verifier) verifyPayments(ctx context.Context) error {
	var last till.ID
	for more := true; more; {
		var slice []*proof.VerifyPayment
		var head *store.Head
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			if head, err = proof.Head(ctx, tx, v.client); err != nil {
				return err
			}
			if slice, last, more, err = v.readSlice(ctx, tx, head, last); err != nil {
				return err
			}
			for _, p := range slice {
				if err := findRemade(ctx, tx, p, till.SubjectPayment); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, p := range slice {
			v.Payments++
			legal := slices.Contains(till.Transitions[p.PreviousStatus], p.Status) || p.PreviousStatus == "" && p.Status == till.Pending
			v.verifyMove(p, head, legal)
			v.verifyCredit(p)
			v.verifyReceipt(p, till.SubjectPayment)
			v.verifyTaken(p)
			v.verifyLife(p, till.NounPayment, p.Status.Final())
			v.verifyScheduled(p)
			v.noteAsk(p.ID, p.Document)
			for _, f := range collect.CheckStored(&p.Payment) {
				v.problem("I15", p.ID, "%s %s: %s", f.Pointer, f.Code, f.Detail)
			}
		}
	}
	return nil
}

// verifyMove proves I4, of a payment or payout.
func (v *verifier) verifyMove(p *proof.VerifyPayment, head *store.Head, legal bool) {
	v.check(legal, "I4", p.ID, "nothing moves from %q to %q", p.PreviousStatus, p.Status)
	v.check(p.UpdatedAt >= p.CreatedAt, "I4", p.ID, "it was updated before it was created")
	v.check(p.ID.Time() == p.CreatedAt, "I4", p.ID, "its id says that it was created at %s, and created_at %s", p.ID.Time(), p.CreatedAt)
	v.check(head != nil && p.UpdatedAt <= head.LastTime, "I4", p.ID, "it was updated after the last time its client was given")
}

// verifyCredit proves I2.
func (v *verifier) verifyCredit(p *proof.VerifyPayment) {
	want := ""
	switch {
	case p.Status == till.Success:
		want = string(ledger.Collection)
	case p.LateEvent != 0:
		want = string(ledger.LateCollection)
	}
	if p.Credit != want {
		v.problem("I2", p.ID, "it is %s, its late event is %d, and it has the credit %q, not %q", p.Status, p.LateEvent, p.Credit, want)
		return
	}
	v.check(want == "" || p.CreditAmount == p.Amount, "I2", p.ID, "%v was credited for %v", p.CreditAmount, p.Amount)
	v.check(p.CreditCurrency == p.CreditAmount.Currency, "I2", p.ID, "%v was credited to a wallet in %q", p.CreditAmount, p.CreditCurrency)
	credited := p.Last.CreatedAt
	if p.LateEvent != 0 {
		credited = p.Late.CreatedAt
	}
	v.check(want == "" || p.CreditID.Time() == credited, "I2", p.ID, "it was credited at another time than it changed")
}

// verifyLife proves one half of I6, for a payment or payout: each transition
// has its event, and the event has the state after it.
func (v *verifier) verifyLife(p *proof.VerifyPayment, noun till.Noun, final bool) {
	eventKind := func(word till.Status) till.EventKind { return till.EventKind(string(noun) + "." + string(word)) }
	v.verifyEvent(p, p.PendingEvent, &p.Pending, eventKind(till.Pending), till.Pending)
	e := &p.Pending
	v.check(e.CreatedAt == p.CreatedAt || e.CreatedAt == p.RemadeAt, "I6", p.ID, "the event of its creation was made at another time")
	v.check(e.ExpiresAt == p.CreatedAt.Add(p.ApprovalWindow), "I6", p.ID, "the event of its creation has another end of the window")
	v.check(e.Resolution == till.Waiting && e.Calls == 0 && e.ProviderReference == "" && e.FailureReason == "", "I6", p.ID,
		"the event of its creation knows what came later")
	last := e
	processed := p.Status == till.Processing || p.PreviousStatus == till.Processing
	v.check(processed == (p.ProcessingEvent != 0), "I6", p.ID, "it went from %q to %q and its processing event is %d", p.PreviousStatus, p.Status, p.ProcessingEvent)
	if p.ProcessingEvent != 0 {
		v.verifyEvent(p, p.ProcessingEvent, &p.Processing, eventKind(till.Processing), till.Processing)
		v.verifyOrder(p, last, &p.Processing)
		last = &p.Processing
	}
	if e := &p.Attention; e.Sequence != 0 {
		v.check(e.SubjectID == p.ID && (e.Kind == eventKind("needs_attention") || e.Kind == eventKind("attention_ended")) && !e.Status.Final(), "I6", p.ID,
			"its event %d is %s of %s, none about a person's attention", e.Sequence, e.Kind, e.SubjectID)
		v.check((e.Kind == eventKind("needs_attention")) == (e.Resolution == till.NeedsAttention), "I6", p.ID, "its event %d, %s, says that it is %s", e.Sequence, e.Kind, e.Resolution)
		v.verifyOrder(p, &p.Pending, e)
		if e.Sequence > last.Sequence {
			last = e
		}
	}
	if p.ActionEvent != 0 {
		v.verifyEvent(p, p.ActionEvent, &p.Action, till.PaymentActionRequired, p.Action.Status)
		v.check(!p.Action.Status.Final(), "I6", p.ID, "its customer was sent to an address after it had ended")
		v.verifyOrder(p, &p.Pending, &p.Action)
		if p.Action.Sequence > last.Sequence {
			last = &p.Action
		}
	}
	v.check(final == (p.FinalEvent != 0), "I6", p.ID, "it is %s and its final event is %d", p.Status, p.FinalEvent)
	if p.FinalEvent != 0 {
		e := &p.Last
		v.verifyEvent(p, p.FinalEvent, e, eventKind(p.Status), p.Status)
		v.verifyOrder(p, last, e)
		v.check(e.FailureReason == p.FailureReason && e.FailureCode == p.FailureCode && e.FailureMessage == p.FailureMessage &&
			e.FailureRetryable >= p.FailureRetryable, "I6", p.ID, "the event of its end gives another failure") // what was paid is retryable no more
		v.check(e.ExpiresAt == p.ExpiresAt, "I6", p.ID, "the event of its end has another end of the window")
		v.check(e.Resolution == till.Confirmed || e.Resolution == till.NeedsAttention, "I6", p.ID, "the event of its end says that it is %s", e.Resolution)
		v.check(p.LateEvent != 0 || e.ProviderReference == p.ReceiptAt(e), "I6", p.ID, "the event of its end has another receipt")
		last = e
	}
	if p.LateEvent != 0 {
		v.verifyEvent(p, p.LateEvent, &p.Late, eventKind("late_success"), p.Status)
		v.verifyOrder(p, last, &p.Late)
		v.check(p.Late.ProviderReference == p.ReceiptAt(&p.Late), "I6", p.ID, "the event of its late money has another receipt")
		last = &p.Late
	}
	v.check(p.UpdatedEvent == 0 || p.FinalEvent != 0 && p.ProviderReference != "", "I6", p.ID, "it was told a receipt, and has none or has not ended")
	if p.UpdatedEvent != 0 {
		v.verifyEvent(p, p.UpdatedEvent, &p.Updated, till.PaymentUpdated, p.Status)
		v.verifyOrder(p, last, &p.Updated)
		v.check(p.Updated.ProviderReference == p.ProviderReference, "I6", p.ID, "the event of its receipt has another receipt")
	}
	if p.ReversedEvent != 0 {
		v.verifyEvent(p, p.ReversedEvent, &p.Reversed, till.PaymentReversed, p.Status)
		v.verifyOrder(p, last, &p.Reversed)
		v.check(p.Reversed.ProviderReference == p.ReceiptAt(&p.Reversed), "I6", p.ID, "the event of its reversal has another receipt")
		last = &p.Reversed
	}
	if p.Updated.Sequence > last.Sequence { // a receipt may come before a reversal or after
		last = &p.Updated
	}
	v.check(last.CreatedAt == p.UpdatedAt, "I6", p.ID, "its last event was made at %s and it was updated at %s", last.CreatedAt, p.UpdatedAt)
}

// remadeActs is how many acts on a payment or payout are searched for the one that made it
// again.
const remadeActs = 1_000

// findRemade looks up when a payment or payout whose first event is younger was made again.
// The audit row of that has the event's time.
func findRemade(ctx context.Context, tx *store.Tx, p *proof.VerifyPayment, kind till.SubjectKind) error {
	if p.Pending.CreatedAt <= p.CreatedAt {
		return nil
	}
	acts, err := auditlog.ActsOn(ctx, tx, store.Ref{Client: p.ClientID, ID: p.ID}, remadeActs)
	for _, a := range acts {
		if a.Action == engine.RemadeAction(kind) && a.At == p.Pending.CreatedAt {
			p.RemadeAt = a.At
		}
	}
	return err
}

func (v *verifier) verifyEvent(p *proof.VerifyPayment, sequence int64, e *proof.VerifyEvent, kind till.EventKind, status till.Status) {
	switch {
	case sequence == 0 || e.Sequence != sequence:
		v.problem("I6", p.ID, "its event %d, %s, is missing", sequence, kind)
	case e.SubjectID != p.ID:
		v.problem("I6", p.ID, "its event %d is about %s", sequence, e.SubjectID)
	case e.Kind != kind || e.Status != status:
		v.problem("I6", p.ID, "its event %d is %s with status %s, not %s with %s", sequence, e.Kind, e.Status, kind, status)
	}
}

func (v *verifier) verifyOrder(p *proof.VerifyPayment, before, e *proof.VerifyEvent) {
	v.check(before.Sequence < e.Sequence && before.CreatedAt < e.CreatedAt, "I6", p.ID,
		"its event %d comes after its event %d", before.Sequence, e.Sequence)
}

// verifyScheduled proves I9. A late-money read is due until one was answered
// after the last due time. A tenth is tolerated, because the clock that ended
// the payment may be ahead of the one that reads.
func (v *verifier) verifyScheduled(p *proof.VerifyPayment) {
	if p.Scheduled || p.OpenCase || p.Status == till.Success || p.LateEvent != 0 {
		return
	}
	if !p.Status.Final() {
		v.problem("I9", p.ID, "it is %s, and nobody will ask about it: it has no step and no open case", p.Status)
		return
	}
	v.check(v.readLate(p.Connection, p.Last.CreatedAt, p.LastRead), "I9", p.ID,
		"it ended as %s, and reads for late money are owed: it has no step and no open case", p.Status)
}

// readLate reports whether the last read for late money was made.
func (v *verifier) readLate(connection string, ended, read till.Time) bool {
	until := v.o.LateUntil(connection)
	return until == 0 || read >= ended.Add(until-until/10)
}

// verifyEvents proves the other half of I6 one by one: the log is dense, and
// each event is one that its payment numbers. verifyEventsFast decides whether
// that is necessary.
func (v *verifier) verifyEvents(ctx context.Context) error {
	var last int64
	var before till.Time
	for {
		var slice []*proof.LoggedEvent
		var head *store.Head
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			if head, err = proof.Head(ctx, tx, v.client); err != nil {
				return err
			}
			slice, err = proof.LoggedEvents(ctx, tx, v.client, last, v.o.Slice)
			return err
		})
		if err != nil {
			return err
		}
		if len(slice) == 0 {
			v.check(head != nil && last == head.LastEvent, "I6", till.ID{}, "the event log ends at %d and its head says otherwise", last)
			return nil
		}
		for _, e := range slice {
			v.Events++
			v.check(e.Sequence == last+1, "I6", e.SubjectID, "the event log has a gap between %d and %d", last, e.Sequence)
			v.check(e.CreatedAt > before, "I6", e.SubjectID, "event %d was made before the one before it", e.Sequence)
			v.check(e.Sequence == subjectSequence(e), "I6", e.SubjectID, "event %d, %s, is none of what it is about", e.Sequence, e.Kind)
			last, before = e.Sequence, e.CreatedAt
		}
	}
}

// subjectSequence returns the number that an event's subject has for the
// event's kind.
func subjectSequence(e *proof.LoggedEvent) int64 {
	switch e.Kind {
	case till.PaymentPending, till.PayoutEventPending, till.RefundPending:
		return e.PendingEvent
	case till.PaymentProcessing, till.PayoutEventProcessing, till.RefundProcessing:
		return e.ProcessingEvent
	case till.PaymentSuccess, till.PaymentFailed, till.PaymentExpired,
		till.PayoutEventSuccess, till.PayoutEventFailed, till.PayoutEventCancelled,
		till.RefundSuccess, till.RefundFailed, till.RefundCancelled:
		return e.FinalEvent
	case till.PaymentLateSuccess, till.PayoutEventLateSuccess, till.RefundLateSuccess:
		return e.LateEvent
	case till.PaymentReversed:
		return e.ReversedEvent
	case till.PaymentUpdated:
		return e.UpdatedEvent
	case till.PaymentActionRequired:
		return e.ActionEvent
	case till.PaymentNeedsAttention, till.PaymentAttentionEnded, till.PayoutNeedsAttention, till.PayoutAttentionEnded,
		till.RefundNeedsAttention, till.RefundAttentionEnded:
		return e.AttentionEvent
	case till.CheckoutEventPaid, till.CheckoutEventExpired, till.CheckoutEventCancelled, till.CheckoutEventOverpaid, till.EndpointDisabled:
		if !e.Known { // it is about an endpoint, which may be deleted by now
			return e.Sequence
		}
	}
	return 0
}
