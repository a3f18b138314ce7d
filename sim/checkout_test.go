package sim

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"modernc.org/sqlite"

	"till"
	"till/checkout"
	"till/engine"
	"till/internal/db/dbfault"
	"till/provider/simulator"
	"till/recovery"
	"till/store"
	"till/store/checkouts"
	"till/store/storetest"
)

// order is what the shop sends for a checkout, each time the same.
const order = `{"amount":{"value":"1000","currency":"CURRENCY"},"reference":"ORDER-1042","idempotency_key":"9d5a1c1e-6f0f-4d0c-8f8d-0b1a4c0b8a11","expires_in_seconds":2592000}`

// P15: the database of a moment before the checkout is put back, after its customer was asked and
// while that was paid, or is still open at the operator. The shop makes the checkout again with
// the same key, and the customer asks again. It is the same ask, and no operator is asked twice.
func TestACheckoutAfterARestore(t *testing.T) {
	t.Parallel()
	files, err := configurations()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		operator, phone string
		paid            bool // before the database is put back
		asks            bool // our reference finds the request again; else a person's statement has to
	}{
		{"mtnmomo", mtnWell, true, true}, {"airtel", airtelWell, true, true}, {"mpesa", mpesaWell, true, false}, {"pawapay", pawaWell, true, true},
		{"mtnmomo", mtnNever, false, true},
	} {
		name := c.operator
		if !c.paid {
			name += " open"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := newFolder(t)
			storetest.NewFile(t, filepath.Join(folder, "till.db"))
			receiverCertificate()
			synctest.Test(t, func(t *testing.T) {
				w := NewWorld(t, folder, files[0], &dbfault.Plan{})
				defer w.Close()
				defer w.End()
				w.Start(Options{Poll: time.Minute})
				newest(w)
				time.Sleep(time.Minute)
				from, saved := w.store.Now(), filepath.Join(folder, "saved.db")
				raw := storetest.OpenRaw(t, w.path)
				storetest.Exec(t, raw, "VACUUM INTO ?", saved)
				time.Sleep(time.Minute)

				first := w.orderAndAsk(c.operator, c.phone)
				time.Sleep(20 * time.Minute)
				if a := w.lastAsk(first); a.N != 1 || (a.Stand() == till.AskCredited) != c.paid {
					t.Fatalf("before the restore the ask stands at %v: %+v", a.Stand(), a)
				}
				key := w.lastAsk(first).Key

				w.putBack(raw, saved)
				w.must(w.Command(func(ctx context.Context, s *store.Store) error {
					_, err := recovery.MarkRestored(ctx, s, recovery.RestoreRequest{Secret: secretText, LostFrom: from, KeysReviewed: true, By: "Awa"})
					return err
				}))
				w.bringUp(0)
				time.Sleep(time.Minute)
				again := w.orderAndAsk(c.operator, c.phone)
				if again == first {
					t.Fatal("the checkout was not lost")
				}
				for range 3 { // she presses again and again
					time.Sleep(20 * time.Minute)
					w.press(again, 1, c.operator, c.phone)
				}
				a := w.lastAsk(again)
				if a.N != 1 || a.Key != key {
					t.Errorf("it is another ask: %+v", a)
				}
				if a.Stand() != till.AskCredited && (c.paid && c.asks || a.Stand() != till.AskLive) {
					t.Errorf("the ask stands at %v, of %s", a.Stand(), a.Status)
				}
				taken, moved := 0, 0
				for name, o := range w.operators {
					for _, e := range o.book.Entries() {
						taken++
						if state, _ := e.StateAt(o.book.Now()); state == simulator.Success {
							moved++
						}
						if name != c.operator || !strings.HasSuffix(c.phone, e.Phone) { // Airtel leaves the country out
							t.Errorf("%s was asked for %s", name, e.Phone)
						}
					}
				}
				if taken != 1 || moved > 1 || c.paid && moved != 1 {
					t.Errorf("the operator was asked %d times, and moved money %d times", taken, moved)
				}
				w.must(raw.Close())
			})
		})
	}
}

// orderAndAsk makes the checkout as the shop does, and asks as its page does.
func (w *World) orderAndAsk(operator, phone string) store.Ref {
	ref := w.order1042(operator)
	w.press(ref, 1, operator, phone)
	return ref
}

// order1042 makes the checkout.
func (w *World) order1042(operator string) store.Ref {
	var made struct{ ID string }
	w.create("/checkouts", strings.Replace(order, "CURRENCY", markets[operator].currency, 1), &made)
	id, err := till.ParseID(made.ID)
	w.must(err)
	return store.Ref{Client: w.client.ID, ID: id}
}

// press sends the n-th form of the page, and again until it is answered: the database or the
// process may be away at each step.
func (w *World) press(ref store.Ref, n int, operator, phone string) *till.Ask {
	for end := time.Now().Add(patience); ; time.Sleep(3 * time.Second) {
		a, err := w.post(ref, n, operator, phone)
		switch code := till.ErrorCode(err); {
		case err == nil:
			return a
		case time.Now().After(end), !errors.Is(err, errCrashed) && code != till.CodeServiceUnavailable && code != till.CodeInternal:
			w.T.Errorf("asked at %s: %v", operator, err)
			return nil
		}
	}
}

// post sends it once, to the instance that is up.
func (w *World) post(ref store.Ref, n int, operator, phone string) (*till.Ask, error) {
	i := w.up()
	if i == nil {
		return nil, errCrashed
	}
	i.mu.Lock()
	if i.closed {
		i.mu.Unlock()
		return nil, errCrashed
	}
	i.requests.Add(1)
	i.mu.Unlock()
	defer i.requests.Done()
	who, m := engine.Client{Client: w.client, Actor: "test", Enabled: func(string) bool { return true }}, markets[operator]
	a, err := i.j.Checkouts().Ask(context.Background(), who, ref, checkout.Typed{N: n, Phone: phone, Method: m.method, Country: m.country})
	if i.isDead() {
		return nil, errCrashed
	}
	return a, err
}

// known notes an ask as an order of the client: its payment is there, once.
func (w *World) known(a *till.Ask) {
	if a == nil {
		return
	}
	w.answers.mu.Lock()
	defer w.answers.mu.Unlock()
	key := a.Key.String()
	w.answers.orders[key] = &Order{Kind: "payment", Key: key, ID: a.PaymentID.String()}
}

// payCheckout is the story of a checkout whose first number declines and whose second pays. Each form is
// sent twice, the second time with another number.
func payCheckout(w *World) {
	ref := w.order1042("mtnmomo")
	for n, phone := range []string{mtnDeclines, mtnWell} {
		a := w.press(ref, n+1, "mtnmomo", phone)
		w.known(a)
		if again := w.press(ref, n+1, "mtnmomo", mtnSilent); a == nil || again == nil || again.Key != a.Key || again.PaymentID != a.PaymentID {
			w.T.Errorf("form %d made %+v and %+v", n+1, a, again)
		}
		for end := time.Now().Add(20 * time.Minute); w.lastAsk(ref).Stand() == till.AskLive && time.Now().Before(end); {
			time.Sleep(10 * time.Second)
		}
	}
	var state till.CheckoutState
	for end := time.Now().Add(20 * time.Minute); state != till.CheckoutPaid && time.Now().Before(end); time.Sleep(10 * time.Second) {
		storetest.View(w.T, w.store, func(ctx context.Context, tx *store.Tx) error {
			c, err := checkouts.Get(ctx, tx, ref)
			if err == nil {
				state = c.State
			}
			return err
		})
	}
	if a := w.lastAsk(ref); state != till.CheckoutPaid || a.N != 2 {
		w.T.Errorf("it is %s after %d asks", state, a.N)
	}
}

// lastAsk returns the last ask of a checkout.
func (w *World) lastAsk(ref store.Ref) (a *till.Ask) {
	a = &till.Ask{}
	storetest.View(w.T, w.store, func(ctx context.Context, tx *store.Tx) error {
		all, err := checkouts.Asks(ctx, tx, ref)
		if len(all) > 0 {
			a = &all[len(all)-1]
		}
		return err
	})
	return a
}

// putBack stops the instance and puts a saved database in place of what there is.
func (w *World) putBack(raw *sql.DB, saved string) {
	w.mu.Lock()
	i := w.instances[0]
	w.instances[0] = nil
	w.mu.Unlock()
	i.stop()
	conn, err := raw.Conn(context.Background())
	w.must(err)
	defer conn.Close()
	w.must(conn.Raw(func(c any) error {
		r, err := c.(interface {
			NewRestore(from string) (*sqlite.Backup, error)
		}).NewRestore(saved)
		if err != nil {
			return err
		}
		for more := true; more; {
			if more, err = r.Step(-1); err != nil {
				return err
			}
		}
		return r.Finish()
	}))
}
