package payout_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/payout"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/storetest"
)

// twins are two instances on one database, each with a store of its own, that
// pay out through one operator, in real time.
type twins struct {
	stores   [2]*store.Store
	masters  [2]*payout.Disburser
	operator *sandbox.Operator
}

func onTwins(t *testing.T, f func(t *testing.T, w *twins)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := e.Config(t)
			w := &twins{}
			operator, err := sandbox.Open(t.Context(), sandbox.Config{Path: filepath.Join(t.TempDir(), "sandbox.db")})
			if err != nil {
				t.Fatal(err)
			}
			w.operator = operator
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for i := range w.stores {
				w.stores[i] = storetest.Open(t, c)
				w.masters[i] = payout.New(engine.Config{
					Store: w.stores[i], Secret: []byte("a secret for tests"),
					Connections: map[string]provider.Provider{"sandbox": operator.Payouts()},
					Routes:      engine.ByMode(func(till.Mode, string, string, string) string { return "sandbox" }),
				})
				running.Go(func() { w.masters[i].Run(ctx) })
			}
			defer func() {
				cancel()
				running.Wait()
				for _, m := range w.masters {
					if err := m.Close(context.Background()); err != nil {
						t.Error(err)
					}
				}
				storetest.CheckInvariants(t, w.stores[0])
				operator.Close()
			}()
			f(t, w)
		})
	}
}

// settled waits until no payout of a client is open any more.
func (w *twins) settled(t *testing.T, client till.ID) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var open int64
		err := w.stores[0].View(t.Context(), func(tx *store.Tx) error {
			for _, s := range []till.Status{till.Pending, till.Processing} {
				_, n, err := tx.ListPayouts(t.Context(), client, store.PaymentFilter{Status: s}, store.Page{})
				if err != nil {
					return err
				}
				open += n
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if open == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d payouts are still open after a minute", open)
		}
	}
}

// paid counts the operator's credits by payout.
func (w *twins) paid(t *testing.T) map[till.ID]int {
	t.Helper()
	all, err := w.operator.Credits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := map[till.ID]int{}
	for _, c := range all {
		n[c.Payout]++
	}
	return n
}

// rounds is how often a race is run: TILL_PAYOUT_ROUNDS times, or 10.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("TILL_PAYOUT_ROUNDS")); err == nil {
		return n
	}
	return 10
}

func anyMethod(c *till.Client) engine.Client {
	return engine.Client{Client: c, Enabled: func(string) bool { return true }}
}

// D1, D6: two hundred payouts of 6 000 at once, through two instances, from a
// wallet of 10 000: one is made, all that ask for it by its key get it,
// and the others are refused. Keys have a test of their own, because this
// wallet would refuse a second payout of the same key too.
func TestAWalletIsNeverOverdrawn(t *testing.T) {
	t.Parallel()
	onTwins(t, func(t *testing.T, w *twins) {
		const calls, keys = 200, 150 // so fifty ask for what another asks for too
		clients := make([]*till.Client, rounds())
		winners := make([]till.ID, len(clients))
		for round := range clients {
			client := storetest.NewClient(t, w.stores[0], till.Test)
			clients[round] = client
			fund(t, w.stores[0], client, 10_000)
			var mu sync.Mutex
			made, fresh, refused := map[till.ID]int{}, 0, 0
			var asking sync.WaitGroup
			begin := make(chan struct{})
			for i := range calls {
				asking.Go(func() {
					key := till.NewID(till.Time(round*1000+i%keys+1)*1000 + 1)
					key = till.ID(append(key[:8:8], client.ID[8:]...))
					r := request(t, key.String(), "4567", "6000")
					<-begin
					c, err := w.masters[i%2].Create(t.Context(), anyMethod(client), r)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						made[c.Payout.ID]++
						if !c.Replayed {
							fresh++
						}
					case till.ErrorCode(err) == till.CodeInsufficientBalance:
						refused++
					default:
						t.Errorf("a payout was refused: %v", err)
					}
				})
			}
			close(begin)
			asking.Wait()
			if len(made) != 1 || fresh != 1 || refused < calls-2 {
				t.Fatalf("round %d: %d payouts were made, %d of them fresh, %d calls refused", round, len(made), fresh, refused)
			}
			for id := range made {
				winners[round] = id
			}
		}
		for i, client := range clients {
			w.settled(t, client.ID)
			err := w.stores[1].View(t.Context(), func(tx *store.Tx) error {
				l, err := tx.Wallet(t.Context(), client.ID, "XAF")
				if err == nil && (l.Balance != 4000 || l.Reserved != 0) {
					t.Errorf("round %d: the wallet has %d with %d reserved; want 4000 and 0", i, l.Balance, l.Reserved)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		paid := w.paid(t)
		for _, id := range winners {
			if paid[id] != 1 {
				t.Errorf("payout %s was paid %d times", id, paid[id])
			}
		}
		if len(paid) != len(winners) {
			t.Errorf("%d payouts were paid, and %d were made", len(paid), len(winners))
		}
	})
}

// A cancel that races the send: what was cancelled was never paid, and what
// could not be was paid once.
func TestACancelThatRacesTheSend(t *testing.T) {
	t.Parallel()
	onTwins(t, func(t *testing.T, w *twins) {
		n := rounds() * 5
		client := storetest.NewClient(t, w.stores[0], till.Test)
		fund(t, w.stores[0], client, 2_000_000)
		var mu sync.Mutex
		cancelled := map[till.ID]bool{}
		var racing sync.WaitGroup
		slots := make(chan struct{}, 8)
		for i := range n {
			racing.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				c, err := w.masters[0].Create(t.Context(), anyMethod(client), request(t, till.NewID(till.TimeOf(time.Now())).String(), "4567", "100"))
				if err != nil {
					t.Error(err)
					return
				}
				// Two at once, at either instance, while the send may begin.
				var cancelling sync.WaitGroup
				for k := range 2 {
					cancelling.Go(func() {
						time.Sleep(time.Duration(i%10) * time.Millisecond / 2)
						p, err := w.masters[k].Cancel(t.Context(), store.Ref{Client: client.ID, ID: c.Payout.ID}, "api:test")
						switch {
						case err == nil && p.Status == till.PayoutCancelled:
							mu.Lock()
							cancelled[p.ID] = true
							mu.Unlock()
						case till.ErrorCode(err) != till.CodeNotCancellable:
							t.Errorf("cancel: %v", err)
						}
					})
				}
				cancelling.Wait()
			})
		}
		racing.Wait()
		w.settled(t, client.ID)
		paid := w.paid(t)
		for id, times := range paid {
			if cancelled[id] || times != 1 {
				t.Errorf("payout %s, cancelled %v, was paid %d times", id, cancelled[id], times)
			}
		}
		if len(paid)+len(cancelled) != n {
			t.Errorf("%d were paid and %d cancelled of %d", len(paid), len(cancelled), n)
		}
		t.Logf("%d were paid, %d cancelled", len(paid), len(cancelled))
		err := w.stores[1].View(t.Context(), func(tx *store.Tx) error {
			l, err := tx.Wallet(t.Context(), client.ID, "XAF")
			if err == nil && (l.Balance != 2_000_000-100*int64(len(paid)) || l.Reserved != 0) {
				t.Errorf("the wallet has %d with %d reserved", l.Balance, l.Reserved)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
