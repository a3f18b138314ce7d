package engine

import (
	"strings"
	"sync/atomic"

	"till"
	"till/internal/limit"
	"till/ledger"
	"till/meter"
	"till/store"
)

// counts is what a Worker counts. Every handle is nil if there is no Meter.
type counts struct {
	submits, checks map[string]*meter.Operation // by connection
	subjects        *meter.Subjects
	oldest          map[string]*atomic.Int64 // by lane: when its oldest step is due; 0: there is none

	troubled map[string]*limit.Lines // by connection: lines about calls without an answer
	plain    atomic.Int64
}

// createBatchName is the name of a kind's queue of creates.
func createBatchName(kind till.SubjectKind) string {
	if kind == till.SubjectPayout {
		return "payout"
	}
	return "create"
}

func newCounts(w *Worker) *counts {
	m, kind := w.c.Meter, string(w.kind)
	c := &counts{submits: map[string]*meter.Operation{}, checks: map[string]*meter.Operation{}, oldest: map[string]*atomic.Int64{}, troubled: map[string]*limit.Lines{}}
	c.subjects = m.NewSubjects(kind, statusesOf(w.kind))
	for name, p := range w.c.Connections {
		c.troubled[name] = &limit.Lines{Most: 1}
		for _, action := range []Action{Submit, Check} {
			o := w.operation(name, action).Name
			by, timeout := c.checks, p.Traits().CheckTimeout
			if action == Submit {
				by, timeout = c.submits, p.Traits().SubmitTimeout
			}
			by[name] = m.NewOperation(name, o)
			due := &atomic.Int64{}
			c.oldest[w.lane(name, action)] = due
			m.Gauge("operator_timeout_seconds", func() float64 { return timeout.Seconds() }, name, o)
			m.Gauge("step_oldest_due_seconds", func() float64 { return w.sinceDue(due.Load()) }, name, o)
		}
		m.Gauge("operator_in_flight", func() float64 { return float64(w.slots.taken(name)) }, name)
		m.Gauge("operator_state", func() float64 { return stateNumber(w.health.view(name)) }, name, kind)
	}
	return c
}

func statusesOf(kind till.SubjectKind) (out []string) {
	if kind == till.SubjectPayout {
		for _, s := range till.PayoutStatuses {
			out = append(out, string(s))
		}
		return out
	}
	for _, s := range till.Statuses {
		out = append(out, string(s))
	}
	return out
}

// sinceDue returns for how many seconds a step has been due.
func (w *Worker) sinceDue(due int64) float64 {
	if due == 0 {
		return 0
	}
	return max(0, w.c.Store.Now().Sub(till.Time(due)).Seconds())
}

func stateNumber(v *view) float64 {
	switch {
	case v == nil || v.state == store.Passing:
		return 0
	case v.state == store.Probing:
		return 1
	}
	return 2
}

// noteDue notes when the oldest step of each lane is due.
func (c *counts) noteDue(lanes []string, times []till.Time) {
	for i, lane := range lanes {
		if due := c.oldest[lane]; due != nil {
			due.Store(int64(times[i]))
		}
	}
}

// of returns the handle of an operation; nil counts nothing.
func (c *counts) of(connection string, action Action) *meter.Operation {
	if action == Submit {
		return c.submits[connection]
	}
	return c.checks[connection]
}

// moveLate stands for the money that moved after the end, which changes no status.
const moveLate = "late"

// move is a change of status, with what is told about it.
type move struct {
	ref                     store.Ref
	status                  string
	sends, calls, callbacks int64
	by                      string

	final bool      // the row ends with it
	event int64     // its event's number
	at    till.Time // its event's time
}

// noteMove notes a change for the counts and the log, which are told after the commit.
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
			c.subjects.Reversed(b.connectionOf(e.ClientID, e.SubjectID))
		}
	}
	for _, e := range b.entries {
		for _, posting := range e.Postings {
			if posting.Account.Kind == ledger.Receivable && posting.Amount < 0 {
				c.subjects.Owed(b.connectionOf(e.ClientID, e.Subject()))
			}
		}
	}
}

// tellMove counts and logs one change.
func (b *Recording[R]) tellMove(m move) {
	p, c := b.Rows[m.ref].Subject(), b.worker.counts
	if m.status == moveLate {
		c.subjects.Late(p.Connection)
	} else {
		c.subjects.Moved(p.Method, m.status)
		if m.final {
			c.subjects.Ended(p.Connection, m.status == string(till.Success), m.at.Sub(p.CreatedAt))
		}
	}
	if m.final {
		b.worker.logEnded(p, m)
	}
}

func (b *Recording[R]) connectionOf(client, subject till.ID) string {
	if row, found := b.Rows[store.Ref{Client: client, ID: subject}]; found {
		return row.Subject().Connection
	}
	return ""
}
