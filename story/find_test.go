package story_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"till"
	"till/books"
	"till/collect"
	"till/ledger"
	"till/store"
	"till/store/lookup"
	"till/store/storetest"
	"till/story"
	"till/upkeep"
)

// A phone is found whether the index has its rows yet or not, of one client and over
// all; a beginning of a reference after the exact one; and nothing of others.
func TestFind(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newFindWorld(t, e)
			const mine, others = "242061230001", "242061230002"
			old := w.pay(w.a, mine, "ORDER-1")
			foreign := w.pay(w.b, mine, "ORDER-1")
			w.pay(w.a, others, "ORDER-2")
			w.index(t, 3)
			longer := w.pay(w.a, mine, "ORDER-10")
			last := w.pay(w.a, "242061230003", "OTHER")
			amount := w.amount(last)
			for _, c := range []struct {
				name string
				q    story.Search
				want []till.ID
			}{
				{"a phone, indexed and not", story.Search{Client: w.a.ID, Phone: mine}, []till.ID{longer, old}},
				{"a phone over all", story.Search{Phone: mine}, []till.ID{longer, foreign, old}},
				{"a phone, not too old", story.Search{Client: w.a.ID, Phone: mine, Earliest: longer.Time()}, []till.ID{longer}},
				{"a phone that nobody has", story.Search{Client: w.a.ID, Phone: "242069999999"}, nil},
				{"a reference", story.Search{Client: w.a.ID, Reference: "ORDER-1"}, []till.ID{old, longer}},
				{"a beginning", story.Search{Client: w.a.ID, Reference: "ORDER-10"}, []till.ID{longer}},
				{"a beginning with a wildcard", story.Search{Client: w.a.ID, Reference: "ORDER_"}, nil},
				{"a reference over all", story.Search{Reference: "ORDER-1"}, []till.ID{foreign, old, longer}},
				{"a beginning over all", story.Search{Reference: "ORDER-10"}, []till.ID{longer}},
				{"an amount", story.Search{Client: w.a.ID, Amounts: []till.Money{{Minor: 5000, Currency: "KES"}}}, nil},
				{"an amount over all, not too old", story.Search{Amounts: []till.Money{amount}, Earliest: longer.Time()}, []till.ID{last, longer}},
				{"an amount, not too old", story.Search{Client: w.a.ID, Amounts: []till.Money{amount}, Earliest: longer.Time()}, []till.ID{last, longer}},
				{"an event", story.Search{Client: w.a.ID, ID: w.event(old)}, []till.ID{old}},
				{"an event over all", story.Search{ID: w.event(old)}, []till.ID{old}},
				{"an event of another", story.Search{Client: w.b.ID, ID: w.event(old)}, nil},
				{"an id", story.Search{Client: w.a.ID, ID: &old}, []till.ID{old}},
				{"an id of another", story.Search{Client: w.a.ID, ID: &foreign}, nil},
				{"an id over all", story.Search{ID: &foreign}, []till.ID{foreign}},
				{"a receipt that is not there", story.Search{Receipt: "EM1"}, nil},
			} {
				var got []till.ID
				err := w.store.View(t.Context(), func(tx *store.Tx) error {
					rows, short, err := story.FindPayments(t.Context(), tx, w.key, c.q)
					for _, p := range rows {
						got = append(got, p.ID)
					}
					if short {
						t.Errorf("%s is said to be short", c.name)
					}
					payouts, _, payoutErr := story.FindPayouts(t.Context(), tx, w.key, c.q)
					if len(payouts) > 0 || payoutErr != nil {
						t.Errorf("%s finds payouts: %v", c.name, payoutErr)
					}
					return err
				})
				if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("%s: got %v, want %v: %v", c.name, got, c.want, err)
				}
			}
			w.index(t, 2)
			w.index(t, 0)
			w.lines(t)
		})
	}
}

// findWorld is two clients with payments.
type findWorld struct {
	store *store.Store
	key   lookup.PhoneKey
	a, b  *till.Client
	pays  *collect.Collector
	t     *testing.T
}

func newFindWorld(t *testing.T, e storetest.Engine) *findWorld {
	t.Helper()
	w := &findWorld{t: t, store: storetest.Open(t, e.Config(t))}
	w.pays = storetest.NewCollector(t, w.store)
	w.a, w.b = storetest.NewClient(t, w.store, till.Test), storetest.NewClient(t, w.store, till.Test)
	var err error
	if w.key, err = lookup.NewPhoneKey([]byte("a secret for tests only")); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *findWorld) pay(c *till.Client, phone, reference string) till.ID {
	return storetest.NewPayment(w.t, w.pays, c, storetest.Body{Phone: phone, Reference: reference}).ID
}

// index fills the index up to now, and expects so many new rows.
func (w *findWorld) index(t *testing.T, want int) {
	t.Helper()
	n, err := upkeep.IndexPhones(context.Background(), w.store, w.key, w.store.Now().Add(time.Second))
	if err != nil || n != want {
		t.Errorf("%d rows were indexed, want %d: %v", n, want, err)
	}
}

// amount returns what a payment of the first client asks for.
func (w *findWorld) amount(id till.ID) till.Money {
	w.t.Helper()
	var p *store.PaymentRow
	err := w.store.View(w.t.Context(), func(tx *store.Tx) (err error) {
		p, err = tx.Payment(w.t.Context(), store.Ref{Client: w.a.ID, ID: id})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return p.Amount
}

// event returns the id of a payment's first event.
func (w *findWorld) event(id till.ID) *till.ID {
	var out till.ID
	err := w.store.View(w.t.Context(), func(tx *store.Tx) error {
		events, err := tx.PaymentEvents(w.t.Context(), store.Ref{Client: w.a.ID, ID: id})
		if err == nil {
			out = events[0].ID()
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return &out
}

// lines looks for lines of wallets.
func (w *findWorld) lines(t *testing.T) {
	t.Helper()
	mine, foreign := newAdjustment(w.a, w.store, 731), newAdjustment(w.b, w.store, 731)
	for _, a := range []books.Adjustment{mine, foreign} {
		if _, err := books.Adjust(t.Context(), w.store, a); err != nil {
			t.Fatal(err)
		}
	}
	find := func(q story.Search) (out []*ledger.Transaction) {
		t.Helper()
		err := w.store.View(t.Context(), func(tx *store.Tx) (err error) { out, _, err = story.FindLines(t.Context(), tx, q); return err })
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	amount := []till.Money{{Minor: 731, Currency: "XAF"}}
	all := find(story.Search{Client: w.a.ID, ID: &mine.ID})
	if len(all) != 1 || all[0].ClientID != w.a.ID || all[0].Amount != amount[0] {
		t.Fatalf("the line of an adjustment: %+v", all)
	}
	line := all[0].ID
	for _, c := range []struct {
		name string
		q    story.Search
		want int
	}{
		{"an adjustment's id over all", story.Search{ID: &mine.ID}, 1},
		{"a line's id", story.Search{Client: w.a.ID, ID: &line}, 1},
		{"a line's id over all", story.Search{ID: &line}, 1},
		{"a line's id of another", story.Search{Client: w.b.ID, ID: &line}, 0},
		{"a reference", story.Search{Client: w.a.ID, Reference: mine.ID.String()}, 1},
		{"a reference of another", story.Search{Client: w.b.ID, Reference: mine.ID.String()}, 0},
		{"an amount", story.Search{Client: w.a.ID, Amounts: amount}, 1},
		{"an amount in another currency", story.Search{Client: w.a.ID, Amounts: []till.Money{{Minor: 731, Currency: "KES"}}}, 0},
		{"an amount, too old", story.Search{Client: w.a.ID, Amounts: amount, Earliest: w.store.Now().Add(time.Hour)}, 0},
		{"a phone", story.Search{Client: w.a.ID, Phone: "242061230001"}, 0},
	} {
		if got := find(c.q); len(got) != c.want {
			t.Errorf("%s finds %d lines, want %d", c.name, len(got), c.want)
		}
	}
}
