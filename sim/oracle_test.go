package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"till/provider/simulator"
	"till/store/storetest"
)

// The oracle sees each contradiction between books that its checks are for. The books are
// right at first, and then somebody writes into one of them.
func TestTheOracleSees(t *testing.T) {
	t.Parallel()
	of := func(w *World, kind string) *row {
		for _, r := range w.rows() {
			if r.kind == kind {
				return r
			}
		}
		t.Fatalf("there is no %s", kind)
		return nil
	}
	add := func(w *World, e simulator.Entry) {
		if _, _, err := w.operators["mtnmomo"].book.Add(e); err != nil {
			t.Error(err)
		}
	}
	paid := simulator.Plan{State: simulator.Success}
	for _, c := range []struct {
		name, want string
		spoil      func(w *World)
	}{
		{"a second debit", "taken twice", func(w *World) {
			add(w, simulator.Entry{Kind: "payment", External: of(w, "payment").reference, Amount: "1000", Plan: paid})
		}},
		{"another amount", "500 instead of 1000", func(w *World) {
			r := of(w, "payment")
			w.operators["mtnmomo"].book, _ = simulator.OpenBook("", nil)
			add(w, simulator.Entry{Kind: "payment", External: r.reference, Amount: "500", Plan: paid})
		}},
		{"a success that no operator has", "invented", func(w *World) { w.operators["mtnmomo"].book, _ = simulator.OpenBook("", nil) }},
		{"a debit that we do not have", "which we do not have", func(w *World) {
			add(w, simulator.Entry{Kind: "payout", External: "5f5e1000-0000-4000-8000-00000000000f", Amount: "1", Plan: paid})
		}},
		{"a payment elsewhere", "elsewhere, at airtel", func(w *World) {
			w.operators["mtnmomo"].book, w.operators["airtel"].book = w.operators["airtel"].book, w.operators["mtnmomo"].book
		}},
		{"a second id for a key", "client's book", func(w *World) {
			for _, o := range w.answers.orders {
				o.others = append(o.others, "another")
			}
		}},
		{"an order that the client does not know", "client's book", func(w *World) { clear(w.answers.orders) }},
		{"an event that did not arrive", "did not arrive", func(w *World) { clear(w.shop.book); clear(w.shop.last) }},
		{"a state that was not the last", "the last state", func(w *World) {
			for id, e := range w.shop.last {
				e.Data.Payment = &struct{ ID, Status string }{id, "pending"}
				w.shop.last[id] = e
			}
		}},
		{"a forged delivery", "no good signature", func(w *World) { w.shop.forged++ }},
		{"more given back than was paid", "900 of 100 is given back", func(w *World) {
			storetest.Raw(w.T, w.path, `DROP TRIGGER payouts_refund; UPDATE payouts SET payment_id = (SELECT id FROM payments WHERE amount = 100)`)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var found []string
			s := &story{name: c.name, options: Options{Receiver: true}, prepare: newest, tell: func(w *World) {
				p := w.Pay("mtnmomo", mtnWell, 1000)
				if c.want == "900 of 100 is given back" {
					w.Pay("mtnmomo", mtnWell, 100)
					w.Await(p, "success", 20*time.Minute)
					w.Refund(p, 900)
				}
			}, spoil: func(w *World) {
				c.spoil(w)
				w.wrong = func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
			}}
			play(t, s, &faultKind{}, effect{})
			if !strings.Contains(strings.Join(found, "; "), c.want) {
				t.Errorf("found is %q, want %q", found, c.want)
			}
		})
	}
}
