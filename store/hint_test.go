package store_test

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"till"
	"till/collect"
	"till/engine"
	"till/internal/db/pgtest"
	"till/internal/hint"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// heard fails the test if a Subscription gets no hint. The time is for a machine that
// stands still; a hint takes milliseconds.
func heard(t *testing.T, sub *hint.Subscription, what string) {
	t.Helper()
	select {
	case <-sub.C():
	case <-time.After(30 * time.Second):
		t.Fatalf("not heard: %s", what)
	}
}

func silent(t *testing.T, sub *hint.Subscription, what string) {
	t.Helper()
	select {
	case <-sub.C():
		t.Errorf("heard: %s", what)
	default:
	}
}

// settled waits until a Subscription hears of other processes, and forgets what it has
// heard until then.
func settled(t *testing.T, subs ...*hint.Subscription) {
	t.Helper()
	for _, sub := range subs {
		for deadline := time.Now().Add(30 * time.Second); sub.MaxWait() < time.Second; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("other processes are not heard")
			}
		}
	}
	for _, sub := range subs {
		select {
		case <-sub.C():
		default:
		}
		sub.Drain()
	}
}

func TestACommitIsHeard(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, b := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test)
		ofA, ofB, all := s.Subscribe(a.ID), s.Subscribe(b.ID), s.SubscribeAll()
		for _, sub := range []*hint.Subscription{ofA, ofB, all} {
			t.Cleanup(sub.Close)
		}
		if s.Shared() {
			select { // word of the beginning comes at any time: see the next test
			case <-ofB.C():
			default:
			}
		} else {
			settled(t, ofA, ofB, all)
		}
		c := storetest.NewCollector(t, s)
		p := storetest.NewPayment(t, c, a, storetest.Body{})
		heard(t, ofA, "a creation")
		heard(t, all, "a creation, by whoever hears everybody")
		if clients, every := all.Drain(); !every && (len(clients) != 1 || clients[0] != a.ID) {
			t.Errorf("Take names %v", clients)
		}
		storetest.Apply(t, c, s, p, storetest.Succeeded)
		heard(t, ofA, "a success")
		if !s.Shared() {
			silent(t, ofB, "another client's log")
		}
	})
}

func TestARolledBackTransactionTellsNothing(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Test)
		sub := s.SubscribeAll()
		t.Cleanup(sub.Close)
		no := errors.New("no")
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			heads, err := tx.LockHeads(t.Context(), []till.ID{client.ID})
			if err != nil {
				return err
			}
			heads[client.ID].NextEvent()
			if err := tx.SaveHeads(t.Context(), heads); err != nil {
				return err
			}
			return no
		})
		if !errors.Is(err, no) {
			t.Fatal(err)
		}
		if clients, _ := sub.Drain(); clients != nil {
			t.Errorf("it tells of %v", clients)
		}
	})
}

// pair is two Stores on one database, as two processes would have them.
func pair(t *testing.T, f func(t *testing.T, c store.Config, here, there *store.Store)) {
	t.Helper()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			c := e.Config(t)
			here := storetest.Open(t, c)
			t.Cleanup(func() { storetest.CheckInvariants(t, here) })
			f(t, c, here, storetest.Open(t, c))
		})
	}
}

func TestAnotherProcessIsHeard(t *testing.T) {
	t.Parallel()
	pair(t, func(t *testing.T, _ store.Config, here, there *store.Store) {
		a, b := storetest.NewClient(t, here, till.Test), storetest.NewClient(t, here, till.Test)
		ofA, ofB, others, all := here.Subscribe(a.ID), here.Subscribe(b.ID), here.SubscribeRemote(), here.SubscribeAll()
		subs := []*hint.Subscription{ofA, ofB, others, all}
		for _, sub := range subs {
			t.Cleanup(sub.Close)
		}
		settled(t, subs...)
		c := storetest.NewCollector(t, there)
		p := storetest.NewPayment(t, c, a, storetest.Body{})
		heard(t, ofA, "a creation elsewhere")
		heard(t, others, "a creation elsewhere, by whoever hears others")
		heard(t, all, "a creation elsewhere, by whoever hears everybody")
		if here.Shared() {
			silent(t, ofB, "another client's log")
			if clients, every := others.Drain(); every || len(clients) != 1 || clients[0] != a.ID {
				t.Errorf("Take names %v, all %t", clients, every)
			}
		}
		storetest.Apply(t, c, there, p, storetest.Succeeded)
		heard(t, ofA, "a success elsewhere")

		// What this Store does itself, it does not tell as somebody else's.
		own := here.SubscribeRemote()
		defer own.Close()
		settled(t, own, ofA)
		storetest.NewPayment(t, storetest.NewCollector(t, here), a, storetest.Body{})
		heard(t, ofA, "a creation here")
		silent(t, own, "a creation here as somebody else's")
	})
}

// A command opens the database, writes and ends.
func TestAShortProcessIsHeard(t *testing.T) {
	t.Parallel()
	pair(t, func(t *testing.T, c store.Config, here, _ *store.Store) {
		client := storetest.NewClient(t, here, till.Test)
		sub := here.Subscribe(client.ID)
		t.Cleanup(sub.Close)
		settled(t, sub)
		s, err := store.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		storetest.NewPayment(t, storetest.NewCollector(t, s), client, storetest.Body{})
		s.Close()
		heard(t, sub, "what a process did that has ended")
	})
}

// An unknown commit may have happened, so it is told, here and elsewhere. The
// second try finds the payment and makes no log longer.
func TestAnUnknownCommitIsTold(t *testing.T) {
	t.Parallel()
	l := newLink(t)
	client := storetest.NewClient(t, l.straight, till.Test)
	here, there := l.through.Subscribe(client.ID), l.straight.Subscribe(client.ID)
	t.Cleanup(here.Close)
	t.Cleanup(there.Close)
	settled(t, here, there)
	l.proxy.CutNext(pgtest.AfterCommit)
	storetest.NewPayment(t, storetest.NewCollector(t, l.through), client, storetest.Body{})
	heard(t, here, "an unknown commit")
	heard(t, there, "an unknown commit elsewhere")
}

// hintConnections counts the connections for hints of a test's schema, and
// ends them if told to.
func hintConnections(t *testing.T, path string, end bool) (n int) {
	t.Helper()
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	query := `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`
	if end {
		query = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`
	}
	if err := conn.QueryRow(t.Context(), query, "till hints "+cmp.Or(u.Query().Get("search_path"), "public")).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func onPostgres(t *testing.T) store.Config {
	t.Helper()
	return storetest.Shared(t).Config(t)
}

func TestALostListenerComesBack(t *testing.T) {
	t.Parallel()
	c := onPostgres(t)
	here, there := storetest.Open(t, c), storetest.Open(t, c)
	client := storetest.NewClient(t, here, till.Test)
	sub := here.Subscribe(client.ID)
	t.Cleanup(sub.Close)
	col := storetest.NewCollector(t, there)
	for range 2 {
		settled(t, sub)
		storetest.NewPayment(t, col, client, storetest.Body{})
		heard(t, sub, "a creation elsewhere")
		if n := hintConnections(t, c.Path, true); n < 2 {
			t.Fatalf("%d connections were ended, want the listener's and a sender's", n)
		}
		heard(t, sub, "that the listener's connection was lost")
	}
	settled(t, sub)
	for _, s := range []*store.Store{here, there} {
		s.Subscribe(client.ID) // a Subscription that nobody closes keeps nothing alive
	}
}

func TestWithoutNotifyNobodyListens(t *testing.T) {
	t.Parallel()
	c := onPostgres(t)
	c.NoNotify = true
	s := storetest.Open(t, c)
	client := storetest.NewClient(t, s, till.Test)
	sub := s.Subscribe(client.ID)
	t.Cleanup(sub.Close)
	storetest.NewPayment(t, storetest.NewCollector(t, s), client, storetest.Body{})
	heard(t, sub, "a creation here")
	if sub.MaxWait() > time.Second || hintConnections(t, c.Path, false) != 0 {
		t.Errorf("patience %s with %d connections for hints", sub.MaxWait(), hintConnections(t, c.Path, false))
	}
}

func TestCloseEndsTheHints(t *testing.T) {
	t.Parallel()
	c := onPostgres(t)
	s, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	settled(t, s.SubscribeAll())
	if hintConnections(t, c.Path, false) != 2 {
		t.Error("there are not two connections for hints")
	}
	s.Close()
	for deadline := time.Now().Add(30 * time.Second); hintConnections(t, c.Path, false) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("connections for hints are left behind")
		}
	}
}

// An instance that works is woken by one that only accepts: its own next look
// would be in an hour.
func TestAWorkerIsWokenByAnotherInstance(t *testing.T) {
	t.Parallel()
	c := onPostgres(t)
	api, worker := storetest.Open(t, c), storetest.Open(t, c)
	t.Cleanup(func() { storetest.CheckInvariants(t, api) })
	client := storetest.NewClient(t, api, till.Test)
	o := newOperator(t, nil)
	accepts := newCreator(t, api, o, client, false)
	sv := &service{operator: o, client: client}
	sv.collector = collect.New(engine.Config{
		Store: worker, Secret: []byte("a secret for tests"), PollInterval: time.Hour,
		Connections: map[string]provider.Provider{"sandbox": counted{o, sv}},
		Routes:      engine.ByMode(func(till.Mode, string, string, string) string { return "sandbox" }),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); sv.collector.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := sv.collector.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	sub := worker.SubscribeRemote()
	t.Cleanup(sub.Close)
	settled(t, sub)
	if _, err := accepts.create(newKey()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); sv.submits.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the payment was not sent")
		}
	}
	accepts.awaitSuccess(t, api, 1)
}

func TestWithoutNotifyAFileIsNotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.db")
	storetest.NewFile(t, path)
	for _, off := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := storetest.Open(t, store.Config{Path: path, NoNotify: off})
			sub := s.Subscribe(till.House)
			time.Sleep(time.Second)
			if live := s.HintsLive(); live == off {
				t.Errorf("NoNotify %v: hints of other processes arrive: %v", off, live)
			}
			sub.Close()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
