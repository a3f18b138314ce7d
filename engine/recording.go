package engine

import (
	"context"
	"errors"
	"slices"

	"till"
	"till/ledger"
	"till/provider"
	"till/store"
	"till/store/flows"
)

// Recording turns a batch of answers into rows. It holds the running state that each
// decision sees, and collects what is to be written. The net result is one commit, or
// nothing.
type Recording[R Subject] struct {
	Tx    *store.Tx
	Rows  map[store.Ref]R
	Heads map[till.ID]*store.Head
	Steps map[store.Ref]*store.Step // nil once it is deleted

	worker          *Worker
	table           *Table[R]
	clientWallets   []*ledger.Wallet             // all of the clients' wallets
	wallets         map[walletKey]*ledger.Wallet // those that this batch changes, as left
	lastAttempts    map[store.Ref]*store.Attempt
	receiptOwners   map[store.Receipt]store.Ref // which row has which receipt, before and in this batch
	byIssuer        bool                        // the receipts of aggregators are recorded by issuer
	foreignHandle   map[*Answer]bool            // answers with another subject's handle
	answer          *Answer                     // the answer that is being decided on
	fromCache       map[store.Ref]bool          // rows that were not read
	alreadyRecorded map[*Answer]bool            // answers whose calls are recorded already
	answers         []*Answer                   // all answers of the batch

	holds     map[till.ID][]store.Hold // of the clients with rows to hold
	noCase    map[store.Ref]bool       // rows that are no longer held and have no other open case
	restoring bool                     // a restore is not released; read if there is something to hold

	flows        map[store.Ref]*flows.Row // of the rows that are not approved by a prompt, as left
	flowsChanged map[store.Ref]*flows.Row

	strays strays // strays that the successes may belong to

	changed           []R
	receipts          []store.Received
	newHandles        []store.Named
	callbacksToForget []store.Ref // subjects whose kept callback is useless
	deletedSteps      []store.Ref
	events            []*till.Event
	attentionBefore   map[store.Ref]bool // of rows whose attention the answer at hand has changed
	attentionEvents   []store.AttentionEvent
	counts            store.CounterDelta
	transactions      []*ledger.Transaction
	entries           []*ledger.Entry
	facts             []store.Fact
	cases             []*store.Case
	audit             []*store.AuditRow
	attempts          []*store.Attempt
	closed            []store.CaseClosure
	extended          []extended
	accountFindings   accountFindings
	moves             []move // changes of status, for the counts and the log
	found             []move // those of earlier commits that had not been known to have happened
}

type walletKey struct {
	client   till.ID
	currency string
}

// Mismatch says how a reported success differs from the row, zero if it does not. What the
// operator does not report cannot differ. The caller adds the reason's end.
func (b *Recording[R]) Mismatch(row R, a *Answer) till.Reason {
	p, r := row.Subject(), a.Result
	switch {
	case r.Amount.Currency != "" && r.Amount.Currency != p.Amount.Currency:
		return till.Because(till.ReasonOtherCurrency, AmountOf(r.Amount), AmountOf(p.Amount))
	case r.Amount.Currency != "" && r.Amount.Minor != p.Amount.Minor:
		return till.Because(till.ReasonOtherAmount, AmountOf(r.Amount), AmountOf(p.Amount))
	case r.Reference != "" && r.Reference != a.Reference.String():
		return till.Because(till.ReasonOtherReference)
	}
	return till.Reason{}
}

// AmountOf returns an amount as reasons have it.
func AmountOf(m till.Money) string { return m.Value() + " " + m.Currency }

// WhyRefundedAndReversed is the reason of a case about a payment that the operator took back
// and that was refunded, or is being.
func WhyRefundedAndReversed(s till.RefundSums, payment till.Money) till.Reason {
	back := till.Money{Minor: s.Refunding + s.Refunded + s.Late, Currency: payment.Currency}
	return till.Because(till.ReasonRefundedReversed, AmountOf(payment), AmountOf(back))
}

// MarkProcessing notes that the operator holds the request.
func (b *Recording[R]) MarkProcessing(row R) { b.Move(row, string(till.Processing)) }

// EndAs ends a row without success. It reports whether the transition exists.
func (b *Recording[R]) EndAs(row R, status string, r provider.Result) bool {
	p := row.Subject()
	if p.Final {
		return false
	}
	if *p.FailureReason = r.Reason; r.Reason == "" {
		*p.FailureReason = till.Unspecified
	}
	*p.FailureDetail = &till.FailureDetail{ProviderCode: r.Code, ProviderMessage: r.Message, Retryable: r.Retryable}
	return b.Move(row, status)
}

// Move changes a status. The event, the tallies and the times follow from it here and
// nowhere else. It reports whether the transition exists.
func (b *Recording[R]) Move(row R, to string) bool {
	from := row.Subject().Status
	if row.MoveTo(to) != nil {
		return false
	}
	b.table.Count(&b.counts, row, from, -1)
	b.table.Count(&b.counts, row, to, 1)
	p := row.Subject()
	head := b.Heads[p.Ref.Client]
	*p.UpdatedAt = head.NextTime()
	sequence := head.NextEvent()
	if p.Final {
		*p.FinalEvent, *p.Attention = sequence, false
		b.closed = append(b.closed, store.CaseClosure{Ref: p.Ref, By: "engine", At: *p.UpdatedAt, Kinds: closedByEnd})
		b.cases = slices.DeleteFunc(b.cases, func(c *store.Case) bool { return c.SubjectID == p.Ref.ID && slices.Contains(closedByEnd, c.Kind) })
	} else {
		*p.ProcessingEvent = sequence
	}
	b.addMoveEvent(row, to, sequence)
	b.noteMove(row, to)
	return true
}

// MarkLate notes that money moved after the row had ended without success. The status
// stays; the client gets an event.
func (b *Recording[R]) MarkLate(row R) {
	p := row.Subject()
	head := b.Heads[p.Ref.Client]
	*p.UpdatedAt = head.NextTime()
	*p.LateEvent = head.NextEvent()
	b.addMoveEvent(row, "late_success", *p.LateEvent)
	b.noteMove(row, moveLate)
}

// addMoveEvent writes the event of the row's status. Its resolution is completed when the
// next step is known.
func (b *Recording[R]) addMoveEvent(row R, word string, sequence int64) {
	b.markChanged(row)
	b.events = append(b.events, eventOf(row.Subject(), till.EventKind(string(row.Subject().Noun)+"."+word), sequence))
}

// eventOf returns the event with a row's state as it is now.
func eventOf(p store.Subject, kind till.EventKind, sequence int64) *till.Event {
	return &till.Event{
		ClientID: p.Ref.Client, Sequence: sequence, Kind: kind, SubjectID: p.Ref.ID, CreatedAt: *p.UpdatedAt,
		Status: till.Status(p.Status), ProviderReference: *p.ProviderReference, FailureReason: *p.FailureReason,
		FailureDetail: *p.FailureDetail, ExpiresAt: p.ExpiresAt, Resolution: *p.Resolution,
	}
}

// AddEvent writes an event of a kind that belongs to no transition.
func (b *Recording[R]) AddEvent(row R, kind till.EventKind, sequence int64) {
	b.markChanged(row)
	b.events = append(b.events, eventOf(row.Subject(), kind, sequence))
}

// schedule decides when the operator is checked next.
func (b *Recording[R]) schedule(row R, a *Answer, t provider.Traits, was store.Subject) {
	now, s, p := b.Tx.Now(), b.Steps[a.Ref], row.Subject()
	switch {
	case s == nil:
	case a.Action == Notice:
		b.openStrandedCase(row, now)
	case p.Settled && !was.Settled && b.receiptMayCome(p, s, a):
		awaitReceipt(s, t, now)
	case p.Settled && !(was.Settled && p.Reversible):
		b.deleteStep(row)
	case p.Final && !was.Final:
		// An instance without the connection does not know its traits. One that has it
		// finds the step due.
		beginLate(s, t, now)
		if len(t.LateReads) == 0 && b.worker.has(p.Connection) {
			b.deleteStep(row)
		}
	case p.Final:
		if a.Action != Resolve && b.worker.has(p.Connection) && nextLateRead(s, a, t, now) {
			b.deleteStep(row)
		}
	case a.Action == Resolve || !b.worker.has(p.Connection):
	case a.Action == Hold:
		b.hold(row, a, s, now)
	default:
		held := a.LeaseVersion == s.LeaseVersion
		if reschedule(s, a, p.ExpiresAt, t, now); held && b.awaitsAddress(row, s, now) {
			s.DueAt = min(s.DueAt, now.Add(addressPoll))
		}
		if s.Acked && s.HeldAt != 0 {
			b.closeHeldCase(row, s, now, till.Because(till.ReasonOperatorHasIt))
		}
		if Overdue(p.ExpiresAt, t, now) {
			b.ReopenCase(row, CaseOverdue, overdue(s), *p.Attention)
			b.NeedAttention(row)
		}
	}
	b.updateQuarantine(row, a, t)
	b.fillResolution(row)
}

// fillResolution completes what clients see of the work on a row, in the row and in its
// latest event.
func (b *Recording[R]) fillResolution(row R) {
	p := row.Subject()
	s := b.Steps[p.Ref]
	p.Resolution.NextCheckAt = 0
	if s != nil {
		p.Resolution.NextCheckAt = s.DueAt
		if t, known := b.worker.traits(p.Connection); known {
			s.Lane = laneOf(p.Connection, s, p.Final, t)
		}
	}
	unclear := s != nil && s.Sends > 0 && !s.Acked || b.Tx.Now() > p.ExpiresAt
	p.Resolution.State = till.NewResolutionState(p.Final, *p.Attention, unclear)
	for _, e := range b.events {
		if e.SubjectID == p.Ref.ID && e.CreatedAt == *p.UpdatedAt {
			e.Resolution = *p.Resolution
		}
	}
	b.tellAttention(row)
}

// AfterCancel finishes a row that was cancelled without an answer. If no send was ever
// begun, nothing is left to do. If a send seemed to leave nothing, the row is read for late
// money, like any other that has ended.
func (b *Recording[R]) AfterCancel(row R) {
	p := row.Subject()
	t, known := b.worker.traits(p.Connection)
	if s := b.Steps[p.Ref]; p.Settled || s == nil || known && len(t.LateReads) == 0 {
		b.deleteStep(row)
	} else {
		beginLate(s, t, b.Tx.Now())
	}
	b.fillResolution(row)
}

// deleteStep deletes a row's step: nothing is left to do.
func (b *Recording[R]) deleteStep(row R) {
	b.markChanged(row) // the row keeps what the step counted
	p := row.Subject()
	ref := p.Ref
	if s := b.Steps[ref]; s != nil {
		*p.Ended = p.Ended.Plus(s.Callbacks())
	}
	b.Steps[ref] = nil
	b.deletedSteps = append(b.deletedSteps, ref)
}

// attemptOf returns the recorded form of a call.
func attemptOf(a *Answer) *store.Attempt {
	at := &store.Attempt{
		ClientID: a.Ref.Client, SubjectID: a.Ref.ID, Kind: string(a.Action),
		Connection: a.Connection, Reference: a.Reference,
		Outcome: string(a.Result.Outcome), Code: a.Result.Code, Detail: a.Result.Message, StartedAt: a.Started, EndedAt: a.Ended,
	}
	if a.Err != nil {
		at.Why = whyFailed(a.Err)
		at.Outcome, at.Code, at.Detail = "error", "", at.Why.String()
	}
	return at
}

// whyFailed returns why a call has no answer.
func whyFailed(err error) till.Reason {
	_, refused := errors.AsType[*provider.Refusal](err)
	switch fault := faultOf(err); {
	case refused:
		return till.Because(till.ReasonRefusedBeforeSent)
	case errors.Is(err, errHeld):
		return till.Because(till.ReasonHeldBack)
	case fault != "":
		return till.Because(till.ReasonFault, fault)
	case errors.Is(err, context.DeadlineExceeded):
		return till.Because(till.ReasonNoAnswerInTime)
	}
	return till.Because(till.ReasonNoAnswer) // its text may hold what only the operator should know
}

// recordCall records the call itself, before its answer is applied.
func (b *Recording[R]) recordCall(row R, a *Answer, t provider.Traits) {
	if !a.Action.calls() {
		return // no operator was called; a resolution is recorded once it is accepted
	}
	p := row.Subject()
	if !b.alreadyRecorded[a] {
		at := attemptOf(a)
		at.Connection, at.Reference = p.Connection, b.worker.keys.Reference(p.Ref.Client, p.IdempotencyKey)
		b.attempts = append(b.attempts, at)
	}
	if s := b.Steps[a.Ref]; s != nil {
		b.learnHandle(p, s, a)
		noteAnswer(s, a, t, b.Tx.Now())
		p.Resolution.LastCheckedAt, p.Resolution.Attempts = s.CheckedAt, s.Calls
	}
}
