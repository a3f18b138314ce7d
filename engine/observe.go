package engine

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"till"
	"till/internal/trace"
	"till/ledger"
	"till/provider"
	"till/store"
)

// created counts the rows that a batch of creates has made, and records a span for each that
// is traced, by its own id or because the caller asks for it.
func (p *Processor[R]) created(calls []*CreateCall[R], began till.Time) {
	now := p.c.Store.Now()
	for _, call := range calls {
		if !call.made() {
			continue
		}
		s, caller := call.Row.Subject(), call.Client.Caller
		p.counts.subjects[s.Noun].Moved(s.Method, string(till.Pending))
		if !caller.Asks() && !p.c.Tracer.Wants(s.Ref.ID) {
			continue
		}
		span := trace.Child(s.Ref.ID, "create", trace.Internal)
		span.Start, span.End = call.came, now
		if caller.Asks() {
			span.Link = caller.Link()
		}
		span.Text(attrKind, string(p.kind))
		span.Text(attrMethod, s.Method)
		span.Text(attrConnection, s.Connection)
		span.Text(attrCurrency, s.Amount.Currency)
		span.Int(attrBatch, int64(len(calls)))
		span.Int(attrWait, began.Sub(call.came).Microseconds())
		p.c.Tracer.Record(&span)
	}
}

// called reports a call to an operator to the meter, the log and the trace. Its line is at
// debug, or at warn if there was no answer, then at most one a second and connection. A call
// without an answer and a second send are trouble: from then on all spans of the subject
// are sent.
func (w *Worker) called(t *Task, a *Answer, took time.Duration) {
	outcome, failed, trouble := string(a.Result.Outcome), a.Err != nil, callError(a.Err)
	w.counted(a.Connection, a.Action).Called(outcome, failed, took)
	level, others := slog.LevelDebug, int64(0)
	if failed {
		ok := false
		if others, ok = w.counts.troubled[a.Connection].Allow(time.Now()); ok {
			level = slog.LevelWarn
		}
	}
	if w.c.Log.Enabled(context.Background(), level) {
		w.c.Log.LogAttrs(context.Background(), level, "call",
			slog.String("kind", string(t.Instruction.Noun)), slog.String("id", a.Ref.ID.String()), slog.String("connection", a.Connection),
			slog.String("action", string(a.Action)), slog.String("outcome", outcome), slog.String("code", a.Result.Code),
			slog.String("error", trouble), slog.Int64("sends", int64(t.Step.Sends)), slog.Duration("took", took), slog.Int64("others", others))
	}
	if failed || troubledStep(&t.Step) {
		w.c.Tracer.Follow(a.Ref.ID)
	}
	if !w.c.Tracer.Wants(a.Ref.ID) {
		return
	}
	span := trace.Child(a.Ref.ID, string(a.Action), trace.Client)
	span.Start, span.End, span.Failed = a.Ended.Add(-took), a.Ended, failed
	attempt := int64(t.Step.Sends)
	if a.Action != Submit {
		attempt = int64(t.Step.Calls) + 1
	}
	span.Text(attrConnection, a.Connection)
	span.Text(attrOutcome, outcome)
	span.Text(attrCode, traceableCode(a.Result.Code))
	span.Text(attrError, trouble)
	span.Int(attrAttempt, attempt)
	w.c.Tracer.Record(&span)
}

// callError says in our own words why there was no answer. The adapter's text may hold
// what only the operator should know.
func callError(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, provider.ErrCredentials):
		return "the operator refuses our credentials"
	case errors.Is(err, provider.ErrNotSent):
		return "not sent"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return "no answer"
}

// moveLate stands for the money that moved after the end, which changes no status.
const moveLate = "late"

// move is a change of status, with what is logged about it.
type move struct {
	ref                     store.Ref
	status                  string
	sends, calls, callbacks int64
	by                      string

	final bool      // the row ends with it
	event int64     // its event's number
	at    till.Time // its event's time
}

// noteMove notes a change for the counts and the log, which are written after the commit.
func (b *Recording[R]) noteMove(row R, to string) {
	p := row.Subject()
	m := move{ref: p.Ref, status: to, by: "client", final: p.Final, at: *p.UpdatedAt}
	m.event = *m.eventOf(p)
	if s := b.Steps[m.ref]; s != nil {
		m.sends, m.calls, m.callbacks = int64(s.Sends), int64(s.Calls), s.WakeSeq
	}
	switch a := b.answer; {
	case a == nil:
	case a.Action == Resolve:
		m.by = "person"
	case a.Action == Abandon:
		m.by = "engine"
	default:
		m.by = "operator"
	}
	b.moves = append(b.moves, m)
}

// committed counts and logs what the batch has changed, and what an earlier one of its rows
// turns out to have changed.
func (b *Recording[R]) committed() {
	b.trace()
	for _, m := range b.moves {
		b.tellMove(m)
	}
	for _, m := range b.foundMoves() {
		b.tellMove(m)
	}
	c := b.worker.counts
	for _, e := range b.events {
		if strings.HasSuffix(string(e.Kind), ".reversed") {
			noun, connection := b.placeOf(e.ClientID, e.SubjectID)
			c.subjects[noun].Reversed(connection)
		}
	}
	for _, e := range b.entries {
		for _, posting := range e.Postings {
			if posting.Account.Kind == ledger.Receivable && posting.Amount < 0 {
				noun, connection := b.placeOf(e.ClientID, e.Subject())
				c.subjects[noun].Owed(connection)
			}
		}
	}
}

// tellMove counts one change. The line of a payment or payout that ended, or whose money
// moved after its end, always has all fields; a golden test holds the list.
func (b *Recording[R]) tellMove(m move) {
	p, w, late := b.Rows[m.ref].Subject(), b.worker, m.status == moveLate
	if late {
		w.counts.subjects[p.Noun].Late(p.Connection)
	} else {
		w.counts.subjects[p.Noun].Moved(p.Method, m.status)
	}
	if !m.final {
		return
	}
	if !late {
		w.counts.subjects[p.Noun].Ended(p.Connection, m.status == string(till.Success), m.at.Sub(p.CreatedAt))
	}
	plain := !late && p.Settled && m.sends <= 1 && m.by == "operator"
	if n := int64(w.c.LogEnded); plain && n > 1 && w.counts.plain.Add(1)%n != 1 {
		return
	}
	w.c.Log.LogAttrs(context.Background(), slog.LevelInfo, "ended",
		slog.String("kind", string(p.Noun)), slog.String("id", p.Ref.ID.String()), slog.String("client", p.Ref.Client.String()),
		slog.String("connection", p.Connection), slog.String("method", p.Method), slog.String("status", p.Status),
		slog.String("reason", string(*p.FailureReason)), slog.String("resolution", string(p.Resolution.State)),
		slog.Int64("minor", p.Amount.Minor), slog.String("currency", p.Amount.Currency),
		slog.Int64("sends", m.sends), slog.Int64("calls", m.calls), slog.Int64("callbacks", m.callbacks),
		slog.Float64("seconds", p.UpdatedAt.Sub(p.CreatedAt).Seconds()), slog.Bool("late", late), slog.String("by", m.by))
}

// placeOf returns what a subject of the batch is called, and its connection; "" if it is of none.
func (b *Recording[R]) placeOf(client, subject till.ID) (noun till.Noun, connection string) {
	if row, found := b.Rows[store.Ref{Client: client, ID: subject}]; found {
		s := row.Subject()
		return s.Noun, s.Connection
	}
	return till.Noun(b.worker.kind), ""
}

// trace records the spans of a batch that is committed: one for each answer, and the root
// span of each subject that has ended.
func (b *Recording[R]) trace() {
	tracer := b.worker.c.Tracer
	if tracer == nil {
		return
	}
	now := b.worker.c.Store.Now()
	for _, m := range b.moves {
		if m.status == moveLate && !tracer.Wants(m.ref.ID) {
			b.traceRoot(m, now) // its end had no trouble, so its root span was not sent
		}
	}
	for _, c := range b.cases {
		tracer.Follow(c.SubjectID)
	}
	for _, m := range b.moves {
		switch {
		case m.status == moveLate:
			tracer.Follow(m.ref.ID)
		case b.Rows[m.ref].Subject().Final:
			if m.sends > 1 {
				tracer.Follow(m.ref.ID)
			}
			if tracer.Wants(m.ref.ID) {
				b.traceRoot(m, *b.Rows[m.ref].Subject().UpdatedAt)
			}
		}
	}
	for _, a := range b.answers {
		row, found := b.Rows[a.Ref]
		if !found || a.RecordErr != nil || !tracer.Wants(a.Ref.ID) {
			continue
		}
		s := row.Subject()
		span := trace.Child(a.Ref.ID, "apply", trace.Internal)
		span.Start, span.End = a.Ended, now
		span.Text(attrConnection, s.Connection)
		span.Text(attrStatus, s.Status)
		span.Int(attrBatch, int64(len(b.answers)))
		span.Int(attrWait, max(b.Tx.Now().Sub(a.Ended), 0).Microseconds())
		tracer.Record(&span)
	}
}

// traceRoot records a subject's root span, from its creation to its end.
func (b *Recording[R]) traceRoot(m move, end till.Time) {
	s := b.Rows[m.ref].Subject()
	span := trace.Span{Trace: m.ref.ID, ID: trace.RootID(m.ref.ID), Name: b.table.Name(), Start: s.CreatedAt, End: end}
	span.Text(attrKind, string(b.table.Kind))
	span.Text(attrMethod, s.Method)
	span.Text(attrConnection, s.Connection)
	span.Text(attrCurrency, s.Amount.Currency)
	span.Text(attrStatus, s.Status)
	span.Text(attrReason, string(*s.FailureReason))
	span.Text(attrBy, m.by)
	span.Int(attrSends, m.sends)
	span.Int(attrCalls, m.calls)
	span.Int(attrCallbacks, m.callbacks)
	b.worker.c.Tracer.Record(&span)
}
