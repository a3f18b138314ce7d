package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/admin"
	"till/store/proof"
	"till/store/storetest"
)

var noon = till.TimeOf(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC))

// F26: the times of a client only ever go forward, whatever the clock does.
func TestTickGoesForwardWhenTheClockGoesBack(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		client := storetest.NewClient(t, s, till.Test)
		last := client.CreatedAt
		for i, move := range []time.Duration{0, time.Second, -time.Hour, 0, -24 * time.Hour, time.Microsecond, 48 * time.Hour, -time.Microsecond} {
			clock.Advance(move)
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				heads, err := tx.LockHeads(t.Context(), []till.ID{client.ID})
				if err != nil {
					return err
				}
				h := heads[client.ID]
				for range 3 {
					at := h.NextTime()
					if at <= last {
						t.Errorf("move %d: %s after %s", i, at, last)
					}
					if now := clock.Now(); now > last && at != now {
						t.Errorf("move %d: got %s, and the clock stands at %s", i, at, now)
					}
					last = at
				}
				return tx.SaveHeads(t.Context(), heads)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAPaymentsTimesGoForwardWhenTheClockGoesBack(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		var last till.Time
		for range 5 {
			p := storetest.NewPayment(t, c, client, storetest.Body{})
			clock.Advance(-10 * time.Minute)
			done := storetest.Apply(t, c, s, p, storetest.Succeeded)
			if p.CreatedAt <= last || done.UpdatedAt <= p.CreatedAt {
				t.Errorf("created at %s, ended at %s, after %s", p.CreatedAt, done.UpdatedAt, last)
			}
			last = done.UpdatedAt
		}
	})
}

func TestLockHeads(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, b := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test)
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			heads, err := tx.LockHeads(t.Context(), []till.ID{b.ID, a.ID, b.ID, till.NewID(1)})
			if err != nil {
				return err
			}
			if len(heads) != 2 || heads[a.ID] == nil || heads[b.ID] == nil {
				t.Errorf("got %v, want the two that exist", heads)
			}
			if n, m := heads[a.ID].NextEvent(), heads[a.ID].NextEvent(); n != 1 || m != 2 {
				t.Errorf("the first events are %d and %d", n, m)
			}
			return errors.New("roll it back")
		})
		if err == nil {
			t.Fatal("the error of f was lost")
		}
		err = s.View(t.Context(), func(tx *store.Tx) error {
			h, err := proof.Head(t.Context(), tx, a.ID)
			if h.LastEvent != 0 {
				t.Errorf("a transaction that failed gave out event %d", h.LastEvent)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestUpdateIsAllOrNothing(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		insert := func(tx *store.Tx) till.ID {
			c := &till.Client{ID: till.NewID(tx.Now()), Name: "n", Mode: till.Test, CreatedAt: tx.Now()}
			if err := tx.InsertClient(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			return c.ID
		}
		exists := func(id till.ID) bool {
			err := s.View(t.Context(), func(tx *store.Tx) error { _, err := tx.Client(t.Context(), id); return err })
			return err == nil
		}
		var id till.ID
		if err := s.Update(t.Context(), func(tx *store.Tx) error { id = insert(tx); return errors.New("no") }); err == nil || exists(id) {
			t.Error("an error did not roll back")
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			s.Update(t.Context(), func(tx *store.Tx) error { id = insert(tx); panic("no") })
		}()
		if exists(id) {
			t.Error("a panic did not roll back")
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := s.Update(ctx, func(tx *store.Tx) error { id = insert(tx); cancel(); return nil }); err != nil || !exists(id) {
			t.Errorf("a caller that went away rolled back what others may wait for: %v", err)
		}
	})
}

func TestAViewIsOneSnapshotAndCannotWrite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		err := s.View(t.Context(), func(tx *store.Tx) error {
			for range 2 {
				rows, total, err := tx.ListPayments(t.Context(), client.ID, store.PaymentFilter{}, store.Page{Limit: 10})
				if err != nil || len(rows) != 0 || total != 0 {
					t.Errorf("the snapshot changed: %d rows of %d, %v", len(rows), total, err)
				}
				storetest.NewPayment(t, c, client, storetest.Body{})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		err = s.View(t.Context(), func(tx *store.Tx) error { return tx.SetSuspended(t.Context(), client.ID, true) })
		if err == nil {
			t.Error("a view could write")
		}
	})
}

// The command line beside the server, or two instances: two stores on one
// database.
func TestTwoWritersOnOneDatabaseLoseNothing(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Config(t)
			stores := []*store.Store{storetest.Open(t, config), storetest.Open(t, config)}
			t.Cleanup(func() { storetest.CheckInvariants(t, stores[1]) })
			client := storetest.NewClient(t, stores[0], till.Test)
			const each = 24
			var all sync.WaitGroup
			for _, s := range stores {
				c := storetest.NewCollector(t, s)
				for range 2 {
					all.Go(func() {
						for range each / 2 {
							p := storetest.NewPayment(t, c, client, storetest.Body{})
							storetest.Apply(t, c, s, p, storetest.Succeeded)
						}
					})
				}
			}
			all.Wait()
			for i, s := range stores {
				err := s.View(t.Context(), func(tx *store.Tx) error {
					_, total, err := tx.ListPayments(t.Context(), client.ID, store.PaymentFilter{Status: till.Success}, store.Page{Limit: 1})
					if err != nil {
						return err
					}
					w, err := tx.Wallet(t.Context(), client.ID, "XAF")
					if err != nil {
						return err
					}
					if total != 2*each || w.Balance != 2*each*5000 || w.LastSequence != 2*each {
						t.Errorf("store %d sees %d payments and %+v, want %d", i, total, w, 2*each)
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// F28, F12 at the store's level: many batches over the same rows.
func TestManyBatchesAtOnceCreditOnce(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		var payments []*till.Payment
		for range 4 {
			payments = append(payments, storetest.NewPayment(t, c, client, storetest.Body{}))
		}
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				r := storetest.Succeeded
				r.Receipt = fmt.Sprint("R", i%4)
				storetest.Apply(t, c, s, payments[i%4], r)
			})
		}
		all.Wait()
		err := s.View(t.Context(), func(tx *store.Tx) error {
			w, err := tx.Wallet(t.Context(), client.ID, "XAF")
			if w.Balance != 4*5000 || w.LastSequence != 4 {
				t.Errorf("got %+v, want four credits", w)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// An instance that reads a time that was written by the database's clock finds that it is
// not ahead of its own. Else a lease that was taken just now would look like one
// from before the clock was set back, and be taken again.
func TestNothingIsSeenFromTheFuture(t *testing.T) {
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		const rounds = 2000
		token := &admin.OperatorToken{Connection: "post", Name: "x"}
		var writing sync.WaitGroup
		defer writing.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		writing.Go(func() {
			for ctx.Err() == nil {
				r := *token
				err := s.Update(t.Context(), func(tx *store.Tx) error {
					r = *token // the function may run twice
					r.LeaseUntil = tx.Now()
					_, err := admin.SwapOperatorToken(t.Context(), tx, &r)
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				*token = r
			}
		})
		for range rounds {
			err := s.View(t.Context(), func(tx *store.Tx) error {
				r, err := admin.ReadOperatorToken(t.Context(), tx, "post", "x")
				if err == nil && r.LeaseUntil > tx.Now() {
					t.Errorf("it is %v, and what was written at %v is seen", tx.Now(), r.LeaseUntil)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
