package payout_test

import (
	"strings"
	"testing"

	"till/engine"
	"till/operators"
	"till/store"
	"till/store/storetest"
)

// A start that gives payments of a connection back in another way is refused while one of their
// refunds is open: made again after a restore, it would take another road.
func TestTheWayStaysWhileRefundsAreOpen(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		h := newShop(t, s)
		way := func(by engine.RefundBy) map[string]engine.Origin {
			return map[string]engine.Origin{storetest.Connection: {Refunds: by}, "another": {Refunds: engine.RefundByPayout}}
		}
		register := func(by engine.RefundBy) error { return operators.RegisterRefunds(t.Context(), s, way(by)) }
		recent := func() engine.RefundBy {
			before, at, err := operators.RecentChange(t.Context(), s, storetest.Connection)
			if err != nil || (before == "") != at.IsZero() {
				t.Fatal(before, at, err)
			}
			return before
		}
		for range 2 {
			if err := register(engine.RefundByPayout); err != nil || recent() != "" {
				t.Fatalf("at first, and without a change: %v, changed from %q", err, recent())
			}
		}
		open := h.refunded("1000")
		err := register(engine.RefundByOperator)
		if err == nil || !strings.Contains(err.Error(), `are given back in the way "payout", and one of their refunds is open: write refunds = "payout"`) {
			t.Errorf("while one is open: %v", err)
		}
		if err := operators.CheckRefunds(t.Context(), s, way(engine.RefundByOperator)); err == nil {
			t.Error("a command gives back in another way than the servers")
		}
		if err := register(engine.RefundByPayout); err != nil || recent() != "" {
			t.Errorf("no change: %v", err)
		}
		h.answer(open, storetest.Succeeded)
		if err := register(engine.RefundByOperator); err != nil || recent() != engine.RefundByPayout {
			t.Errorf("after it has ended: %v, changed from %q", err, recent())
		}
		if err := operators.CheckRefunds(t.Context(), s, way(engine.RefundByOperator)); err != nil {
			t.Error(err)
		}
		if err := register(engine.RefundByOperator); err != nil || recent() != engine.RefundByPayout {
			t.Errorf("the next start: %v, changed from %q", err, recent())
		}
	})
}
