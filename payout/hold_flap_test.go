package payout_test

import (
	"sync"
	"testing"
	"time"

	"till"
	"till/account"
	"till/books"
	"till/store"
	"till/store/storetest"
)

// Holds that come and go, of a person and of a suspension, while two instances send and
// somebody cancels: each payout is paid once, or was cancelled and never is.
func TestHoldsThatComeAndGoPayOnce(t *testing.T) {
	t.Parallel()
	onTwins(t, func(t *testing.T, w *twins) {
		client := storetest.NewClient(t, w.stores[0], till.Test)
		fund(t, w.stores[0], client, 2_000_000)
		var mu sync.Mutex
		made, cancelled := []till.ID{}, map[till.ID]bool{}
		var working sync.WaitGroup
		for range 8 {
			working.Go(func() {
				for i := range rounds() {
					c, err := w.masters[i%2].Create(t.Context(), anyMethod(client), request(t, till.NewID(till.TimeOf(time.Now())).String(), "4567", "100"))
					if code := till.ErrorCode(err); code == till.CodePayoutsHeld || code == till.CodeClientSuspended {
						time.Sleep(5 * time.Millisecond)
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					made = append(made, c.Payout.ID)
					mu.Unlock()
					if i%3 > 0 {
						continue
					}
					p, err := w.masters[i/3%2].CancelFor(t.Context(), store.Ref{Client: client.ID, ID: c.Payout.ID}, "person:Awa", "not needed")
					switch {
					case err == nil && p.Status == till.PayoutCancelled:
						mu.Lock()
						cancelled[c.Payout.ID] = true
						mu.Unlock()
					case till.ErrorCode(err) != till.CodeNotCancellable:
						t.Errorf("cancel: %v", err)
					}
				}
			})
		}
		for i := range 20 {
			s, accounts := w.stores[i%2], account.New(w.stores[(i+1)%2], nil)
			for _, act := range []func() error{
				func() error { return books.HoldPayouts(t.Context(), s, client.ID, "person:Awa", "flap") },
				func() error { return accounts.Suspend(t.Context(), client.ID, "cli:awa") },
				func() error { return books.ReleasePayouts(t.Context(), s, client.ID, "person:Awa", "") },
				func() error { return accounts.Resume(t.Context(), client.ID, "cli:awa") },
			} {
				if err := act(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		working.Wait()
		w.settled(t, client.ID)
		paid := w.paid(t)
		for _, id := range made {
			if want := map[bool]int{false: 1}[cancelled[id]]; paid[id] != want {
				t.Errorf("payout %s was paid %d times; cancelled: %v", id, paid[id], cancelled[id])
			}
		}
		t.Logf("%d were made, %d cancelled", len(made), len(cancelled))
	})
}
