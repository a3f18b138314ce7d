package collect

import (
	"context"
	"errors"
	"slices"

	"till"
	"till/engine"
	"till/ledger"
	"till/provider"
	"till/store"
)

// Apply records answers: the only place where a payment changes. The whole
// batch is one commit; if that fails, each answer is recorded alone, and what
// cannot be recorded even then is in its Refused. It implements
// engine.Subject.
func (c *Collector) Apply(ctx context.Context, answers []*engine.Answer) {
	err := c.applyBatch(ctx, answers, false)
	if errors.Is(err, store.ErrUnknownCommit) {
		err = c.applyBatch(ctx, answers, false) // what is recorded already is a no-op
	}
	away := errors.Is(err, store.ErrUnavailable)
	for _, a := range answers {
		switch {
		case err == nil:
			return
		case !away:
			if err := c.applyBatch(ctx, []*engine.Answer{a}, true); err != nil {
				a.Refused = c.unavailable("record an answer", err)
			}
		default:
			a.Refused = c.unavailable("record answers", err)
		}
	}
}

// applyBatch is the one commit of a batch of answers. That receipts are new it
// takes for granted unless it is careful: the index refuses one that is not.
func (c *Collector) applyBatch(ctx context.Context, answers []*engine.Answer, careful bool) error {
	refs := make([]store.Ref, len(answers))
	for i, a := range answers {
		refs[i] = a.Ref
	}
	return c.c.Store.UpdateBehind(ctx, func(tx *store.Tx) error {
		l, err := tx.Lock(ctx, refs)
		if err != nil {
			return err
		}
		b := &change{c: c, tx: tx, heads: l.Heads, steps: l.Steps, payments: l.Payments, last: l.Attempts,
			known: l.Wallets, wallets: make(map[purse]*ledger.Wallet)}
		if err := b.preload(ctx, answers, careful); err != nil {
			return err
		}
		for _, a := range answers {
			a.Refused = nil
			if err := b.decide(ctx, a); err != nil {
				return err
			}
		}
		return b.write(ctx)
	})
}

// change is a batch on its way from answers to rows: the running state that
// each decision sees, and what the decisions have gathered to be written.
type change struct {
	c        *Collector
	tx       *store.Tx
	heads    map[till.ID]*store.Head
	payments map[store.Ref]*store.PaymentRow
	steps    map[store.Ref]*store.Step // nil once it is deleted
	known    []*ledger.Wallet          // all of the clients' wallets
	wallets  map[purse]*ledger.Wallet  // those that this batch changes, as it leaves them
	last     map[store.Ref]*store.Attempt
	receipts map[store.Receipt]till.ID // who has which, before and in this batch
	aside    map[store.Ref]till.Money  // what was put aside, before and in this batch
	answer   *engine.Answer            // the one that is being decided on

	movedPayments []*store.PaymentRow
	deletedSteps  []store.Ref
	events        []*till.Event
	counts        store.Counts
	transactions  []*ledger.Transaction
	entries       []*ledger.Entry
	cases         []*store.Case
	audit         []*store.AuditRow
	attempts      []*store.Attempt
	closed        []store.Closing
}

type purse struct {
	client   till.ID
	currency string
}

// preload reads what only few answers will be held against.
func (b *change) preload(ctx context.Context, answers []*engine.Answer, careful bool) (err error) {
	var refs []store.Ref
	var receipts []store.Receipt
	for _, a := range answers {
		p := b.payments[a.Ref]
		if p == nil || a.Err != nil || !a.Result.Outcome.Final() {
			continue
		}
		if p.Attention || p.Status.Final() { // an open one with money aside has somebody's attention
			refs = append(refs, a.Ref)
		}
		if careful && a.Result.Outcome == provider.Success && a.Result.Receipt != "" {
			receipts = append(receipts, store.Receipt{Client: p.ClientID, Connection: p.Connection, Text: a.Result.Receipt})
		}
	}
	if b.aside, err = b.tx.Suspended(ctx, refs); err != nil {
		return err
	}
	b.receipts, err = b.tx.PaymentsByReceipt(ctx, receipts)
	return err
}

// decide takes one answer against the running state.
func (b *change) decide(ctx context.Context, a *engine.Answer) error {
	b.answer = a
	p, head := b.payments[a.Ref], b.heads[a.Ref.Client]
	if p == nil || head == nil {
		a.Refused = till.Errorf(till.CodePaymentNotFound, "there is no such payment")
		return nil
	}
	s, traits := b.steps[a.Ref], b.c.traits(p.Connection)
	b.note(p, s, a, traits)
	wasFinal := p.Status.Final()
	if err := b.judge(ctx, p, s, a); err != nil {
		return err
	}
	b.schedule(p, s, a, traits, wasFinal)
	return nil
}

// note records the call itself, before anything is made of its answer.
func (b *change) note(p *store.PaymentRow, s *store.Step, a *engine.Answer, t provider.Traits) {
	if a.Action == engine.Abandon || a.Action == engine.Resolve {
		return // nobody was called; a resolution is recorded once it is accepted
	}
	at := &store.Attempt{
		ClientID: p.ClientID, SubjectID: p.ID, Kind: string(a.Action), Connection: p.Connection,
		Reference: b.c.keys.reference(p.ClientID, p.IdempotencyKey),
		Outcome:   string(a.Result.Outcome), Code: a.Result.Code, Detail: a.Result.Message, StartedAt: a.Started, EndedAt: a.Ended,
	}
	switch {
	case errors.Is(a.Err, context.DeadlineExceeded):
		at.Outcome, at.Code, at.Detail = "error", "", "no answer in time"
	case a.Err != nil: // its text may hold what only the operator should know
		at.Outcome, at.Code, at.Detail = "error", "", "no answer"
	}
	b.attempts = append(b.attempts, at)
	if s != nil {
		engine.Note(s, a, t, b.tx.Now())
		p.Resolution.LastCheckedAt, p.Resolution.Attempts = s.CheckedAt, s.Calls
	}
}

// judge decides what an answer means for the payment. A final state is
// written on the operator's word only; the one exception is a payment that
// provably never reached the operator.
func (b *change) judge(ctx context.Context, p *store.PaymentRow, s *store.Step, a *engine.Answer) error {
	if a.Action == engine.Abandon {
		if !p.Status.Final() && engine.MayAbandon(s, p.ExpiresAt, b.tx.Now()) {
			b.fail(p, till.Failed, provider.Result{Reason: till.ProviderUnavailable, Retryable: true})
		}
		return nil
	}
	if a.Err != nil {
		return nil
	}
	r := a.Result
	switch r.Outcome {
	case provider.Accepted, provider.Duplicate, provider.Open:
		b.held(p)
	case provider.Unrecognised:
		b.held(p)
		if !p.Status.Final() {
			b.open(p, CaseUnknownStatus, "the operator answers with a status that is not known: "+r.Code)
		}
	case provider.Rejected:
		if !p.Status.Final() && engine.RejectionIsFinal(s, a) {
			b.fail(p, till.Failed, r)
		}
	case provider.Success:
		return b.succeed(ctx, p, a)
	case provider.Failed, provider.Expired:
		b.lose(p, a)
	}
	return nil
}

// held notes that the operator holds the request.
func (b *change) held(p *store.PaymentRow) {
	if p.Status == till.Pending {
		b.move(p, till.Processing)
	}
}

// lose takes an operator's word that a payment did not succeed.
func (b *change) lose(p *store.PaymentRow, a *engine.Answer) {
	switch {
	case p.Status == till.Success:
		if a.Action == engine.Resolve {
			a.Refused = till.Errorf(till.CodeValidationFailed, "the payment has succeeded and stays so")
			return
		}
		b.open(p, CaseContradiction, "the operator called it a success before and says "+string(a.Result.Outcome)+" now")
	case p.Status.Final():
		if a.Action == engine.Resolve {
			b.resolved(p, a)
		}
	default:
		if a.Action != engine.Resolve {
			if _, suspended := b.aside[a.Ref]; suspended {
				b.open(p, CaseContradiction, "money came in for it, and the operator says "+string(a.Result.Outcome)+" now")
				return
			}
		}
		status := till.Failed
		if a.Result.Outcome == provider.Expired {
			status = till.Expired
		}
		b.fail(p, status, a.Result)
		if a.Action == engine.Resolve {
			b.resolved(p, a)
		}
	}
}

// fail ends a payment other than in success.
func (b *change) fail(p *store.PaymentRow, status till.Status, r provider.Result) {
	p.FailureReason = r.Reason
	if p.FailureReason == "" {
		p.FailureReason = till.Unspecified
	}
	p.FailureDetail = &till.FailureDetail{ProviderCode: r.Code, ProviderMessage: r.Message, Retryable: r.Retryable}
	b.move(p, status)
}

// move changes a payment's status: the event, the counters and the times
// follow from it here and nowhere else.
func (b *change) move(p *store.PaymentRow, to till.Status) {
	if p.Status.MayBecome(to) != nil {
		return
	}
	head := b.heads[p.ClientID]
	b.counts.AddPayment(&p.Payment, p.Status, -1)
	b.counts.AddPayment(&p.Payment, to, 1)
	p.PreviousStatus, p.Status = p.Status, to
	p.UpdatedAt = head.Tick()
	sequence := head.NextEvent()
	if to.Final() {
		p.FinalEvent, p.Attention = sequence, false
		b.close(p, "engine", CaseOverdue, CaseUnknownStatus)
		b.cases = slices.DeleteFunc(b.cases, func(c *store.Case) bool {
			return c.SubjectID == p.ID && (c.Kind == CaseOverdue || c.Kind == CaseUnknownStatus)
		})
	} else {
		p.ProcessingEvent = sequence
	}
	b.tell(p, till.KindOf(to), sequence)
}

// tell writes the event of the state that the payment is in now. Its
// resolution is completed when the next step is known.
func (b *change) tell(p *store.PaymentRow, kind till.EventKind, sequence int64) {
	b.touch(p)
	b.events = append(b.events, eventOf(p, kind, sequence))
}

// touch makes sure that the payment is written.
func (b *change) touch(p *store.PaymentRow) {
	for _, q := range b.movedPayments {
		if q == p {
			return
		}
	}
	b.movedPayments = append(b.movedPayments, p)
}

// schedule decides when the operator is asked next.
func (b *change) schedule(p *store.PaymentRow, s *store.Step, a *engine.Answer, t provider.Traits, wasFinal bool) {
	now := b.tx.Now()
	switch {
	case s == nil:
	case p.Status == till.Success || p.LateEvent != 0:
		b.forget(a.Ref)
	case p.Status.Final() && !wasFinal:
		// Who does not have the connection does not know its habits; who has it
		// finds the step due.
		engine.BeginLate(s, t, now)
		if len(t.LateReads) == 0 && b.c.c.Connections[p.Connection] != nil {
			b.forget(a.Ref)
		}
	case p.Status.Final():
		if a.Action != engine.Resolve && engine.AfterLate(s, a, t, now) {
			b.forget(a.Ref)
		}
	case a.Action == engine.Resolve:
	default:
		engine.Reschedule(s, a, p.ExpiresAt, t, now)
		if engine.Overdue(p.ExpiresAt, t, now) {
			b.again(p, CaseOverdue, "its time is over and the operator has not decided", p.Attention)
			b.attend(p)
		}
	}
	s = b.steps[a.Ref]
	p.Resolution.NextCheckAt = 0
	if s != nil {
		p.Resolution.NextCheckAt = s.DueAt
		s.Lane = engine.LaneOf(p.Connection, s, p.Status.Final(), t)
	}
	unclear := s != nil && s.Sends > 0 && !s.Acked || now > p.ExpiresAt
	p.Resolution.State = till.ResolutionStateOf(p.Status, p.Attention, unclear)
	for _, e := range b.events {
		if e.PaymentID == p.ID && e.CreatedAt == p.UpdatedAt {
			e.Resolution = p.Resolution
		}
	}
}

// forget removes a payment's step: nothing is owed any more.
func (b *change) forget(ref store.Ref) {
	b.touch(b.payments[ref]) // what the step counted is kept with the payment
	b.steps[ref] = nil
	b.deletedSteps = append(b.deletedSteps, ref)
}
