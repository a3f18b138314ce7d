package webhook

import (
	"context"
	"log/slog"

	"till"
	"till/store"
)

// count counts an attempt, and writes the line of one that failed. All fields are always
// there; a golden test holds the list. The line names the host of the endpoint only: a
// path may hold a secret.
func (s *chunkSend) count(it *chunkItem, a Response, began till.Time) {
	d, attempt := s.d, 1
	if it.row != nil {
		attempt = it.row.Attempts + 1
	}
	d.attempts.Attempt(resultOf(a), a.Took)
	s.trace(it, a, began, attempt)
	// The backlog of an endpoint that was failing is late through its own fault.
	if created := s.w.createdAt[it.Sequence]; attempt == 1 && !it.requested() && !it.replay && !created.IsZero() && s.w.e.Failures == 0 && s.w.e.ThrottleUntil == 0 {
		d.attempts.First(began.Sub(created))
	}
	if a.Delivered() || a.Problem == ProblemCancelled {
		return
	}
	level := slog.LevelInfo
	if attempt >= MaxAttempts {
		level = slog.LevelWarn // the last one
	}
	d.c.Log.LogAttrs(context.Background(), level, "delivery",
		slog.String("endpoint", s.w.e.ID.String()), slog.String("client", s.w.e.ClientID.String()), slog.String("host", d.c.Sender.Host(s.w.e.URL)),
		slog.Int64("sequence", it.Sequence), slog.Int("attempt", attempt), slog.String("result", resultOf(a)),
		slog.Int("status", a.Status), slog.String("problem", a.Problem), slog.Duration("took", a.Took))
}

// resultOf is the result of an attempt in a metric's words.
func resultOf(a Response) string {
	switch {
	case a.Delivered():
		return "delivered"
	case a.Gone():
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
func (d *Dispatcher) logDisabled(e *store.Endpoint) {
	d.c.Log.LogAttrs(context.Background(), slog.LevelWarn, "changed",
		slog.String("what", "endpoint"), slog.String("id", e.ID.String()), slog.String("from", "enabled"), slog.String("to", "disabled"), slog.String("why", string(e.DisableReason)))
}
