package tokens_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/internal/seal"
	"till/provider"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
	"till/tokens"
)

var secret = bytes.Repeat([]byte{3}, 32)

// operator gives tokens, and counts how often it was asked.
type operator struct {
	asked  atomic.Int64
	takes  time.Duration
	life   time.Duration
	err    atomic.Pointer[error]
	repeat atomic.Bool // it gives the last one again
}

func (o *operator) fetch(ctx context.Context) (string, time.Duration, error) {
	n := o.asked.Add(1)
	select {
	case <-time.After(o.takes):
	case <-ctx.Done():
		return "", 0, ctx.Err()
	}
	if err := o.err.Load(); err != nil {
		return "", 0, *err
	}
	if o.repeat.Load() {
		n = 1
	}
	return fmt.Sprintf("token %d", n), o.life, nil
}

func keeper(t *testing.T, s *store.Store) *tokens.Cache {
	t.Helper()
	k, err := tokens.New(s, seal.Single(secret), nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// inTime tells a story in virtual time, on each engine, with two instances on
// one database.
func inTime(t *testing.T, tell func(t *testing.T, stores [2]*store.Store)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := e.Config(t)
			c.NoNotify = true // to wait on the network would stop the time here
			synctest.Test(t, func(t *testing.T) {
				c.Now = func() till.Time { return till.TimeOf(time.Now()) }
				var stores [2]*store.Store
				for i := range stores {
					s, err := store.Open(context.Background(), c)
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					if _, err := s.Migrate(context.Background()); err != nil {
						t.Fatal(err)
					}
					stores[i] = s
				}
				tell(t, stores)
			})
		})
	}
}

// Expiry is the end of the token that ends first, as a gauge shows it.
func TestExpiryIsTheFirstEnd(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, stores [2]*store.Store) {
		k := keeper(t, stores[0])
		if end := k.Expiry("momo"); !end.IsZero() {
			t.Errorf("an end without a token: %s", end)
		}
		began := time.Now()
		for name, life := range map[string]time.Duration{"collection": 3 * time.Hour, "disbursement": time.Hour} {
			o := &operator{life: life}
			if _, err := k.For("momo", "a").Token(t.Context(), name, "", o.fetch); err != nil {
				t.Fatal(err)
			}
		}
		if left := k.Expiry("momo").Sub(began); left < 50*time.Minute || left > time.Hour {
			t.Errorf("it ends in %s", left)
		}
		if end := k.Expiry("airtel"); !end.IsZero() {
			t.Errorf("another connection's: %s", end)
		}
	})
}

func TestFiftyCallersOfTwoInstancesAskOnce(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := e.Config(t)
			of := [2]provider.Tokens{keeper(t, storetest.Open(t, c)).For("momo", "a"), keeper(t, storetest.Open(t, c)).For("momo", "a")}
			o := &operator{takes: 50 * time.Millisecond, life: time.Hour}
			all := func(stale, want string) {
				t.Helper()
				var wg sync.WaitGroup
				for n := range 50 {
					wg.Go(func() {
						if got, err := of[n%2].Token(t.Context(), "collection", stale, o.fetch); err != nil || got != want {
							t.Errorf("got %q, %v; want %q", got, err, want)
						}
					})
				}
				wg.Wait()
			}
			all("", "token 1")
			if n := o.asked.Load(); n != 1 {
				t.Errorf("the operator was asked %d times", n)
			}
			all("token 1", "token 2") // it was refused to all of them
			if n := o.asked.Load(); n != 2 {
				t.Errorf("after a refusal the operator was asked %d times, want 2", n)
			}
			if got, err := of[0].Token(t.Context(), "disbursement", "", o.fetch); err != nil || got != "token 3" {
				t.Errorf("another name: got %q, %v", got, err)
			}
		})
	}
}

func TestATokenIsRenewedEarlyByOne(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, stores [2]*store.Store) {
		o := &operator{takes: 20 * time.Second, life: time.Hour}
		of := [2]provider.Tokens{keeper(t, stores[0]).For("momo", "a"), keeper(t, stores[1]).For("momo", "a")}
		get := func(n int) string {
			t.Helper()
			token, err := of[n].Token(context.Background(), "x", "", o.fetch)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		if get(0) != "token 1" || get(1) != "token 1" {
			t.Error("not the first token")
		}
		time.Sleep(49 * time.Minute)
		if get(0); o.asked.Load() != 1 {
			t.Error("it is renewed too early")
		}
		time.Sleep(time.Minute)
		began := time.Now()
		if get(0) != "token 1" || get(1) != "token 1" || time.Since(began) > 0 {
			t.Error("a token that works still is waited for")
		}
		time.Sleep(time.Minute)
		if get(0) != "token 2" || get(1) != "token 2" || o.asked.Load() != 2 {
			t.Errorf("the operator was asked %d times", o.asked.Load())
		}
		// The operator is away when it is to be renewed, and back before its end.
		away := errors.New("away")
		o.err.Store(&away)
		time.Sleep(51 * time.Minute)
		if get(0) != "token 2" {
			t.Error("not the old token")
		}
		o.err.Store(nil)
		time.Sleep(time.Minute)
		get(0)
		time.Sleep(time.Minute)
		if token := get(0); token == "token 2" {
			t.Errorf("the operator is back, and the token is %s", token)
		}
		// An operator that gives the old one again while it lives.
		before := get(0)
		o.repeat.Store(true)
		time.Sleep(51 * time.Minute)
		get(0)
		time.Sleep(time.Minute)
		if token := get(0); token == before {
			t.Errorf("got %s", token)
		}
		synctest.Wait()
	})
}

func TestADeadInstanceKeepsNobodyWaitingForLong(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, stores [2]*store.Store) {
		dead, live := keeper(t, stores[0]).For("momo", "a"), keeper(t, stores[1]).For("momo", "a")
		stop := make(chan struct{})
		hung := func(context.Context) (string, time.Duration, error) { <-stop; return "", 0, errors.New("dead") }
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := dead.Token(ctx, "x", "", hung); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the caller's time is over", err)
		}
		began := time.Now()
		o := &operator{life: time.Hour}
		got, err := live.Token(context.Background(), "x", "", o.fetch)
		if waited := time.Since(began); err != nil || got != "token 1" || waited > 41*time.Second || waited < 30*time.Second {
			t.Errorf("got %q, %v after %s", got, err, waited)
		}
		close(stop)
		synctest.Wait()
	})
}

func TestAnOperatorThatRefusesIsNotStormed(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, stores [2]*store.Store) {
		of := [2]provider.Tokens{keeper(t, stores[0]).For("momo", "a"), keeper(t, stores[1]).For("momo", "a")}
		o := &operator{life: time.Hour}
		o.err.Store(&provider.ErrCredentials)
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			for _, tokens := range of {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				if _, err := tokens.Token(ctx, "x", "", o.fetch); !errors.Is(err, provider.ErrCredentials) {
					t.Errorf("got %v", err)
				}
				cancel()
			}
		}
		if n := o.asked.Load(); n < 5 || n > 12 {
			t.Errorf("the operator was asked %d times in ten seconds, want about once a second", n)
		}
	})
}

func TestATokenThatIsRefusedIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		o := &operator{life: time.Hour}
		o.repeat.Store(true)
		for name, of := range map[string]provider.Tokens{"shared": keeper(t, s).For("momo", "a"), "memory": provider.MemoryTokens()} {
			if got, err := of.Token(t.Context(), "x", "", o.fetch); err != nil || got != "token 1" {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
			if got, err := of.Token(t.Context(), "x", "token 1", o.fetch); !errors.Is(err, provider.ErrTokenRefused) {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
		}
		// What another connection keeps, or somebody with another secret, is
		// not opened.
		other, err := tokens.New(s, seal.Single(bytes.Repeat([]byte{4}, 32)), nil)
		if err != nil {
			t.Fatal(err)
		}
		n := o.asked.Load()
		if _, err := other.For("momo", "a").Token(t.Context(), "x", "", o.fetch); err != nil || o.asked.Load() != n+1 {
			t.Errorf("with another secret: %v, asked %d times", err, o.asked.Load()-n)
		}
	})
}

func TestATokenOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s, err := store.Open(t.Context(), e.Config(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			of := keeper(t, s).For("momo", "a")
			o := &operator{life: time.Hour}
			if _, err := of.Token(t.Context(), "x", "", o.fetch); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if got, err := of.Token(t.Context(), "x", "", o.fetch); err != nil || got != "token 1" {
				t.Errorf("the database is away: got %q, %v", got, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if got, err := of.Token(ctx, "x", "token 1", o.fetch); err == nil {
				t.Errorf("a new one cannot be shared, and it is %q", got)
			}
		})
	}
}

// A name that stands for another account now has nothing of the old one's.
func TestAnotherAccountGetsATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		k, o := keeper(t, s), &operator{life: time.Hour}
		get := func(settings string) string {
			t.Helper()
			token, err := k.For("momo", settings).Token(t.Context(), "x", "", o.fetch)
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		if get("one") != "token 1" || get("another") != "token 2" || get("one") != "token 1" {
			t.Error("two accounts share a token")
		}
		clock.Advance(48 * time.Hour)
		k = keeper(t, s)
		get("another")
		err := s.View(t.Context(), func(tx *store.Tx) error {
			old, err := admin.ReadOperatorToken(t.Context(), tx, "momo", "one x")
			if err == nil && old.Version != 0 {
				t.Error("the token of an account that is used no more is kept")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestTokensAreSealed(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		o := &operator{life: time.Hour}
		if _, err := keeper(t, s).For("momo", "a").Token(t.Context(), "x", "", o.fetch); err != nil {
			t.Fatal(err)
		}
		err := s.View(t.Context(), func(tx *store.Tx) error {
			row, err := admin.ReadOperatorToken(t.Context(), tx, "momo", "a x")
			if err == nil && (len(row.Sealed) < 20 || bytes.Contains(row.Sealed, []byte("token"))) {
				t.Errorf("kept as %q", row.Sealed)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
