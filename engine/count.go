package engine

import (
	"sync/atomic"

	"till"
	"till/internal/limit"
	"till/meter"
	"till/store/admin"
)

// counts is what a Worker counts. Every handle is nil if there is no Meter.
type counts struct {
	operations map[admin.Operation]*meter.Operation
	subjects   map[till.Noun]*meter.Subjects
	oldest     map[string]*atomic.Int64 // by lane: when its oldest step is due; 0: there is none

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
	c := &counts{operations: map[admin.Operation]*meter.Operation{}, oldest: map[string]*atomic.Int64{}, troubled: map[string]*limit.Lines{}}
	c.subjects = map[till.Noun]*meter.Subjects{}
	if w.kind == till.SubjectPayout {
		for _, noun := range []till.Noun{till.NounPayout, till.NounRefund} {
			c.subjects[noun] = m.NewSubjects(string(noun), words(till.PayoutStatuses))
		}
	} else {
		c.subjects[till.NounPayment] = m.NewSubjects(kind, words(till.Statuses))
	}
	for name, p := range w.c.Connections {
		c.troubled[name] = &limit.Lines{Most: 1}
		for _, action := range []Action{Submit, Check} {
			o, timeout := w.operation(name, action), p.Traits().CheckTimeout
			if action == Submit {
				timeout = p.Traits().SubmitTimeout
			}
			c.operations[o] = m.NewOperation(name, o.Name)
			due := &atomic.Int64{}
			c.oldest[w.lane(name, action)] = due
			m.Gauge("operator_timeout_seconds", func() float64 { return timeout.Seconds() }, name, o.Name)
			m.Gauge("step_oldest_due_seconds", func() float64 { return w.sinceDue(due.Load()) }, name, o.Name)
		}
		m.Gauge("operator_in_flight", func() float64 { return float64(w.slots.taken(name)) }, name)
		m.Gauge("operator_state", func() float64 { return stateNumber(w.health.view(name)) }, name, kind)
	}
	return c
}

func words[T ~string](all []T) (out []string) {
	for _, one := range all {
		out = append(out, string(one))
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
	case v == nil || v.state == admin.Passing:
		return 0
	case v.state == admin.Probing:
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

// counted returns the handle of an operation; nil counts nothing.
func (w *Worker) counted(connection string, action Action) *meter.Operation {
	return w.counts.operations[w.operation(connection, action)]
}
