package books_test

import (
	"fmt"
	"testing"
	"time"

	"till"
	"till/books"
	"till/collect"
	"till/store"
	"till/store/storetest"
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
				if err := books.PersonDataInPages(t.Context(), w.store, w.key, phone, 2, 3, func(r *books.PersonRecord) error {
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

// A receiver's answer goes after its time, and nothing else of the delivery does.
func TestOldAnswersAreCleared(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, engine.Config(t))
			client := storetest.NewClient(t, s, till.Test)
			now := s.Now()
			old, young := now.Add(-books.AnswersKept-1_000_000), now.Add(-books.AnswersKept+60_000_000_000)
			e := &store.Endpoint{Endpoint: till.Endpoint{ID: till.NewID(now), ClientID: client.ID, URL: "https://shop.example.com/h", Enabled: true, CreatedAt: now, UpdatedAt: now}, Secret: []byte("sealed")}
			var rows []*store.Delivery
			const n = 1200 // more than two commits
			for i := range n {
				at := old
				if i%2 == 1 {
					at = young
				}
				rows = append(rows, &store.Delivery{ClientID: client.ID, EndpointID: e.ID, Sequence: int64(i), Kind: store.DeliverTest, ID: till.NewID(at), SubjectID: e.ID, Status: store.DeliveryDelivered,
					Attempts: 1, DueAt: at, CreatedAt: at, UpdatedAt: at, Last: store.DeliveryAttempt{SentAt: at, URL: e.URL, Code: 200, Text: "thank you, Mado"}})
			}
			if err := s.Update(t.Context(), func(tx *store.Tx) error {
				if err := tx.InsertEndpoint(t.Context(), e); err != nil {
					return err
				}
				return tx.SaveDeliveries(t.Context(), rows)
			}); err != nil {
				t.Fatal(err)
			}
			turn := books.NewRetentionTurn(s)
			for _, want := range []string{`{"answers":600}`, `{"answers":0}`} {
				if got, err := turn.Run(t.Context()); got != want || err != nil {
					t.Errorf("cleared %s, want %s: %v", got, want, err)
				}
			}
			if err := s.View(t.Context(), func(tx *store.Tx) error {
				after, err := tx.DeliveriesBetween(t.Context(), e.Ref(), 0, n)
				for _, d := range after {
					cleared := d.Last.SentAt == old
					if (d.Last.Text == "") != cleared || d.Last.Code != 200 || d.Last.URL != e.URL || d.Status != store.DeliveryDelivered {
						t.Errorf("%+v", d)
					}
				}
				if len(after) != n {
					t.Errorf("%d rows are left", len(after))
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// phoneWorld is two clients with payments.
type phoneWorld struct {
	store *store.Store
	key   store.PhoneKey
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
	if w.key, err = store.NewPhoneKey([]byte("a secret for tests only")); err != nil {
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
	n, err := books.IndexPhones(t.Context(), w.store, w.key, w.store.Now().Add(time.Second))
	if err != nil || n != want {
		t.Errorf("%d rows were indexed, want %d: %v", n, want, err)
	}
}
