package story

import (
	"cmp"
	"context"
	"slices"
	"time"

	"till"
	"till/books"
	"till/ledger"
	"till/store"
	"till/store/admin"
	"till/store/auditlog"
)

// maxActs is how many acts of people a story shows, the newest.
const maxActs = 50

// shownLines is how many transactions a story has.
const shownLines = 200

// Story is a payment or payout with all that happened to it, from one snapshot.
type Story struct {
	Kind    till.SubjectKind
	Payment *store.PaymentRow
	Payout  *store.PayoutRow

	Subject  store.Subject
	Step     *store.Step // nil: nothing is scheduled
	Attempts []*store.Attempt
	Events   []*store.EventRow
	Lines    []*ledger.Transaction // the first shownLines of them
	Cases    []*store.Case         // open and closed
	Acts     []*store.AuditRow     // of people and keys, oldest first
	Decided  []*store.AuditRow     // by the engine about its money, oldest first
	Notes    []*auditlog.Note      // oldest first
	Calls    store.Callbacks       // by the operator
	Breaker  *admin.Breaker        // of the connection
	Aside    till.Money            // in suspense; zero: nothing
	Owed     []store.Owing

	Sums    till.RefundSums // of a payment whose money came
	Refunds []*Refund       // of a payment: the shownRefunds newest, the newest first

	LateAt, ReversedAt till.Time
	Now                till.Time
}

// ReadStory reads the story of a payment or payout in a fixed number of
// statements, however long it is. It returns CodePaymentNotFound or
// CodePayoutNotFound.
func ReadStory(ctx context.Context, tx *store.Tx, kind till.SubjectKind, ref store.Ref) (*Story, error) {
	s := &Story{Kind: kind, Now: tx.Now()}
	if err := s.readSubject(ctx, tx, ref); err != nil {
		return nil, err
	}
	if err := s.readRefunds(ctx, tx, ref); err != nil {
		return nil, err
	}
	filter := store.TransactionFilter{PaymentID: ref.ID}
	if kind == till.SubjectPayout {
		filter = store.TransactionFilter{PayoutID: ref.ID}
	}
	_, err := tx.EachTransaction(ctx, ref.Client, filter, till.ID{}, true, shownLines, func(t *ledger.Transaction) error {
		line := *t
		s.Lines = append(s.Lines, &line)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.Attempts, err = tx.Attempts(ctx, ref); err != nil {
		return nil, err
	}
	if s.Cases, err = tx.Cases(ctx, store.CaseFilter{Client: ref.Client, Subject: ref.ID, All: true, Limit: books.MaxCases}); err != nil {
		return nil, err
	}
	if s.Acts, err = auditlog.ActsOn(ctx, tx, ref, maxActs); err != nil {
		return nil, err
	}
	slices.Reverse(s.Acts)
	// Few have notes: the acts say whether to read them.
	if len(s.Acts) == maxActs || slices.ContainsFunc(s.Acts, isNote) {
		if s.Notes, err = auditlog.Notes(ctx, tx, ref, MaxNotes); err != nil {
			return nil, err
		}
		s.Acts = slices.DeleteFunc(s.Acts, isNote) // the notes themselves are shown
	}
	if s.Decided, err = auditlog.DecisionsAt(ctx, tx, ref, s.decisive(), decisionSpan); err != nil {
		return nil, err
	}
	return s, s.readOpen(ctx, tx, ref)
}

// The engine's rows are at the moments of events and cases: those of one decision are in
// one commit, whose times are microseconds apart.
const (
	decisionSpan = time.Millisecond
	maxDecisive  = 12 // moments, the newest
)

// decisive returns the moments at which money may have been decided about, oldest first.
func (s *Story) decisive() (out []till.Time) {
	var all []till.Time
	for _, e := range s.Events {
		switch e.Kind {
		case till.PaymentPending, till.PayoutEventPending, till.RefundPending, till.PaymentProcessing, till.PayoutEventProcessing, till.RefundProcessing:
		default:
			all = append(all, e.CreatedAt)
		}
	}
	for _, c := range s.Cases {
		all = append(all, c.OpenedAt)
	}
	slices.Sort(all)
	for _, at := range all {
		if n := len(out); n == 0 || at.Sub(out[n-1]) >= decisionSpan/2 { // else the one before covers it
			out = append(out, at)
		}
	}
	return out[max(0, len(out)-maxDecisive):]
}

func isNote(a *store.AuditRow) bool { return a.Action == ActNote }

// readSubject reads the row and its events.
func (s *Story) readSubject(ctx context.Context, tx *store.Tx, ref store.Ref) (err error) {
	var sequences []int64
	if s.Kind == till.SubjectPayout {
		if s.Payout, err = tx.Payout(ctx, ref); err != nil {
			return err
		}
		p := s.Payout
		s.Subject, s.LateAt = p.Subject(), p.LateSuccessAt
		sequences = eventsOf(p)
	} else {
		if s.Payment, err = tx.Payment(ctx, ref); err != nil {
			return err
		}
		p := s.Payment
		s.Subject, s.LateAt, s.ReversedAt = p.Subject(), p.LateSuccessAt, p.ReversedAt
		sequences = []int64{p.PendingEvent, p.ProcessingEvent, p.FinalEvent, p.LateEvent, p.ReversedEvent, p.UpdatedEvent}
	}
	sequences = slices.DeleteFunc(sequences, isZero)
	s.Events, err = tx.EventBodiesAt(ctx, ref.Client, sequences)
	return err
}

// eventsOf returns the numbers of a payout's events.
func eventsOf(p *store.PayoutRow) []int64 {
	return slices.DeleteFunc([]int64{p.PendingEvent, p.ProcessingEvent, p.FinalEvent, p.LateEvent}, isZero)
}

func isZero(n int64) bool { return n == 0 }

// readOpen reads what only an open, suspended or reversed subject has.
func (s *Story) readOpen(ctx context.Context, tx *store.Tx, ref store.Ref) (err error) {
	if s.Step, err = tx.Step(ctx, ref); err != nil {
		return err
	}
	if s.Calls, err = tx.RowCallbacks(ctx, s.Kind, ref); err != nil {
		return err
	}
	if s.Step != nil {
		s.Calls = s.Calls.Plus(s.Step.Callbacks())
	}
	if !s.Subject.Final {
		breakers, err := admin.Breakers(ctx, tx)
		if err != nil {
			return err
		}
		s.Breaker = breakers[s.Subject.Connection]
	}
	if len(s.Cases) > 0 {
		aside, err := tx.Suspended(ctx, []store.Ref{ref})
		if err != nil {
			return err
		}
		s.Aside = aside[ref].Held()
	}
	if !s.ReversedAt.IsZero() || !s.LateAt.IsZero() {
		s.Owed, err = tx.OwedFor(ctx, ref)
	}
	return err
}

// OpenCases returns the cases that somebody has to check.
func (s *Story) OpenCases() []*store.Case {
	return slices.DeleteFunc(slices.Clone(s.Cases), func(c *store.Case) bool { return !c.ClosedAt.IsZero() })
}

// Why returns what is going on. rate is how many sends a second the connection
// takes, 0 if that is not known.
func (s *Story) Why(rate int) Why {
	in := &Situation{Kind: s.Kind, Subject: s.Subject, Step: s.Step, Breaker: s.Breaker, Rate: rate, Cases: s.OpenCases(), Suspended: s.Aside,
		LateAt: s.LateAt, ReversedAt: s.ReversedAt, Now: s.Now, Sums: s.Sums, Refund: s.openOrLast(), BackAt: s.backAt()}
	if n := len(s.Attempts); n > 0 {
		in.Last = s.Attempts[n-1]
	}
	in.HeldSince = s.heldSince()
	in.Debited, in.Owed = takenBack(s.Lines, s.Owed, s.Subject.Amount.Currency)
	return Explain(in)
}

// heldSince returns when the operator was first seen to hold the request.
func (s *Story) heldSince() till.Time {
	for _, e := range s.Events {
		if e.Kind == till.PaymentProcessing || e.Kind == till.PayoutEventProcessing {
			return e.CreatedAt
		}
	}
	return 0
}

// MomentKind says what happened at a moment of a timeline.
type MomentKind string

// The kinds. Those that begin with next have not happened yet.
const (
	MomentEvent    MomentKind = "event"    // a change that clients are notified of
	MomentSent     MomentKind = "sent"     // a send to the operator
	MomentAsked    MomentKind = "asked"    // a check, or several with one answer
	MomentResolved MomentKind = "resolved" // a person brought the decision
	MomentCallback MomentKind = "callback" // the operator called, a hint
	MomentLine     MomentKind = "line"     // a line of the wallet
	MomentDecided  MomentKind = "decided"  // a decision about money without such a line
	MomentOpened   MomentKind = "opened"   // a case
	MomentClosed   MomentKind = "closed"
	MomentAct      MomentKind = "act"       // what a person or a key did
	MomentNote     MomentKind = "note"      // what a person wrote
	MomentNextSend MomentKind = "next_send" // it is sent
	MomentNextAsk  MomentKind = "next_ask"  // the operator is asked
	MomentEnd      MomentKind = "next_end"  // the customer's time is over
)

// Group is what a moment is about, for those who want one thing.
type Group string

// The groups.
const (
	AboutOperator Group = "operator"
	AboutMoney    Group = "money"
	AboutWebhooks Group = "webhooks"
	AboutPeople   Group = "people"
	AboutAll      Group = "all" // it is shown in each
)

// Moment is one line of a timeline. Of the pointers, one is set; of callbacks, and of
// what is next, none. What the engine decided has its audit row besides.
type Moment struct {
	At      till.Time
	Kind    MomentKind
	Group   Group
	Next    bool // it has not happened yet
	Event   *store.EventRow
	Attempt *store.Attempt
	Line    *ledger.Transaction
	Case    *store.Case
	Audit   *store.AuditRow
	Note    *auditlog.Note

	// Refund is the one of the payment that the event or the call is of; nil: it is the
	// subject's own.
	Refund *Refund
}

// rank sorts what has one time: the cause before what follows from it. Creation
// comes first of all: it may share its time with the first send.
func (m *Moment) rank() int {
	if m.Event != nil && (m.Event.Kind == till.PaymentPending || m.Event.Kind == till.PayoutEventPending || m.Event.Kind == till.RefundPending) {
		return 0
	}
	return order[m.Kind]
}

var order = map[MomentKind]int{MomentSent: 1, MomentCallback: 2, MomentAsked: 3, MomentResolved: 3, MomentLine: 4, MomentDecided: 4, MomentEvent: 5, MomentOpened: 6, MomentClosed: 7, MomentAct: 8, MomentNote: 8}

// Timeline returns what happened, by time, and what comes next.
func (s *Story) Timeline() []Moment {
	var out []Moment
	for _, e := range s.Events {
		out = append(out, Moment{At: e.CreatedAt, Kind: MomentEvent, Group: AboutAll, Event: e})
	}
	for _, t := range s.Lines {
		out = append(out, Moment{At: t.CreatedAt, Kind: MomentLine, Group: AboutMoney, Line: t})
	}
	out = append(out, s.decisions(out)...)
	for _, a := range s.Attempts {
		out = append(out, momentOf(a))
	}
	for _, r := range s.Refunds {
		out = append(out, r.moments()...)
	}
	for _, c := range s.Cases {
		out = append(out, Moment{At: c.OpenedAt, Kind: MomentOpened, Group: AboutPeople, Case: c})
		if !c.ClosedAt.IsZero() {
			out = append(out, Moment{At: c.ClosedAt, Kind: MomentClosed, Group: AboutPeople, Case: c})
		}
	}
	for _, a := range s.Acts {
		out = append(out, Moment{At: a.At, Kind: MomentAct, Group: AboutPeople, Audit: a})
	}
	for _, n := range s.Notes {
		out = append(out, Moment{At: n.CreatedAt, Kind: MomentNote, Group: AboutPeople, Note: n})
	}
	if s.Calls.Count > 0 {
		out = append(out, Moment{At: s.Calls.First, Kind: MomentCallback, Group: AboutOperator})
	}
	sortMoments(out)
	return append(out, s.nextMoments()...)
}

// releases reports whether an act is the row of a payout or refund that failed: its event says
// that the reserve is released.
func releases(action string) bool { return action == "payout.release" || action == "refund.release" }

// decisions gives the audit rows of what the engine decided to the lines and events that
// show it, and returns moments for the others: money that was put aside, or is owed.
func (s *Story) decisions(shown []Moment) (rest []Moment) {
	for _, d := range s.Decided {
		i := slices.IndexFunc(shown, func(m Moment) bool {
			return m.At == d.At && m.Audit == nil && (m.Line != nil && m.Line.Type == d.Action || m.Event != nil && releases(d.Action))
		})
		if i >= 0 {
			shown[i].Audit = d
		} else {
			rest = append(rest, Moment{At: d.At, Kind: MomentDecided, Group: AboutMoney, Audit: d})
		}
	}
	return rest
}

// sortMoments sorts what has happened.
func sortMoments(moments []Moment) {
	slices.SortStableFunc(moments, func(a, b Moment) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.rank(), b.rank()))
	})
}

func momentOf(a *store.Attempt) Moment {
	m := Moment{At: a.StartedAt, Kind: MomentSent, Group: AboutOperator, Attempt: a}
	switch a.Kind {
	case store.AttemptCheck:
		m.Kind = MomentAsked
	case store.AttemptResolve:
		m.Kind, m.Group = MomentResolved, AboutPeople
	}
	return m
}

// moments returns what happened to a refund. Its lines are among the payment's.
func (r *Refund) moments() (out []Moment) {
	for _, e := range r.Events {
		out = append(out, Moment{At: e.CreatedAt, Kind: MomentEvent, Group: AboutAll, Event: e, Refund: r})
	}
	for _, a := range r.Attempts {
		m := momentOf(a)
		m.Refund = r
		out = append(out, m)
	}
	return out
}

// nextMoments returns what has not happened yet.
func (s *Story) nextMoments() []Moment {
	if s.Step == nil || s.Subject.Final {
		return nil
	}
	next := Moment{At: max(s.Step.DueAt, s.Now), Kind: MomentNextAsk, Group: AboutOperator, Next: true}
	if s.Step.Sends == 0 {
		next.Kind = MomentNextSend
	}
	out := []Moment{next}
	if s.Kind == till.SubjectPayment && s.Now < s.Subject.ExpiresAt {
		out = append(out, Moment{At: s.Subject.ExpiresAt, Kind: MomentEnd, Group: AboutOperator, Next: true})
	}
	sortMoments(out)
	return out
}
