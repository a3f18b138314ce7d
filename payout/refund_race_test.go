package payout_test

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"till"
	"till/engine"
	"till/payout"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// onTwoInstances gives f a shop whose refunds two instances make, each with a store of its own.
func onTwoInstances(t *testing.T, f func(t *testing.T, h *shop, instances []*payout.Disburser)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := e.Config(t)
			first, second := storetest.Open(t, c), storetest.Open(t, c)
			t.Cleanup(func() { storetest.CheckInvariants(t, first) })
			h := newShop(t, first)
			f(t, h, []*payout.Disburser{h.payouts, storetest.NewDisburser(t, second)})
		})
	}
}

// race asks for two hundred refunds or payouts at once. It returns how often each id was
// answered, and the codes of the refusals.
func race(t *testing.T, ask func(i int) (till.ID, error)) (made map[till.ID]int, refused map[till.Code]int) {
	t.Helper()
	made, refused = map[till.ID]int{}, map[till.Code]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range 200 {
		all.Go(func() {
			<-begin
			id, err := ask(i)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused[till.ErrorCode(err)]++
				return
			}
			made[id]++
		})
	}
	close(begin)
	all.Wait()
	return made, refused
}

// Two hundred refunds of 6 000 from 10 000 at once, on two instances: one is made, and the
// others are refused for the one reason or the other.
func TestTwoHundredRefundsAtOnce(t *testing.T) {
	t.Parallel()
	onTwoInstances(t, func(t *testing.T, h *shop, instances []*payout.Disburser) {
		h.pay(200 * paid) // the wallet would have enough for all of them
		for _, value := range []string{"6000", "4000", ""} {
			h.payment = h.pay(paid)
			made, refused := race(t, func(i int) (till.ID, error) {
				got, err := storetest.CreateRefund(t, instances[i%2], h.s, h.client, storetest.RefundBody{PaymentID: h.payment.ID.String(), Value: value})
				if err != nil {
					return till.ID{}, err
				}
				return got.Payout.ID, nil
			})
			code := till.CodeRefundInProgress
			if value == "6000" {
				code = till.CodeRefundExceeds
			}
			if len(made) != 1 || refused[code] != 199 {
				t.Errorf("%q: %d were made, and refused are %v", value, len(made), refused)
			}
		}
	})
}

// Two hundred calls with one key: it makes one refund, which all are told.
func TestTwoHundredCallsWithOneKeyMakeOneRefund(t *testing.T) {
	t.Parallel()
	onTwoInstances(t, func(t *testing.T, h *shop, instances []*payout.Disburser) {
		h.pay(200 * paid)
		b := storetest.RefundBody{PaymentID: h.payment.ID.String(), Key: till.NewID(1).String(), Value: "6000"}
		made, refused := race(t, func(i int) (till.ID, error) {
			got, err := storetest.CreateRefund(t, instances[i%2], h.s, h.client, b)
			if err != nil {
				return till.ID{}, err
			}
			return got.Payout.ID, nil
		})
		if len(made) != 1 || slices.Collect(maps.Values(made))[0] != 200 {
			t.Errorf("%d refunds have one key, and refused are %v", len(made), refused)
		}
		h.wantSums(6000, 0, 0)
	})
}

// A key that payouts and refunds bring at the same moment makes one of either, and the others
// are told which.
func TestOneKeyMakesAPayoutOrARefund(t *testing.T) {
	t.Parallel()
	onTwoInstances(t, func(t *testing.T, h *shop, instances []*payout.Disburser) {
		h.pay(200 * paid)
		key := till.NewID(1).String()
		made, refused := race(t, func(i int) (till.ID, error) {
			if i%4 < 2 {
				got, err := storetest.CreatePayout(t, instances[i%2], h.client, storetest.Body{Key: key, Value: "6000"}, 0)
				if err != nil {
					return till.ID{}, err
				}
				return got.Payout.ID, nil
			}
			got, err := storetest.CreateRefund(t, instances[i%2], h.s, h.client, storetest.RefundBody{PaymentID: h.payment.ID.String(), Key: key, Value: "6000"})
			if err != nil {
				return till.ID{}, err
			}
			return got.Payout.ID, nil
		})
		if len(made) != 1 || refused[till.CodeKeyReused] != 100 || len(refused) != 1 {
			t.Errorf("made are %v, refused %v", made, refused)
		}
	})
}

// A refund that had failed is paid late while the next one succeeds: in one commit, in either
// order, and in two at the same moment. What went back is booked, and there is one case.
func TestALateRefundAndTheNextSucceedTogether(t *testing.T) {
	t.Parallel()
	for name, together := range map[string]func(h *shop, instances []*payout.Disburser, late, next *engine.Answer){
		"the late one first": func(h *shop, m []*payout.Disburser, late, next *engine.Answer) {
			m[0].Apply(h.t.Context(), []*engine.Answer{late, next})
		},
		"the next one first": func(h *shop, m []*payout.Disburser, late, next *engine.Answer) {
			m[0].Apply(h.t.Context(), []*engine.Answer{next, late})
		},
		"each on its instance": func(h *shop, m []*payout.Disburser, late, next *engine.Answer) {
			var both sync.WaitGroup
			both.Go(func() { m[0].Apply(h.t.Context(), []*engine.Answer{late}) })
			both.Go(func() { m[1].Apply(h.t.Context(), []*engine.Answer{next}) })
			both.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onTwoInstances(t, func(t *testing.T, h *shop, instances []*payout.Disburser) {
				first := h.refunded("6000")
				h.answer(first, storetest.Declined)
				second := h.refunded("5000")
				word := func(p *till.Payout, receipt string) *engine.Answer {
					now := h.s.Now()
					return &engine.Answer{Ref: store.Ref{Client: p.ClientID, ID: p.ID}, Action: engine.Check, Connection: p.Connection,
						Reference: h.payouts.ReferenceOf(p), Started: now, Ended: now, Result: provider.Result{Outcome: provider.Success, Receipt: receipt}}
				}
				late, next := word(first, "R-1"), word(second, "R-2")
				together(h, instances, late, next)
				for _, a := range []*engine.Answer{late, next} {
					if a.RecordErr != nil {
						t.Error(a.RecordErr)
					}
				}
				h.wantSums(0, 5000, 6000)
				h.wantWallet(0, 0, 1000)
				if got := h.cases(); got != "late_money refunded_beyond" {
					t.Errorf("the cases are %q", got)
				}
			})
		})
	}
}
