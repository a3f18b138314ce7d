package trace

import (
	"encoding/hex"
	"time"

	"till"
)

// Caller is the span that serves a request, in the trace of the request's sender. The zero
// value means that the sender does not ask for a trace.
type Caller struct {
	Trace  till.ID
	Parent SpanID // the sender's
	Span   SpanID // ours
}

// Asks reports whether the sender asks for a trace.
func (c Caller) Asks() bool { return c.Span != SpanID{} }

// Link returns a link to the span that serves the request.
func (c Caller) Link() Link { return Link{c.Trace, c.Span} }

// Accept reads the traceparent headers of a request. It ignores all but one valid, sampled
// header, and headers beyond maxCallers in a second: clients choose them.
func (t *Tracer) Accept(headers []string, now time.Time) (c Caller) {
	if t == nil || len(headers) != 1 {
		return c
	}
	trace, parent, sampled := parseParent(headers[0])
	if !sampled || !t.allowCaller(now) {
		return c
	}
	return Caller{Trace: trace, Parent: parent, Span: newSpanID()}
}

func (t *Tracer) allowCaller(now time.Time) bool {
	t.followMu.Lock()
	defer t.followMu.Unlock()
	if now.Sub(t.callersSecond) >= time.Second {
		t.callersSecond, t.callers = now, 0
	}
	t.callers++
	return t.callers <= maxCallers
}

// parseParent reads a traceparent header of W3C Trace Context: 00-TRACE-PARENT-FLAGS in
// lower case. A later version may have more parts.
func parseParent(text string) (trace till.ID, parent SpanID, sampled bool) {
	const length = 55
	if len(text) < length || text[2] != '-' || text[35] != '-' || text[52] != '-' || text[:2] == "ff" {
		return trace, parent, false
	}
	if text[:2] == "00" && len(text) != length || len(text) > length && text[length] != '-' {
		return trace, parent, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		from string
	}{{version[:], text[:2]}, {trace[:], text[3:35]}, {parent[:], text[36:52]}, {flags[:], text[53:55]}} {
		for i := range len(part.from) {
			if c := part.from[i]; 'A' <= c && c <= 'F' {
				return till.ID{}, SpanID{}, false
			}
		}
		if _, err := hex.Decode(part.to, []byte(part.from)); err != nil {
			return till.ID{}, SpanID{}, false
		}
	}
	return trace, parent, flags[0]&1 == 1 && !trace.IsZero() && parent != SpanID{}
}
