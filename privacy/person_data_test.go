package privacy_test

import (
	"fmt"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/privacy"
	"till/store"
	"till/store/lookup"
	"till/store/storetest"
	"till/upkeep"
)

// A person's file has every payment and payout of the phone, of every client, whether the
// index has it yet or not, once each and with its events; and nothing of others.
func TestPersonData(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newPhoneWorld(t, e)
			const mine, others = "242061230001", "242061230002"
			var want []till.ID
			add := func(c *till.Client, phone string) {
				if id := w.pay(c, phone, ""); phone == mine {
					want = append(want, id)
				}
			}
			for range 5 {
				add(w.a, mine)
				add(w.a, others)
			}
			w.index(t, 10)
			for range 3 {
				add(w.a, others)
				add(w.a, mine)
				add(w.a, mine)
			}
			add(w.b, mine)
			var got []till.ID
			read := func(phone string) []till.ID {
				got = nil
				if err := privacy.PersonDataInPages(t.Context(), w.store, w.key, phone, 2, 3, func(r *privacy.PersonRecord) error {
					var of, client till.ID
					var about string
					if r.Payment != nil {
						of, client, about = r.Payment.ID, r.Payment.ClientID, r.Payment.Phone
					} else {
						of, client, about = r.Payout.ID, r.Payout.ClientID, r.Payout.Phone
					}
					if about != phone || r.Client != client || len(r.Events) == 0 || r.Events[0].SubjectID != of {
						t.Errorf("%+v", r)
					}
					got = append(got, of)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				return got
			}
			byID := func(ids []till.ID) map[till.ID]int {
				out := map[till.ID]int{}
				for _, id := range ids {
					out[id]++
				}
				return out
			}
			if fmt.Sprint(byID(read(mine))) != fmt.Sprint(byID(want)) {
				t.Errorf("got %v, want %v", got, want)
			}
			if len(read("242069999999")) > 0 {
				t.Errorf("nobody's file has %v", got)
			}
			w.index(t, 10)
			if fmt.Sprint(byID(read(mine))) != fmt.Sprint(byID(want)) {
				t.Errorf("indexed: got %v, want %v", got, want)
			}

			storetest.Apply(t, w.pays, w.store, storetest.NewPayment(t, w.pays, w.a, storetest.Body{Phone: others, Value: "20000"}), storetest.Succeeded)
			m := storetest.NewDisburser(t, w.store)
			for range 3 {
				want = append(want, storetest.NewPayout(t, m, w.a, storetest.Body{Phone: mine, Value: "500"}, 0).ID)
				storetest.NewPayout(t, m, w.a, storetest.Body{Phone: others, Value: "500"}, 0)
			}
			if fmt.Sprint(byID(read(mine))) != fmt.Sprint(byID(want)) {
				t.Errorf("with payouts: got %v, want %v", got, want)
			}
			w.index(t, 7)
			if fmt.Sprint(byID(read(mine))) != fmt.Sprint(byID(want)) {
				t.Errorf("with payouts, indexed: got %v, want %v", got, want)
			}
		})
	}
}

// phoneWorld is two clients with payments.
type phoneWorld struct {
	store *store.Store
	key   lookup.PhoneKey
	a, b  *till.Client
	pays  *collect.Collector
	t     *testing.T
}

func newPhoneWorld(t *testing.T, e storetest.Engine) *phoneWorld {
	t.Helper()
	w := &phoneWorld{t: t, store: storetest.Open(t, e.Config(t))}
	w.pays = storetest.NewCollector(t, w.store)
	w.a, w.b = storetest.NewClient(t, w.store, till.Test), storetest.NewClient(t, w.store, till.Test)
	var err error
	if w.key, err = lookup.NewPhoneKey([]byte("a secret for tests only")); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *phoneWorld) pay(c *till.Client, phone, reference string) till.ID {
	return storetest.NewPayment(w.t, w.pays, c, storetest.Body{Phone: phone, Reference: reference}).ID
}

// index fills the index up to now, and expects so many new rows.
func (w *phoneWorld) index(t *testing.T, want int) {
	t.Helper()
	n, err := upkeep.IndexPhones(t.Context(), w.store, w.key, w.store.Now().Add(time.Second))
	if err != nil || n != want {
		t.Errorf("%d rows were indexed, want %d: %v", n, want, err)
	}
}
