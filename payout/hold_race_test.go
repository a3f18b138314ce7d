package payout_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// The kill switch on two instances that are at work: what comes to the operator
// came within a second of the hold, what was not sent is paid once after the
// release, or was cancelled and never is.
func TestAHoldIsInForceOnEveryInstanceWithinASecond(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("repeats a race")
	}
	onTwins(t, func(t *testing.T, w *twins) {
		client := storetest.NewClient(t, w.stores[0], till.Test)
		fund(t, w.stores[0], client, 2_000_000)
		n := rounds() * 5
		made := make([]till.ID, n)
		create := func(i int, story string) {
			c, err := w.masters[i%2].Create(t.Context(), anyMethod(client), request(t, till.NewID(till.TimeOf(time.Now())).String(), story, "100"))
			if err == nil {
				made[i] = c.Payout.ID
			} else if till.ErrorCode(err) != till.CodePayoutsHeld {
				t.Error(err)
			}
		}
		var creating sync.WaitGroup
		for i := range n / 2 {
			creating.Go(func() { create(i, "0020") }) // kept back for a while, so they are held for certain
		}
		creating.Wait()
		for i := n / 2; i < n; i++ {
			creating.Go(func() { create(i, "4567") })
		}
		if err := books.HoldPayouts(t.Context(), w.stores[1], store.EveryClient, "person:Awa", "something is wrong"); err != nil {
			t.Fatal(err)
		}
		inForce := time.Now().Add(time.Second)
		creating.Wait()
		open := w.waits(t, client.ID, inForce)
		if paid := w.paid(t); len(open) < n/2 || slices.ContainsFunc(open, func(id till.ID) bool { return paid[id] > 0 }) {
			t.Errorf("of %d payouts %d are held; want half of them at least, and none of them paid", n, len(open))
		}
		// Half of them are cancelled, by either instance, while all are released.
		var mu sync.Mutex
		cancelled := map[till.ID]bool{}
		var cancelling sync.WaitGroup
		for i, id := range open {
			if i%2 == 0 {
				continue
			}
			cancelling.Go(func() {
				p, err := w.masters[i/2%2].CancelFor(t.Context(), store.Ref{Client: client.ID, ID: id}, "person:Awa", "not needed")
				switch {
				case err == nil && p.Status == till.PayoutCancelled:
					mu.Lock()
					cancelled[id] = true
					mu.Unlock()
				case till.ErrorCode(err) != till.CodeNotCancellable:
					t.Errorf("cancel a held payout: %v", err)
				}
			})
		}
		if err := books.ReleasePayouts(t.Context(), w.stores[0], store.EveryClient, "person:Awa", ""); err != nil {
			t.Fatal(err)
		}
		cancelling.Wait()
		w.settled(t, client.ID)
		paid := w.paid(t)
		for _, id := range made {
			if want := map[bool]int{false: 1}[cancelled[id]]; !id.IsZero() && paid[id] != want {
				t.Errorf("payout %s was paid %d times; cancelled: %v", id, paid[id], cancelled[id])
			}
		}
		t.Logf("%d were held, %d of them cancelled", len(open), len(cancelled))
	})
}

// waits checks that nothing was sent after a time, waits until all that is open
// of a client is held, and returns it.
func (w *twins) waits(t *testing.T, client till.ID, inForce time.Time) []till.ID {
	t.Helper()
	var open []till.ID
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var free int
		err := w.stores[0].Update(t.Context(), func(tx *store.Tx) error {
			open, free = nil, 0
			steps, err := admin.LockOpenSteps(t.Context(), tx, client, till.ID{}, false, 1000)
			for _, s := range steps {
				if open = append(open, s.SubjectID); s.HeldAt == 0 {
					free++
				}
				if s.Sends > 0 && s.SendStartedAt > till.TimeOf(inForce) {
					t.Errorf("payout %s was sent after the hold was in force", s.SubjectID)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if free == 0 {
			return open
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d open payouts are not held after a minute", free, len(open))
		}
	}
}
