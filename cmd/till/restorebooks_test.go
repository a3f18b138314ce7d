package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"till"
	"till/account"
	"till/books"
	"till/provider/simulator"
	"till/store"
)

// shop is a client of a restoration, and what it knows.
type shop struct {
	name    string
	key     string
	client  till.ID
	retries bool // it sends what is unknown all of a sudden again
	orders  []*placed
}

// placed is an order that a shop was promised.
type placed struct {
	order
	id        string // as it was answered
	lost      bool   // it was made after the backup
	cancelled bool   // it was taken back after the backup
	retried   bool
	found     bool // it is not here, and its money is a stray that was given to the shop
}

// restoration is a service with all four operators whose database is put back.
// The operators' numbers are used once, so their books can be read by them.
type restoration struct {
	*storm
	backup   oldState
	shops    []*shop
	funds    map[string]int64 // what every shop's wallet began with
	leaked   string           // a key that was revoked in the lost time, and its id
	leakedID string
	n        int // orders so far
}

// restoreWindow is the customers' time: long enough for what is open in the backup
// to be sent in the lost time, and over soon.
const restoreWindow = 25 * time.Second

func newRestoration(t *testing.T, b oldState, names ...string) *restoration {
	t.Helper()
	r := &restoration{backup: b, funds: map[string]int64{"XAF": 1_000_000_000, "KES": 1_000_000_000}}
	r.storm = newStormOn(t, &storm{dir: t.TempDir(), database: b.database, env: []string{hurriedWindow + "=" + restoreWindow.String()}})
	r.equip(names)
	return r
}

// equip makes the shops, with money to pay out.
func (r *restoration) equip(names []string) {
	r.t.Helper()
	ctx := r.t.Context()
	r.withStore(func(s *store.Store) error {
		a := account.New(s, nil)
		scopes := []till.Scope{"payments:write", "payments:read", "payouts:write", "payouts:read"}
		for _, name := range names {
			c, _, err := a.CreateClient(ctx, name, till.Live, "test")
			if err != nil {
				return err
			}
			for _, method := range []string{"mtn_momo", "airtel_money", "mpesa"} {
				if err := a.EnableMethod(ctx, c.ID, method, true, "test"); err != nil {
					return err
				}
			}
			for currency, minor := range r.funds {
				if _, err := books.Adjust(ctx, s, books.Adjustment{Client: c.ID, ID: till.NewID(s.Now()), Amount: till.Money{Minor: minor, Currency: currency},
					Reason: "to pay out", By: "test"}); err != nil {
					return err
				}
			}
			text, _, err := a.CreateKey(ctx, c.ID, "shop", scopes, 0, "test")
			if err != nil {
				return err
			}
			r.shops = append(r.shops, &shop{name: name, key: text, client: c.ID, retries: strings.HasPrefix(name, "retries")})
		}
		text, key, err := a.CreateKey(ctx, r.shops[0].client, "leaked", scopes, 0, "test")
		r.leaked, r.leakedID = text, key.ID
		return err
	})
}

func (r *restoration) withStore(f func(s *store.Store) error) {
	r.t.Helper()
	onStore(r.t, r.database, f)
}

// till runs a command on the database and returns what it wrote.
func (r *restoration) till(want int, args ...string) string {
	r.t.Helper()
	var out, errs bytes.Buffer
	if code := run(r.t.Context(), append(args, "--database", r.database), &out, &errs); code != want {
		r.t.Fatalf("till %s ends with %d, want %d: %s%s", strings.Join(args, " "), code, want, &out, &errs)
	}
	return out.String() + errs.String()
}

// place places an order in every market, for every shop.
func (r *restoration) placeAll(path string, lost bool, bad ...string) (all []*placed) {
	r.t.Helper()
	for _, sh := range r.shops {
		for i := range markets {
			m := &markets[i]
			if len(bad) > 0 && m.method != bad[0] {
				continue
			}
			o := &placed{lost: lost, order: order{path: path, method: m.method, country: m.country, currency: m.currency,
				party: map[string]string{"/payments": "customer", "/payouts": "recipient"}[path], amount: 100 * (10 + r.n), key: newUUID()}}
			if o.phone = fmt.Sprintf(m.well, 55_000+r.n); len(bad) > 0 {
				o.phone = bad[1+r.n%(len(bad)-1)]
			}
			r.n++
			r.send(sh, o, http.StatusAccepted)
			sh.orders, all = append(sh.orders, o), append(all, o)
		}
	}
	return all
}

// send sends an order and wants an answer.
func (r *restoration) send(sh *shop, o *placed, want int) (body string) {
	r.t.Helper()
	r.key = sh.key
	status, b, err := r.post(r.t.Context(), o.order)
	if err != nil || status != want {
		r.t.Fatalf("%s %s of %s is answered %d, want %d: %v %s", o.path, o.phone, sh.name, status, want, err, b)
	}
	var p struct {
		ID string `json:"id"`
	}
	json.Unmarshal(b, &p)
	if p.ID != "" {
		o.id = p.ID
	}
	return string(b)
}

// standing returns the state of an order here; nil if it is not here.
func (r *restoration) standing(sh *shop, o *placed) (out *standing) {
	r.t.Helper()
	ctx := context.Background()
	r.withStore(func(s *store.Store) error {
		return s.View(ctx, func(tx *store.Tx) error {
			if o.path == "/payouts" {
				p, err := tx.PayoutByKey(ctx, sh.client, o.key)
				if err == nil && p != nil {
					out = &standing{kind: "payout", id: p.ID.String(), status: string(p.Status), final: p.Status.Final(), paid: p.Status == till.PayoutSuccess || p.LateEvent != 0}
				}
				return err
			}
			p, err := tx.PaymentByKey(ctx, sh.client, o.key)
			if err == nil && p != nil {
				out = &standing{kind: "payment", id: p.ID.String(), status: string(p.Status), final: p.Status.Final(), paid: p.Credited(), attention: p.Attention}
			}
			return err
		})
	})
	return out
}

// entriesOf returns what the operators have of an order: their books are read by
// number, so it is found whatever it was called by.
func (r *restoration) entriesOf(o *placed) (all []simulator.Entry, moved int) {
	for _, book := range r.books {
		now := book.Now()
		for _, e := range book.Entries() {
			if e.Kind != strings.TrimSuffix(o.path[1:], "s") || !strings.HasSuffix(o.phone, e.Phone) || e.Phone == "" {
				continue
			}
			all = append(all, e)
			if state, _ := e.StateAt(now); state == simulator.Success {
				moved++
			}
		}
	}
	return all, moved
}

// await waits until a condition holds of all orders.
func (r *restoration) await(what string, done func(sh *shop, o *placed) bool) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(300 * time.Millisecond) {
		var left []string
		for _, sh := range r.shops {
			for _, o := range sh.orders {
				if !done(sh, o) {
					left = append(left, fmt.Sprintf("%s %s %s %s", sh.name, o.path, o.phone, o.id))
				}
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not within a minute of %s\n%s", what, strings.Join(left, "; "), r.tail())
		}
	}
}

// settled reports whether an order has ended here as in the operator's book.
func (r *restoration) settled(sh *shop, o *placed) bool {
	p := r.standing(sh, o)
	_, moved := r.entriesOf(o)
	return p != nil && p.final && p.paid == (moved > 0)
}

// evidence is a file that a person brings.
func (r *restoration) evidence() string {
	file := filepath.Join(r.dir, "statement.csv")
	if err := os.WriteFile(file, []byte("the operator's statement"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return file
}

// resolve brings the operator's word about a payment, which is in its book.
func (r *restoration) resolve(p *standing, e simulator.Entry, moved bool) {
	r.t.Helper()
	args := []string{"payment", "resolve", p.id, "--as", "failed", "--evidence", r.evidence(), "--by", "Awa", "--secret-file", r.secretFile()}
	if moved {
		args[4] = "success"
		args = append(args, "--receipt", e.Receipt)
	}
	r.till(0, args...)
}

// stopAndBackUp stops the service and takes a backup.
func (r *restoration) stopAndBackUp() (lostFrom till.Time) {
	r.t.Helper()
	r.stop(syscall.SIGTERM)
	r.backup.take()
	return till.TimeOf(time.Now())
}

// compareShops holds the books against each other: nobody paid or was paid twice,
// and the wallet of a shop that retries has what the operators moved for it, to
// the last franc, and so has that of the others, once their strays were given to
// them.
func (r *restoration) compareShops() {
	t := r.t
	t.Helper()
	for _, sh := range r.shops {
		want := map[string]int64{}
		for currency, minor := range r.funds {
			want[currency] = minor
		}
		unknown := 0
		for _, o := range sh.orders {
			entries, moved := r.entriesOf(o)
			p := r.standing(sh, o)
			what := fmt.Sprintf("%s %s %s of %s: %+v here, taken %d times and moved %d times by the operator", o.method, o.path, o.phone, sh.name, p, len(entries), moved)
			switch {
			case len(entries) > 1:
				t.Errorf("twice: %s", what)
			case o.cancelled && len(entries) > 0:
				t.Errorf("sent, though it was cancelled: %s", what)
			case p == nil && (!o.lost || sh.retries):
				t.Errorf("not here: %s", what)
			case p == nil:
				unknown++
				if o.found && o.path == "/payments" {
					want[o.currency] += int64(o.amount)
				} else if o.found {
					want[o.currency] -= int64(o.amount)
				}
				continue
			case !p.final || p.paid != (moved == 1):
				t.Errorf("the books differ: %s", what)
			}
			if p != nil && p.paid && o.path == "/payments" {
				want[o.currency] += int64(o.amount)
			} else if p != nil && p.paid {
				want[o.currency] -= int64(o.amount)
			}
		}
		r.withStore(func(s *store.Store) error {
			return s.View(t.Context(), func(tx *store.Tx) error {
				for currency, minor := range want {
					w, err := tx.Wallet(t.Context(), sh.client, currency)
					if err != nil {
						return err
					}
					if w.Balance != minor || w.Reserved != 0 {
						t.Errorf("%s has %d %s with %d reserved, want %d", sh.name, w.Balance, currency, w.Reserved, minor)
					}
				}
				return nil
			})
		})
		t.Logf("%s: %d orders, %d of them lost and not asked for again", sh.name, len(sh.orders), unknown)
	}
}
