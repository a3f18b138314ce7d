package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"till/provider"
	"till/store"
)

// logEnded writes the line of a payment or payout that ended, or whose money moved after
// its end. All fields are always there; a golden test holds the list.
func (w *Worker) logEnded(p store.Subject, m move) {
	late := m.status == moveLate
	plain := !late && p.Settled && m.sends <= 1 && m.by == "operator"
	if n := int64(w.c.LogEnded); plain && n > 1 && w.counts.plain.Add(1)%n != 1 {
		return
	}
	w.c.Log.LogAttrs(context.Background(), slog.LevelInfo, "ended",
		slog.String("kind", string(w.kind)), slog.String("id", p.Ref.ID.String()), slog.String("client", p.Ref.Client.String()),
		slog.String("connection", p.Connection), slog.String("method", p.Method), slog.String("status", p.Status),
		slog.String("reason", string(*p.FailureReason)), slog.String("resolution", string(p.Resolution.State)),
		slog.Int64("minor", p.Amount.Minor), slog.String("currency", p.Amount.Currency),
		slog.Int64("sends", m.sends), slog.Int64("calls", m.calls), slog.Int64("callbacks", m.callbacks),
		slog.Float64("seconds", p.UpdatedAt.Sub(p.CreatedAt).Seconds()), slog.Bool("late", late), slog.String("by", m.by))
}

// logBreaker writes the line of a circuit breaker that changed. Lines "changed" have the
// same fields everywhere; a golden test holds the list.
func (w *Worker) logBreaker(was, is *store.Breaker) {
	w.c.Log.LogAttrs(context.Background(), slog.LevelWarn, "changed",
		slog.String("what", "breaker"), slog.String("id", is.Connection), slog.String("from", string(was.State)), slog.String("to", string(is.State)),
		slog.String("why", fmt.Sprintf("stopped %d times without lasting recovery", is.Tries)))
}

// logCall writes the line of a call to an operator: at debug, or at warn if there was no
// answer, then at most one a second and connection.
func (w *Worker) logCall(t *Task, a *Answer, took time.Duration) {
	level, others := slog.LevelDebug, int64(0)
	if a.Err != nil {
		ok := false
		if others, ok = w.counts.troubled[a.Connection].Allow(time.Now()); ok {
			level = slog.LevelWarn
		}
	}
	if !w.c.Log.Enabled(context.Background(), level) {
		return
	}
	w.c.Log.LogAttrs(context.Background(), level, "call",
		slog.String("kind", string(w.kind)), slog.String("id", a.Ref.ID.String()), slog.String("connection", a.Connection),
		slog.String("action", string(a.Action)), slog.String("outcome", string(a.Result.Outcome)), slog.String("code", a.Result.Code),
		slog.String("error", callError(a.Err)), slog.Int64("sends", int64(t.Step.Sends)), slog.Duration("took", took), slog.Int64("others", others))
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
