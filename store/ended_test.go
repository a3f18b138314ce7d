package store_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"till"
	"till/engine"
	"till/internal/db/pgtest"
	"till/meter"
	"till/store"
	"till/store/storetest"
)

// endedLines is a log that counts the lines "ended", by id.
type endedLines struct {
	slog.Handler
	mu    sync.Mutex
	lines map[string]int
}

func (l *endedLines) Enabled(context.Context, slog.Level) bool { return true }

func (l *endedLines) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *endedLines) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "ended" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "id" {
			l.lines[a.Value.String()]++
		}
		return true
	})
	return nil
}

// However often a commit is cut, and whatever became of it, the end of a payment and of a
// payout is logged and counted once, by a commit that is known.
func TestAnEndIsToldOnce(t *testing.T) {
	t.Parallel()
	cuts := map[string][]pgtest.Cut{
		"not cut":                          nil,
		"the commit never arrived":         {pgtest.BeforeCommit},
		"its answer is lost":               {pgtest.AfterCommit},
		"never arrived, then answer lost":  {pgtest.BeforeCommit, pgtest.AfterCommit},
		"the answers of both are lost":     {pgtest.AfterCommit, pgtest.AfterCommit},
		"neither arrived":                  {pgtest.BeforeCommit, pgtest.BeforeCommit},
		"the answer lost, then no arrival": {pgtest.AfterCommit, pgtest.BeforeCommit},
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			client := storetest.NewClient(t, l.straight, till.Test)
			log := &endedLines{Handler: slog.DiscardHandler, lines: map[string]int{}}
			m := meter.New(meter.Config{Connections: []string{storetest.Connection}, Methods: []string{"mtn_momo"}})
			told := func(c *engine.Config) { c.Log, c.Meter = slog.New(log), m }
			c := storetest.NewCollector(t, l.through, told)
			d := storetest.NewDisburser(t, l.through, told)
			rich := storetest.NewCollector(t, l.straight)
			storetest.Apply(t, rich, l.straight, storetest.NewPayment(t, rich, client, storetest.Body{Value: "50000"}), storetest.Succeeded)

			paid := storetest.NewPayment(t, c, client, storetest.Body{})
			cancelled := storetest.NewPayout(t, d, client, storetest.Body{}, 0)
			until(t, func() bool {
				l.proxy.CutNext(cut...)
				cut = nil
				a := &engine.Answer{Ref: store.Ref{Client: client.ID, ID: paid.ID}, Action: engine.Check, Connection: paid.Connection, Reference: paid.ID, Result: storetest.Succeeded}
				c.Apply(t.Context(), []*engine.Answer{a})
				return a.RecordErr == nil
			})
			cut = cuts[name]
			until(t, func() bool {
				l.proxy.CutNext(cut...)
				cut = nil
				_, err := d.Cancel(t.Context(), store.Ref{Client: client.ID, ID: cancelled.ID}, "api:test")
				return err == nil
			})
			if n := log.lines[paid.ID.String()]; n != 1 {
				t.Errorf("the payment's end has %d lines", n)
			}
			if n := log.lines[cancelled.ID.String()]; n != 1 {
				t.Errorf("the payout's end has %d lines", n)
			}
			page := httptest.NewRecorder()
			m.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
			text := page.Body.String()
			for _, want := range []string{`till_moves_total{kind="payment",method="mtn_momo",status="success"} 1`, `till_moves_total{kind="payout",method="mtn_momo",status="cancelled"} 1`} {
				if !strings.Contains(text, want) {
					t.Errorf("%s is not counted", want)
				}
			}
		})
	}
}

// until repeats what is refused while the database is away.
func until(t *testing.T, f func() bool) {
	t.Helper()
	for range 10 {
		if f() {
			return
		}
	}
	t.Fatal("refused ten times")
}
