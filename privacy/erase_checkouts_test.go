package privacy_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"till"
	"till/checkout"
	"till/collect"
	"till/internal/db"
	"till/internal/jsonx"
	"till/privacy"
	"till/provider"
	"till/store"
	"till/store/checkouts"
	"till/store/lookup"
	"till/store/storetest"
	"till/upkeep"
)

// orders makes checkouts of one client, which are followed while the test runs.
type orders struct {
	t         *testing.T
	store     *store.Store
	client    *till.Client
	collector *collect.Collector
	made      *checkout.Checkouts
}

func newOrders(t *testing.T, s *store.Store) *orders {
	t.Helper()
	storetest.AllowRefunds(t, s) // the newest level
	o := &orders{t: t, store: s, client: storetest.NewClient(t, s, till.Test), collector: storetest.NewCollector(t, s)}
	o.client.Name = "Boulangerie Mapassa" // one that pages may show
	o.made = checkout.New(checkout.Config{Store: s, Collector: o.collector, Secret: testSecret, PageURL: "https://pay.till.test", FollowEvery: 50 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { o.made.Follow(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return o
}

func (o *orders) who() checkout.Client {
	return checkout.Client{Client: o.client, Actor: "api:test", Enabled: func(string) bool { return true }}
}

func (o *orders) body(key, more string) string {
	return `{"amount":{"value":"5000","currency":"XAF"},"idempotency_key":"` + key + `","description":"for Mado","metadata":{"who":"Mado"}` + more + `}`
}

func (o *orders) create(body string) (checkout.Created, error) {
	r := &checkout.Request{}
	if err := jsonx.Decode([]byte(body), r); err != nil {
		o.t.Fatal(err)
	}
	return o.made.Create(context.Background(), o.who(), r)
}

// open makes a checkout that names a phone, or none.
func (o *orders) open(phone string) store.Ref {
	o.t.Helper()
	more := ""
	if phone != "" {
		more = `,"phone":"` + phone + `"`
	}
	c, err := o.create(o.body(till.NewID(o.store.Now()).String(), more))
	if err != nil {
		o.t.Fatal(err)
	}
	return store.Ref{Client: o.client.ID, ID: c.Checkout.ID}
}

// ask asks a number, and records what the operator says.
func (o *orders) ask(ref store.Ref, n int, phone string, r provider.Result) till.ID {
	o.t.Helper()
	a, err := o.made.Ask(context.Background(), o.who(), ref, checkout.Typed{N: n, Phone: phone, Method: "mtn_momo", Country: "CG"})
	if err != nil {
		o.t.Fatal(err)
	}
	storetest.Apply(o.t, o.collector, o.store, &till.Payment{ClientID: a.ClientID, ID: a.PaymentID, IdempotencyKey: a.Key.String(), Amount: a.Amount}, r)
	return a.PaymentID
}

func (o *orders) read(ref store.Ref) (row *checkouts.Row, asks []till.Ask) {
	o.t.Helper()
	storetest.View(o.t, o.store, func(ctx context.Context, tx *store.Tx) (err error) {
		row, asks, err = checkout.Read(ctx, tx, ref)
		return err
	})
	return row, asks
}

// until waits for a state of a checkout.
func (o *orders) until(ref store.Ref, state till.CheckoutState) {
	o.t.Helper()
	for range 1200 {
		if row, _ := o.read(ref); row.State == state {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	o.t.Fatalf("the checkout is never %s", state)
}

func (o *orders) index() lookup.PhoneKey {
	o.t.Helper()
	key, err := lookup.NewPhoneKey(testSecret)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, index := range []func(context.Context, *store.Store, lookup.PhoneKey, till.Time) (int, error){upkeep.IndexPhones, upkeep.IndexWords} {
		if _, err := index(o.t.Context(), o.store, key, o.store.Now().Add(time.Second)); err != nil {
			o.t.Fatal(err)
		}
	}
	return key
}

func (o *orders) erase(x privacy.Erasure, want privacy.EraseResult) {
	o.t.Helper()
	for _, dry := range []bool{true, false} {
		got, err := privacy.Erase(o.t.Context(), o.store, privacy.EraseRequest{Secret: testSecret, Erasures: []privacy.Erasure{x}, By: "Awa", Reason: "a letter", DryRun: dry})
		if err != nil || *got != want {
			o.t.Errorf("erased %+v, %v, dry run %t; want %+v", got, err, dry, want)
		}
	}
}

// A person's number is found in the checkouts that name it or have asked it, without the
// numbers of others, and an erasure leaves it in no table. Others' numbers stay, a retry is
// recognised, and another body is not.
func TestEraseACheckoutsNumbers(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		o := newOrders(t, s)
		const mine, others = "242061230001", "242061230002"
		alone := storetest.NewPayment(t, o.collector, o.client, storetest.Body{Phone: mine}).ID
		storetest.Apply(t, o.collector, s, &till.Payment{ClientID: o.client.ID, ID: alone, Amount: till.Money{Minor: 5000, Currency: "XAF"}}, storetest.Succeeded)
		key, more := till.NewID(s.Now()).String(), `,"phone":"`+mine+`","phone_fixed":true`
		created, err := o.create(o.body(key, more))
		if err != nil {
			t.Fatal(err)
		}
		both := store.Ref{Client: o.client.ID, ID: created.Checkout.ID}
		named, asked, foreign, open := o.open(mine), o.open(others), o.open(others), o.open(mine)
		o.ask(both, 1, mine, storetest.Succeeded)
		o.ask(named, 1, others, storetest.Succeeded)
		o.ask(asked, 1, mine, storetest.Succeeded)
		o.ask(foreign, 1, others, storetest.Succeeded)
		for _, ref := range []store.Ref{both, named, asked, foreign} {
			o.until(ref, till.CheckoutPaid)
		}
		answerOf(t, s, o.client, both.ID)
		phones := o.index()

		payments, found := map[till.ID]bool{}, map[till.ID]bool{}
		err = privacy.PersonDataInPages(t.Context(), s, phones, mine, 2, 3, func(r *privacy.PersonRecord) error {
			if r.Checkout == nil {
				payments[r.Payment.ID] = true
				return nil
			}
			if found[r.Checkout.ID] {
				t.Errorf("listed twice: %s", r.Checkout.ID)
			}
			found[r.Checkout.ID] = true
			if text := fmt.Sprintf("%+v %+v %s", r.Checkout, r.Asks, r.Checkout.AppendJSON(nil, "", r.Asks)); strings.Contains(text, others) || !strings.Contains(text, mine) {
				t.Errorf("a person's data says %s", text)
			}
			return nil
		})
		if err != nil || !payments[alone] || len(payments) != 3 || len(found) != 4 || !found[both.ID] || !found[named.ID] || !found[asked.ID] || !found[open.ID] {
			t.Errorf("found %d payments and the checkouts %v, %v", len(payments), found, err)
		}
		if places := placesOf(t, s, mine); len(places) < 3 {
			t.Fatalf("the number is only in %v", places)
		}

		o.erase(privacy.Erasure{Phone: mine}, privacy.EraseResult{Payments: 3, Checkouts: 3, Left: 1})
		o.erase(privacy.Erasure{Phone: mine}, privacy.EraseResult{Left: 1})
		if _, _, err := o.made.Cancel(t.Context(), open, "api:test"); err != nil {
			t.Fatal(err)
		}
		o.erase(privacy.Erasure{Token: privacy.ErasedToken(testSecret, mine)}, privacy.EraseResult{Checkouts: 1})
		if places := placesOf(t, s, mine); len(places) > 0 {
			t.Errorf("the number is still in %v", places)
		}
		token := privacy.ErasedToken(testSecret, mine)
		for ref, want := range map[store.Ref]string{both: token + " " + token, named: token + " " + others, asked: others + " " + token, foreign: others + " " + others} {
			row, asks := o.read(ref)
			if got := row.Phone + " " + asks[0].Phone; got != want || row.State != till.CheckoutPaid || asks[0].Stand() != till.AskCredited || row.ErasedAt.IsZero() != (ref == foreign) {
				t.Errorf("it has %s, want %s: %+v %+v", got, want, row, asks)
			}
			if !bytes.Contains(row.Document, []byte("Mado")) {
				t.Errorf("the texts are gone: %s", row.Document)
			}
		}
		storetest.View(t, s, func(_ context.Context, tx *store.Tx) error {
			if text := answerText(t, tx, o.client.ID); text != "" {
				t.Errorf("a receiver's answer is kept: %q", text)
			}
			return nil
		})
		again, err := o.create(o.body(key, more))
		if err != nil || !again.Replayed || again.Checkout.ID != both.ID || again.Checkout.Phone != token {
			t.Errorf("a retry: %+v, %v", again.Checkout, err)
		}
		if _, err := o.create(o.body(key, strings.Replace(more, mine, others, 1))); till.ErrorCode(err) != till.CodeKeyReused {
			t.Errorf("the key with another phone: %v", err)
		}

		// By age, with the client's texts, also where there is no number.
		empty := o.open("")
		if _, _, err := o.made.Cancel(t.Context(), empty, "api:test"); err != nil {
			t.Fatal(err)
		}
		o.erase(privacy.Erasure{Before: s.Now().Add(time.Hour), Texts: true}, privacy.EraseResult{Payments: 2, Checkouts: 4})
		o.erase(privacy.Erasure{Before: s.Now().Add(time.Hour), Texts: true}, privacy.EraseResult{})
		for _, ref := range []store.Ref{named, asked, foreign, empty} {
			if row, _ := o.read(ref); bytes.Contains(row.Document, []byte("Mado")) || checkout.Description(&row.Checkout) != "" || row.BodyVersion != 1001 {
				t.Errorf("it still says %s, version %d", row.Document, row.BodyVersion)
			}
		}
		if places := placesOf(t, s, others); len(places) > 0 {
			t.Errorf("another's number is still in %v", places)
		}
	})
}

// An ask keeps its number as long as its payment does: late money may come, and somebody may
// ask the operator.
func TestACheckoutKeepsTheNumbersOfOpenPayments(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		o := newOrders(t, s)
		const mine = "242061230001"
		ref := o.open("")
		o.ask(ref, 1, mine, provider.Result{Outcome: provider.Failed, Reason: till.InsufficientFunds}) // late reads follow
		if _, _, err := o.made.Cancel(t.Context(), ref, "api:test"); err != nil {
			t.Fatal(err)
		}
		o.index()
		o.erase(privacy.Erasure{Phone: mine}, privacy.EraseResult{Left: 2})
		if row, asks := o.read(ref); asks[0].Phone != mine || !row.ErasedAt.IsZero() {
			t.Errorf("it is %+v %+v", row, asks)
		}
	})
}

// placesOf returns the tables that have a text somewhere.
func placesOf(t *testing.T, s *store.Store, text string) (places []string) {
	t.Helper()
	ctx := t.Context()
	find := func(tx *store.Tx, query string, args ...any) (out []string) {
		err := tx.DB().Query(ctx, &db.SQL{Name: "test.places", SQLite: query}, args, func(r db.Row) error {
			var one string
			err := r.Scan(&one)
			out = append(out, one)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return out
	}
	inHex := hex.EncodeToString([]byte(text))
	storetest.View(t, s, func(ctx context.Context, tx *store.Tx) error {
		if s.Shared() {
			for _, table := range find(tx, `SELECT CAST(table_name AS text) FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'`) {
				if len(find(tx, `SELECT 'found' FROM "`+table+`" AS t WHERE CAST(t AS text) LIKE '%`+text+`%' OR CAST(t AS text) LIKE '%`+inHex+`%' LIMIT 1`)) > 0 {
					places = append(places, table)
				}
			}
			return nil
		}
		for _, table := range find(tx, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`) {
			for _, column := range find(tx, `SELECT name FROM pragma_table_info($1)`, table) {
				if len(find(tx, `SELECT 'found' FROM "`+table+`" WHERE instr(hex(CAST("`+column+`" AS BLOB)), upper($1)) > 0 LIMIT 1`, inHex)) > 0 {
					places = append(places, table+"."+column)
				}
			}
		}
		return nil
	})
	return places
}
