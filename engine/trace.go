package engine

import (
	"regexp"

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
