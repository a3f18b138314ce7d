package api

import (
	"net/http"
	"time"

	"till/internal/trace"
)

// acceptTrace reads the caller's trace context. Only a client's own requests have one:
// anybody else could make us send spans.
func (c *exchange) acceptTrace() {
	if c.s.Tracer != nil && c.session != nil {
		c.caller = c.s.Tracer.Accept(c.r.Header["Traceparent"], c.start)
	}
}

// trace records the span of a request whose caller asks for it: in the caller's trace, with
// a link to the payment or payout.
func (c *exchange) trace(took time.Duration) {
	if !c.caller.Asks() {
		return
	}
	now := c.s.Store.Now()
	span := trace.Span{
		Trace: c.caller.Trace, ID: c.caller.Span, Parent: c.caller.Parent, Name: c.name(), Kind: trace.Server,
		Start: now.Add(-took), End: now, Failed: c.status >= http.StatusInternalServerError,
	}
	if !c.subject.IsZero() {
		span.Link = trace.Link{Trace: c.subject, Span: trace.RootID(c.subject)}
	}
	span.Text("http.request.method", c.route.Method)
	span.Text("http.route", "/v1"+c.route.Path)
	span.Int("http.response.status_code", int64(c.status))
	span.Text("till.code", string(c.code))
	span.Text("till.request_id", c.id)
	c.s.Tracer.Record(&span)
}
