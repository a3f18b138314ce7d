package payout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"till"
	"till/engine"
	"till/provider"
	"till/provider/sandbox"
)

func without(c *engine.Config) { c.Connections = map[string]provider.Provider{} }

// Instances that do not have a connection leave the steps of its payouts alone,
// notify a person once their time is over, and release nothing.
func TestAnInstanceLeavesAloneWhatItHasNoConnectionFor(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute, PollInterval: time.Second}, func(t *testing.T, w *world) {
		w.stop()
		w.restart(onlyAccepts)
		soon := w.create("4567").ID
		before := w.step(soon)
		_, stop := w.start(without)
		defer stop()
		time.Sleep(50 * time.Second)
		if d := cmp.Diff(w.step(soon), before); d != "" {
			t.Errorf("a step that nobody could act on has changed (-now +before)\n%s", d)
		}
		_, stopWork := w.start()
		time.Sleep(5 * time.Second)
		if p := w.payout(soon); p.Status != till.PayoutSuccess {
			t.Errorf("with the connection it is %s", p.Status)
		}
		stopWork()

		lost := w.create("4567").ID
		before = w.step(lost)
		time.Sleep(4 * time.Minute)
		if p := w.payout(lost); p.Status != till.PayoutPending || p.Resolution.State != till.NeedsAttention || w.cases(lost) != "overdue" {
			t.Errorf("after its time: %s, %s, cases %q; want pending, needs_attention, overdue", p.Status, p.Resolution.State, w.cases(lost))
		}
		if d := cmp.Diff(w.step(lost), before); d != "" {
			t.Errorf("whoever told a person has changed the step (-now +before)\n%s", d)
		}
		w.wantWallet(t, 1000, 1000, 0)
	})
}
