package engine

import (
	"regexp"
	"time"

	"till"
	"till/internal/trace"
	"till/store"
)

// The attributes of spans. None may hold a phone, an amount, a name or a key.
const (
	attrKind       = "till.kind"
	attrMethod     = "till.method"
	attrConnection = "till.connection"
	attrCurrency   = "till.currency"
	attrStatus     = "till.status"
	attrReason     = "till.reason"
	attrOutcome    = "till.outcome"
	attrCode       = "till.code"
	attrError      = "till.error"
	attrAttempt    = "till.attempt"
	attrSends      = "till.sends"
	attrCalls      = "till.calls"
	attrCallbacks  = "till.callbacks"
	attrBy         = "till.by"
	attrBatch      = "till.batch"
	attrWait       = "till.wait_us" // microseconds in the queue before the commit
)

// traceCreates records a span for each new row that is traced, by its own id or because the
// caller asks for it.
func (p *Processor[R]) traceCreates(calls []*CreateCall[R], began till.Time) {
	if p.c.Tracer == nil {
		return
	}
	now := p.c.Store.Now()
	for _, call := range calls {
		if !call.made() {
			continue
		}
		s := call.Row.Subject()
		caller := call.Client.Caller
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

// traceCall records the span of a call to an operator. A call without an answer and a
// second send are trouble: from then on all spans of the subject are sent.
func (w *Worker) traceCall(t *Task, a *Answer, took time.Duration) {
	tracer := w.c.Tracer
	if tracer == nil {
		return
	}
	if a.Err != nil || troubledStep(&t.Step) {
		tracer.Follow(a.Ref.ID)
	}
	if !tracer.Wants(a.Ref.ID) {
		return
	}
	span := trace.Child(a.Ref.ID, string(a.Action), trace.Client)
	span.Start, span.End, span.Failed = a.Ended.Add(-took), a.Ended, a.Err != nil
	attempt := int64(t.Step.Sends)
	if a.Action != Submit {
		attempt = int64(t.Step.Calls) + 1
	}
	span.Text(attrConnection, a.Connection)
	span.Text(attrOutcome, string(a.Result.Outcome))
	span.Text(attrCode, traceableCode(a.Result.Code))
	span.Text(attrError, callError(a.Err))
	span.Int(attrAttempt, attempt)
	tracer.Record(&span)
}

// troubledStep reports whether a step shows that its subject had trouble, on whichever
// instance.
func troubledStep(s *store.Step) bool { return s.Sends > 1 || s.HeldAt != 0 || s.Restored }

// maxTraceableCode is the longest operator's code in a span, in bytes.
const maxTraceableCode = 64

// darajaCode is a code of Safaricom's gateway, as 500.001.1001: it has more digits than
// others, and begins with the status of an HTTP error.
var darajaCode = regexp.MustCompile(`^[45]\d\d\.\d{3}\.\d{2,4}$`)

// traceableCode returns an operator's code, "" if it looks like a text or has so many
// digits that it may be somebody's number: operators write what they like.
func traceableCode(code string) string {
	if len(code) > maxTraceableCode {
		return ""
	}
	if darajaCode.MatchString(code) {
		return code
	}
	digits := 0
	for i := range len(code) {
		switch c := code[i]; {
		case '0' <= c && c <= '9':
			if digits++; digits > 6 {
				return ""
			}
		case 'a' <= c|0x20 && c|0x20 <= 'z', c == '_', c == '-', c == '.':
		default:
			return ""
		}
	}
	return code
}

// traceCallback records the span of a callback, from its arrival to its commit.
func (p *Processor[R]) traceCallback(w *callback, came till.Time, err error) {
	if !p.c.Tracer.Wants(w.ref.ID) || w.unknown {
		return
	}
	span := trace.Child(w.ref.ID, "callback", trace.Server)
	span.Start, span.End, span.Failed = came, p.c.Store.Now(), err != nil || w.err != nil
	if _, known := p.traits(w.connection); known {
		span.Text(attrConnection, w.connection)
	}
	p.c.Tracer.Record(&span)
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
