package webhook

import (
	"till"
	"till/internal/trace"
)

// trace records the span of an attempt. An attempt that failed is trouble: from then on all
// spans of the subject are sent. The span names the host of the endpoint only: a path may
// hold a secret.
func (s *chunkSend) trace(it *chunkItem, a Response, began till.Time, attempt int) {
	tracer := s.d.c.Tracer
	if tracer == nil || it.subject.IsZero() {
		return
	}
	failed := !a.Delivered() && a.Problem != ProblemCancelled
	if failed || attempt > 1 {
		tracer.Follow(it.subject)
	}
	if !tracer.Wants(it.subject) {
		return
	}
	span := trace.Child(it.subject, "webhook", trace.Client)
	span.Start, span.End, span.Failed = began, began.Add(a.Took), failed
	if it.body != nil {
		span.Text("till.event", string(it.body.kind))
	}
	span.Text("till.outcome", resultOf(a))
	span.Text("server.address", s.d.c.Sender.Host(s.w.e.URL))
	span.Int("till.attempt", int64(attempt))
	if a.Status != 0 {
		span.Int("http.response.status_code", int64(a.Status))
	}
	tracer.Record(&span)
}
