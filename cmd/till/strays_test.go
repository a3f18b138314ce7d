package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/cmd/till/internal/money"
	"till/ledger"
	"till/provider/airtel"
	"till/provider/mpesa"
	"till/provider/mtnmomo"
	"till/provider/pawapay"
	"till/provider/simulator"
	"till/server"
	"till/store"
	"till/store/matching"
)

// Payments and payouts at all four operators are lost with an old backup. Their
// callbacks come afterwards, each three times, and each is one stray. What the
// client sends again is credited, and closes its stray in that commit; what it
// does not is attributed, and taken back when the client comes after all. At the
// end the wallets are what the operators' books say.
func TestStraysOfALostDay(t *testing.T) {
	t.Parallel()
	engines := map[string]func(*testing.T) oldState{"sqlite": newFileBackup}
	if os.Getenv("TILL_TEST_POSTGRES_URL") != "" {
		engines["postgres"] = newPostgresBackup
	}
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newLostDay(t, engine(t))
			d.backup.take()
			stop := d.start()
			placed := d.place()
			d.await("a callback for each", func() bool { return d.called() == len(placed) })
			stop()
			d.backup.putBack()
			stop = d.start()
			defer func() { stop() }()
			for range 3 {
				d.repeat()
			}
			if open := d.open(); len(open) != len(placed) {
				t.Fatalf("%d strays are open for %d that are lost", len(open), len(placed))
			}
			d.balances("a callback was believed", nil)

			d.again(placed, func(o *lostOrder) bool { return o.early })
			d.await("the strays of what was sent again are closed", func() bool { return len(d.open()) == d.count(placed, func(o *lostOrder) bool { return !o.early }) })
			d.balances("after the retries", func(o *lostOrder) bool { return o.early })

			d.attributeAll()
			if len(d.open()) != 0 {
				t.Error("strays are left")
			}
			d.balances("all is attributed", func(*lostOrder) bool { return true })
			d.verify()

			d.again(placed, func(o *lostOrder) bool { return !o.early && o.repeatable() })
			d.await("what was attributed is taken back", func() bool {
				n := 0
				for _, s := range d.strays(matching.StrayFilter{All: true}) {
					if s.TakenBack {
						n++
					}
				}
				return n == d.count(placed, func(o *lostOrder) bool { return !o.early && o.repeatable() })
			})
			d.balances("at the end", func(*lostOrder) bool { return true })
			for name, b := range d.books { // nobody paid twice
				if n := len(b.Entries()); n != len(placed)/len(d.books) {
					t.Errorf("%s has %d movements of %d", name, n, len(placed)/len(d.books))
				}
			}
			stop()
			stop = func() {}
			d.verify()
		})
	}
}

// lostDay is a service in front of four operators, whose callbacks come through a
// relay that can hold them back.
type lostDay struct {
	t      *testing.T
	backup oldState
	config server.Config
	client *storm
	books  map[string]*simulator.Book
	relay  *httptest.Server
	placed []*lostOrder

	mu     sync.Mutex
	target string // where callbacks go; "" while they are held back
	held   []heldCall
}

type heldCall struct {
	method, path string
	header       http.Header
	body         []byte
}

func newLostDay(t *testing.T, b oldState) *lostDay {
	t.Helper()
	dir := t.TempDir()
	d := &lostDay{t: t, backup: b, books: map[string]*simulator.Book{}, client: &storm{t: t, dir: dir, database: b.database}}
	d.relay = httptest.NewServer(http.HandlerFunc(d.serveRelay))
	t.Cleanup(d.relay.Close)
	d.config = server.Config{Database: b.database, Listen: "127.0.0.1:0", BaseURL: d.relay.URL + "/v1",
		SecretFile: filepath.Join(dir, "till.secret"), SandboxPath: filepath.Join(dir, "sandbox.db")}
	all, err := simulateAll(t.Context(), "simulated", dir, d.simulations(), hurriedAdapters, &d.config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(all.end)
	d.client.makeClient()
	s, err := server.New(t.Context(), d.config) // for the addresses that are in the operators' portals
	if err != nil {
		t.Fatal(err)
	}
	if err := all.begin(s.CallbackURL); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *lostDay) simulations() []simulation {
	keep := func(name string, o interface {
		http.Handler
		Book() *simulator.Book
	}, err error) (http.Handler, error) {
		if err == nil {
			d.books[name] = o.Book()
		}
		return o, err
	}
	const soon = 20 * time.Millisecond
	return []simulation{
		{name: "mtnmomo", settings: mtnmomo.SimSettings, secrets: mtnmomo.SimSecrets, routes: map[string][]string{"mtn_momo": {"CG"}},
			open: func(_ simulator.Faults, _, _ string) (http.Handler, error) {
				o, err := mtnmomo.NewSimulator(mtnmomo.SimConfig{Decide: soon})
				return keep("mtnmomo", o, err)
			}},
		{name: "airtel", settings: airtel.SimSettings, secrets: airtel.SimSecrets, routes: map[string][]string{"airtel_money": {"CG"}},
			open: func(_ simulator.Faults, _, callbackURL string) (http.Handler, error) {
				o, err := airtel.NewSimulator(airtel.SimConfig{Decide: soon, CallbackURL: callbackURL})
				return keep("airtel", o, err)
			}},
		{name: "pawapay", settings: pawapay.SimSettings, secrets: pawapay.SimSecrets, routes: map[string][]string{"mtn_momo": {"CM"}},
			open: func(_ simulator.Faults, _, callbackURL string) (http.Handler, error) {
				o, err := pawapay.NewSimulator(pawapay.SimConfig{Decide: soon, DepositCallback: callbackURL, PayoutCallback: callbackURL, RefundCallback: callbackURL})
				return keep("pawapay", o, err)
			}},
		{name: "mpesa", settings: mpesa.SimSettings, secrets: mpesa.SimSecrets, routes: map[string][]string{"mpesa": {"KE"}},
			open: func(_ simulator.Faults, _, _ string) (http.Handler, error) {
				o, err := mpesa.NewSimulator(mpesa.SimConfig{Decide: soon})
				return keep("mpesa", o, err)
			}},
	}
}

// serveRelay takes a callback to the service, or keeps it.
func (d *lostDay) serveRelay(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	c := heldCall{r.Method, r.URL.RequestURI(), r.Header.Clone(), body}
	d.mu.Lock()
	target := d.target
	if target == "" {
		d.held = append(d.held, c)
	}
	d.mu.Unlock()
	if target != "" {
		if status := d.forward(target, c); status != http.StatusOK {
			w.WriteHeader(status)
		}
	}
}

func (d *lostDay) forward(target string, c heldCall) int {
	r, err := http.NewRequest(c.method, target+c.path, bytes.NewReader(c.body))
	if err != nil {
		return http.StatusBadGateway
	}
	r.Header = c.header
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return http.StatusBadGateway
	}
	a.Body.Close()
	return a.StatusCode
}

// called returns for how many requests a callback was kept: one that answers a
// question of ours is about one of them, too.
func (d *lostDay) called() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	about := map[string]bool{}
	for _, c := range d.held {
		key := c.path
		if strings.Contains(c.path, "/airtel/") || strings.Contains(c.path, "/pawapay/") { // one address for all
			key = string(c.body)
		}
		about[key] = true
	}
	return len(about)
}

// repeat brings what was kept, and lets what comes from now on through.
func (d *lostDay) repeat() {
	d.t.Helper()
	d.mu.Lock()
	d.target = "http://" + d.client.addr
	held := d.held
	d.mu.Unlock()
	for _, c := range held {
		if status := d.forward(d.target, c); status != http.StatusOK {
			d.t.Errorf("a callback to %s is answered %d", c.path, status)
		}
	}
}

// start starts the service; what it returns ends it.
func (d *lostDay) start() func() {
	d.t.Helper()
	s, err := server.New(d.t.Context(), d.config)
	if err != nil {
		d.t.Fatal(err)
	}
	d.client.addr = s.Addr().String()
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			d.t.Error(err)
		}
	}
}

// place sends two payments and two payouts to each operator.
func (d *lostDay) place() []*lostOrder {
	d.t.Helper()
	var all []*lostOrder
	for i, m := range markets {
		for n := range 4 {
			o := &lostOrder{order: order{path: "/payments", party: "customer", method: m.method, country: m.country, currency: m.currency,
				phone: fmt.Sprintf(m.well, 66_000+4*i+n), amount: 100 * (10 + 4*i + n), key: till.NewID(till.TimeOf(time.Now()))}}
			if n >= 2 {
				o.path, o.party = "/payouts", "recipient"
			}
			// M-Pesa's push knows no reference: to send one again is to ask the
			// customer again.
			o.early = n%2 == 0 && o.repeatable()
			all = append(all, o)
		}
	}
	d.again(all, func(*lostOrder) bool { return true })
	d.placed = all
	return all
}

// lostOrder is an order whose payment or payout is lost.
type lostOrder struct {
	order
	early bool // the client sends it again before anybody checks strays
}

// repeatable reports whether a second send moves no money.
func (o *lostOrder) repeatable() bool { return o.method != "mpesa" || o.path == "/payouts" }

func (d *lostDay) count(all []*lostOrder, which func(o *lostOrder) bool) (n int) {
	for _, o := range all {
		if which(o) {
			n++
		}
	}
	return n
}

// again sends orders, once more or for the first time.
func (d *lostDay) again(all []*lostOrder, which func(o *lostOrder) bool) {
	d.t.Helper()
	for _, o := range all {
		if !which(o) {
			continue
		}
		if status, body, err := d.client.post(d.t.Context(), o.order); err != nil || status != http.StatusAccepted {
			d.t.Fatalf("%s by %s is answered %d %s: %v", o.path, o.method, status, body, err)
		}
	}
}

func (d *lostDay) await(what string, done func() bool) {
	d.t.Helper()
	for end := time.Now().Add(waitTimeout); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			for _, s := range d.strays(matching.StrayFilter{All: true}) {
				d.t.Logf("%s %s, %s: %s %s", s.Connection, money.IdentifiersText(s), money.ClaimText(s), s.Why, s.Settled)
			}
			d.t.Fatalf("never: %s", what)
		}
	}
}

func (d *lostDay) read(f func(ctx context.Context, s *store.Store) error) {
	d.t.Helper()
	if err := cli.WithDatabase(d.t.Context(), d.backup.database, func(s *store.Store) error { return f(d.t.Context(), s) }); err != nil {
		d.t.Fatal(err)
	}
}

func (d *lostDay) strays(f matching.StrayFilter) (all []*matching.Stray) {
	d.t.Helper()
	d.read(func(ctx context.Context, s *store.Store) (err error) {
		all, err = books.ListStrays(ctx, s, f)
		return err
	})
	return all
}

func (d *lostDay) open() []*matching.Stray { d.t.Helper(); return d.strays(matching.StrayFilter{}) }

// balances compares the wallets with what the chosen orders moved.
func (d *lostDay) balances(when string, moved func(o *lostOrder) bool) {
	d.t.Helper()
	want := map[string]int64{"XAF": 1_000_000_000, "KES": 1_000_000_000}
	for _, o := range d.placed {
		switch {
		case moved == nil || !moved(o):
		case o.path == "/payouts":
			want[o.currency] -= int64(o.amount)
		default:
			want[o.currency] += int64(o.amount)
		}
	}
	d.read(func(ctx context.Context, s *store.Store) error {
		return s.View(ctx, func(tx *store.Tx) error {
			for currency, minor := range want {
				var w *ledger.Wallet
				w, err := tx.Wallet(ctx, d.client.client, currency)
				if err != nil {
					return err
				}
				if w.Balance != minor || w.Owed != 0 || w.Reserved != 0 {
					d.t.Errorf("%s: %s is %d, owed %d, reserved %d; want %d", when, currency, w.Balance, w.Owed, w.Reserved, minor)
				}
			}
			return nil
		})
	})
}

// attributeAll gives every open stray to the client, by the command, with what
// the operators' books show as evidence.
func (d *lostDay) attributeAll() {
	d.t.Helper()
	evidence := filepath.Join(d.t.TempDir(), "portal.txt")
	if err := os.WriteFile(evidence, []byte("what the portal shows"), 0o600); err != nil {
		d.t.Fatal(err)
	}
	for _, s := range d.open() {
		e, found := d.booked(s)
		if !found {
			d.t.Fatalf("no operator has the money of %+v", money.StrayObject(s))
		}
		args := []string{"strays", "attribute", s.ID.String(), "--database", d.backup.database, "--client", d.client.client.String(), "--by", "Anne Ndala",
			"--evidence", evidence, "--amount", d.minor(&e), "--currency", e.Currency, "--json"}
		if s.Direction == "" { // Airtel's callbacks do not say
			args = append(args, "--way", map[string]string{"payment": "in", "payout": "out"}[e.Kind])
		}
		var out, complaints bytes.Buffer
		if code := run(d.t.Context(), args, &out, &complaints); code != 0 {
			d.t.Fatalf("till strays attribute: %d %s", code, &complaints)
		}
	}
}

// booked finds the money of a stray in the operators' books.
func (d *lostDay) booked(s *matching.Stray) (simulator.Entry, bool) {
	for _, e := range d.books[s.Connection].Entries() {
		if e.Receipt == s.Receipt || strings.ReplaceAll(e.Reference, "-", "") == strings.ReplaceAll(s.Reference.String(), "-", "") {
			if e.Currency == "" {
				e.Currency = "KES"
			}
			return e, true
		}
	}
	return simulator.Entry{}, false
}

// minor is an amount of an operator's book in minor units: as the order had it.
func (d *lostDay) minor(e *simulator.Entry) string {
	for _, o := range d.placed {
		if strings.HasSuffix(o.phone, e.Phone) {
			return fmt.Sprint(o.amount)
		}
	}
	d.t.Fatalf("nobody ordered %+v", e)
	return ""
}

func (d *lostDay) verify() {
	d.t.Helper()
	verifyHere(d.t, d.backup.database)
}
