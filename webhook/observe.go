package webhook

import (
	"context"
	"log/slog"

	"till"
	"till/internal/trace"
	"till/store/webhooks"
)

// observe reports an attempt that has ended to the meter, the log and the trace. All fields
// of the line are always there; a golden test holds the list. Line and span name the host of
// the endpoint only: a path may hold a secret. An attempt that failed is trouble: from then
// on all spans of the subject are sent.
func (s *chunkSend) observe(it *chunkItem, a Response, began till.Time) {
	d, e, attempt := s.d, s.w.e, 1
	if it.row != nil {
		attempt = it.row.Attempts + 1
	}
	result, failed := resultOf(a), !a.Delivered() && a.Problem != ProblemCancelled
	d.attempts.Attempt(result, a.Took)
	// The backlog of an endpoint that was failing is late through its own fault.
	if created := s.w.createdAt[it.Sequence]; attempt == 1 && !it.requested() && !it.replay && !created.IsZero() && e.Failures == 0 && e.ThrottleUntil == 0 {
		d.attempts.First(began.Sub(created))
	}
	if failed {
		level := slog.LevelInfo
		if attempt >= MaxAttempts {
			level = slog.LevelWarn // the last one
		}
		d.c.Log.LogAttrs(context.Background(), level, "delivery",
			slog.String("endpoint", e.ID.String()), slog.String("client", e.ClientID.String()), slog.String("host", d.c.Sender.Host(e.URL)),
			slog.Int64("sequence", it.Sequence), slog.Int("attempt", attempt), slog.String("result", result),
			slog.Int("status", a.Status), slog.String("problem", a.Problem), slog.Duration("took", a.Took))
	}
	tracer := d.c.Tracer
	if tracer == nil || it.subject.IsZero() {
		return
	}
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
	span.Text("till.outcome", result)
	span.Text("server.address", d.c.Sender.Host(e.URL))
	span.Int("till.attempt", int64(attempt))
	if a.Status != 0 {
		span.Int("http.response.status_code", int64(a.Status))
	}
	tracer.Record(&span)
}

// resultOf is the result of an attempt in a metric's words.
func resultOf(a Response) string {
	switch {
	case a.Delivered():
		return "delivered"
	case a.gone():
		return "gone"
	case a.Problem == ProblemTimeout:
		return "timeout"
	case a.Problem == ProblemAddressRefused:
		return "guarded"
	case a.Status != 0:
		return "refused"
	}
	return "unreachable"
}

// logDisabled writes the line of an endpoint that was disabled because it failed.
func (d *Dispatcher) logDisabled(e *webhooks.Endpoint) {
	d.c.Log.LogAttrs(context.Background(), slog.LevelWarn, "changed",
		slog.String("what", "endpoint"), slog.String("id", e.ID.String()), slog.String("from", "enabled"), slog.String("to", "disabled"), slog.String("why", string(e.DisableReason)))
}
