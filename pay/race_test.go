package pay

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/account"
	"till/checkout"
	"till/collect"
	"till/engine"
	"till/internal/jsonx"
	"till/internal/seal"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/checkouts"
	"till/store/storetest"
)

// racer is one instance of the pages, on a store of its own.
type racer struct {
	store     *store.Store
	collector *collect.Collector
	checkouts *checkout.Checkouts
	pages     *Pages
}

// newRacer opens an instance on a database that others have open, too.
func newRacer(t testing.TB, database store.Config, operator provider.Provider) *racer {
	t.Helper()
	r := &racer{}
	var err error
	if r.store, err = store.Open(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.collector = collect.New(engine.Config{Store: r.store, Secret: []byte(secret), Connections: map[string]provider.Provider{"sandbox": operator},
		Routes: engine.ByMode(func(till.Mode, string, string, string) string { return "sandbox" }), CallbackBase: "http://till.test/v1/callbacks"})
	limits, err := checkout.NewLimits([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	r.checkouts = checkout.New(checkout.Config{Store: r.store, Collector: r.collector, Secret: []byte(secret), PageURL: "https://pay.till.test", Limit: limits.Limit, Opening: limits.Opening, Blocked: limits.Blocked})
	if r.pages, err = New(Config{Store: r.store, Checkouts: r.checkouts, Limits: limits, Accounts: account.New(r.store, nil), Offer: r.collector.Offer, Ring: seal.Single([]byte(secret)), URL: "https://pay.till.test"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { r.collector.Run(ctx); close(done) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := r.collector.Close(context.Background()); err != nil {
			t.Error(err)
		}
		r.store.Close()
	})
	return r
}

// P3: one form is posted a hundred times at once, to two instances over one database, by people
// who typed two numbers. One telephone rings, once.
func TestAHundredPostsOnTwoInstances(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			operator, err := sandbox.Open(ctx, sandbox.Config{Path: filepath.Join(t.TempDir(), "sandbox.db"), Window: time.Hour, Post: func(context.Context, string, []byte) error { return nil }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { operator.Close() })
			road := &way{Provider: operator}
			database := e.Config(t)
			both := []*racer{newRacer(t, database, road), newRacer(t, database, road)}
			client, _, err := account.New(both[0].store, nil).CreateClient(ctx, "Boulangerie Mapassa", till.Test, "command:test")
			if err != nil {
				t.Fatal(err)
			}
			storetest.AllowRefunds(t, both[0].store) // the newest level
			for name, place := range map[string]func(t testing.TB, r *racer, c *till.Client) string{"checkout": aCheckout, "link": aLink} {
				for _, r := range both {
					r.pages.now = time.Now
				}
				path, before := place(t, both[0], client), road.submits.Load()
				form := sealed.FindStringSubmatch(serve(both[1].pages, http.MethodGet, path, nil).Body.String())
				if form == nil {
					t.Fatal("there is no form")
				}
				later := time.Now().Add(5 * time.Second) // the form is no longer too young
				for _, r := range both {
					r.pages.now = func() time.Time { return later }
					r.pages.rush = newRush(&r.pages.c) // twenty a second would be too few to race
				}
				var wait sync.WaitGroup
				var mu sync.Mutex
				answers := map[string]int{}
				for i := range 100 {
					wait.Go(func() {
						phone := []string{"242061230000", "242061240000"}[i/2%2] // who decides in approve
						got := serve(both[i%2].pages, http.MethodPost, path, url.Values{"form": {form[1]}, "phone": {phone}, "market": {"mtn_momo.CG"}, "sure": {phone}})
						mu.Lock()
						answers[fmt.Sprint(got.Code)]++
						mu.Unlock()
					})
				}
				wait.Wait()
				var asks, opened int
				storetest.View(t, both[0].store, func(ctx context.Context, tx *store.Tx) error {
					all, _, err := checkouts.List(ctx, tx, client.ID, checkouts.Filter{}, store.Page{Limit: 100})
					for _, c := range all {
						made, err := checkouts.Asks(ctx, tx, c.Ref())
						if err != nil {
							return err
						}
						if strings.HasSuffix(c.Reference, name) || name == "link" && !c.LinkID.IsZero() {
							asks += len(made)
							opened++
						}
					}
					return err
				})
				if rang := road.submits.Load() - before; rang != 1 || asks != 1 || opened != 1 {
					t.Errorf("%s: %d prompts, %d asks of %d checkouts; answers %v", name, rang, asks, opened, answers)
				}
			}
		})
	}
}

// serve answers a request as a small browser sends it.
func serve(p *Pages, method, path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "https://pay.till.test"+path, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

func aCheckout(t testing.TB, r *racer, client *till.Client) string {
	t.Helper()
	wish := &checkout.Request{}
	if err := jsonx.Decode([]byte(`{"amount":{"value":"5000","currency":"XAF"},"reference":"of a checkout","idempotency_key":"9d5a1c1e-6f0f-4d0c-8f8d-0b1a4c0b8a11"}`), wish); err != nil {
		t.Fatal(err)
	}
	c, err := r.checkouts.Create(t.Context(), engine.Client{Client: client, Actor: "api:test", Enabled: func(string) bool { return true }}, wish)
	if err != nil {
		t.Fatal(err)
	}
	return Prefix + c.Checkout.Token
}

func aLink(t testing.TB, r *racer, client *till.Client) string {
	t.Helper()
	wish := &checkout.LinkRequest{}
	if err := jsonx.Decode([]byte(`{"title":"Bread","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"9d5a1c1e-6f0f-4d0c-8f8d-0b1a4c0b8a12"}`), wish); err != nil {
		t.Fatal(err)
	}
	c, err := r.checkouts.CreateLink(t.Context(), engine.Client{Client: client, Actor: "api:test", Enabled: func(string) bool { return true }}, wish)
	if err != nil {
		t.Fatal(err)
	}
	return Prefix + c.Link.Token
}
