package console

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/account"
	"till/checkout"
	"till/collect"
	"till/console/shell"
	"till/engine"
	"till/internal/jsonx"
	"till/payout"
	"till/people"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
	"till/webhook"
)

// world is the console with the sandbox operator behind it, on a real
// database.
type world struct {
	t         testing.TB
	store     *store.Store
	operator  *sandbox.Operator
	collector *collect.Collector
	payouts   *payout.Disburser
	checkouts *checkout.Checkouts
	accounts  *account.Accounts
	endpoints *webhook.Endpoints
	console   *shell.Console
	client    *till.Client // a test client, in Brazzaville
	other     *till.Client

	// visitor is who the next requests come from.
	visitor people.Session

	hook   till.ID // an endpoint, for the paths of routes
	refund till.ID // a refund, for the same
	order  till.ID // a checkout, for the same
	link   till.ID // a link, for the same

	sends atomic.Int64 // how many payments the operator was sent
}

// sentTo counts what reaches an operator.
type sentTo struct {
	*sandbox.Operator
	sends *atomic.Int64
}

func (o sentTo) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	o.sends.Add(1)
	return o.Operator.Submit(ctx, r)
}

const testBase = "http://localhost:8080/v1"

// hostile is a text that a stranger could choose for any field.
const hostile = `<img src=x onerror=alert(1)>"'{{.}}` + "\u202e"

func newWorld(t testing.TB, engineOf storetest.Engine) *world {
	t.Helper()
	ctx, w := context.Background(), &world{t: t}
	secret := []byte("a secret for tests only")
	var err error
	config := engineOf.Config(t)
	config.NoNotify = true
	if w.store, err = store.Open(ctx, config); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	err = w.store.Update(ctx, func(tx *store.Tx) error {
		err := admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("not looked at"), CreatedAt: tx.Now()})
		if err != nil {
			return err
		}
		_, err = admin.RaiseLevel(ctx, tx, admin.Level)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.operator, err = sandbox.Open(ctx, sandbox.Config{Path: filepath.Join(t.TempDir(), "sandbox.db"), Window: time.Minute}); err != nil {
		t.Fatal(err)
	}
	w.accounts = account.New(w.store, nil)
	routes := engine.ByMode(func(till.Mode, string, string, string) string { return "sandbox" })
	w.collector = collect.New(engine.Config{Store: w.store, Secret: secret, Connections: map[string]provider.Provider{"sandbox": sentTo{w.operator, &w.sends}}, Routes: routes})
	w.payouts = payout.New(engine.Config{Store: w.store, Secret: secret, Connections: map[string]provider.Provider{"sandbox": w.operator.Payouts()}, Routes: routes,
		Refunds: engine.Refunds{Origins: map[string]engine.Origin{"sandbox": {Fingerprint: w.operator.Fingerprint()}}}})
	w.checkouts = checkout.New(checkout.Config{Store: w.store, Collector: w.collector, Secret: secret, PageURL: strings.TrimSuffix(testBase, "/v1"), FollowEvery: 20 * time.Millisecond})
	folk, err := people.New(people.Config{Store: w.store, Secret: secret, Origin: "http://localhost:8080"})
	if err != nil {
		t.Fatal(err)
	}
	w.addEndpoints(secret)
	w.console, err = New(shell.Config{Store: w.store, People: folk, Accounts: w.accounts, Endpoints: w.endpoints, Secret: secret, BaseURL: testBase,
		Collector: w.collector, Payouts: w.payouts, Checkouts: w.checkouts, Sandbox: w.operator,
		SubmitRate: func(string, till.SubjectKind) int { return 0 }, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	w.console.SessionOf = func(*shell.Visit, string) (*people.Session, error) { s := w.visitor; return &s, nil }
	w.client, w.other = w.newClient("Boulangerie Mapassa"), w.newClient("Pharmacie K.")
	if err := w.accounts.SetProfile(ctx, &till.Profile{ClientID: w.client.ID, Zone: "Africa/Brazzaville", Country: "CG"}, "a test"); err != nil {
		t.Fatal(err)
	}
	w.be(till.RoleOwner, "en")
	w.run()
	return w
}

func (w *world) newClient(name string) *till.Client {
	c, _, err := w.accounts.CreateClient(context.Background(), name, till.Test, "a test")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// run works for the payments until the test ends.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 4)
	for _, run := range []func(context.Context){w.collector.Run, w.payouts.Run, w.operator.Run, w.checkouts.Follow} {
		go func() { run(ctx); done <- struct{}{} }()
	}
	w.t.Cleanup(func() {
		cancel()
		for range 4 {
			<-done
		}
		for _, err := range []error{w.collector.Close(context.Background()), w.payouts.Close(context.Background()), w.operator.Close(), w.store.Close()} {
			if err != nil {
				w.t.Error(err)
			}
		}
	})
}

// be makes the visitor somebody with a role with the client, or in the house.
func (w *world) be(role till.Role, lang string) {
	at := w.client.ID
	if role.OfHouse() {
		at = till.House
	}
	w.visitor = people.Session{ID: till.NewID(w.store.Now()), Person: till.Person{ID: till.NewID(w.store.Now()), Name: "Awa N.", Language: lang}, ProvedAt: w.store.Now(),
		Memberships: []till.Membership{{Client: at, Role: role}}}
}

// pay asks the sandbox's customer for money. The end of the phone decides.
func (w *world) pay(phone string, amount int64, reference, description string) till.ID {
	w.t.Helper()
	var r collect.Request
	key := till.NewID(w.store.Now()).String()
	body := fmt.Sprintf(`{"method":"mtn_momo","country":"CG","amount":{"value":"%d","currency":"XAF"},"customer":{"phone":%q},"idempotency_key":%q`, amount, phone, key)
	if reference != "" && description == "" {
		description = "no words"
	}
	if reference != "" {
		body += `,"reference":` + quote(reference) + `,"description":` + quote(description) + `,"metadata":{"note":` + quote(description) + `}`
	}
	if err := jsonx.Decode([]byte(body+"}"), &r); err != nil {
		w.t.Fatal(err)
	}
	created, err := w.collector.Create(context.Background(), engine.Client{Client: w.client, Enabled: func(string) bool { return true }}, &r)
	if err != nil {
		w.t.Fatal(err)
	}
	return created.Payment.ID
}

func quote(s string) string { return string(jsonx.AppendString(nil, s)) }

// until waits for a payment to have a status.
func (w *world) until(id till.ID, status till.Status) {
	w.t.Helper()
	ref := store.Ref{Client: w.client.ID, ID: id}
	var p *store.PaymentRow
	is := comes(func() bool {
		err := w.store.View(context.Background(), func(tx *store.Tx) (err error) { p, err = tx.Payment(context.Background(), ref); return err })
		if err != nil {
			w.t.Fatal(err)
		}
		return p.Status == status
	})
	if !is {
		w.t.Fatalf("the payment is %s, not %s", p.Status, status)
	}
}

// comes looks until something is so, for as long as a busy machine may need.
func comes(is func() bool) bool {
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(25 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// request builds a request as a browser on this machine sends it.
func request(method, path string, form url.Values) *http.Request {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, "http://localhost:8080"+path, body)
	r.RemoteAddr = "127.0.0.1:50000"
	r.Header.Set("Cookie", "till=token")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return r
}

func (w *world) do(r *http.Request) *httptest.ResponseRecorder {
	a := httptest.NewRecorder()
	w.console.ServeHTTP(a, r)
	return a
}

// get returns a page that must be there.
func (w *world) get(path string) string {
	w.t.Helper()
	a := w.do(request(http.MethodGet, path, nil))
	if a.Code != http.StatusOK {
		w.t.Fatalf("GET %s: %d %s", path, a.Code, a.Body)
	}
	return a.Body.String()
}

// path returns an address below the client's.
func (w *world) path(rest string) string { return shell.Prefix + "/c/" + w.client.ID.String() + rest }

// sqlite is the first engine, for tests that do not depend on it.
func sqlite() storetest.Engine { return storetest.Engines()[0] }
