package store_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"till"
	"till/internal/db"
	"till/internal/db/sqlite"
	"till/store"
	"till/store/matching"
)

// counting is an engine that counts round trips.
type counting struct {
	db.Engine
	trips int
}

func (c *counting) Acquire(ctx context.Context, a db.Access) (db.Conn, error) {
	conn, err := c.Engine.Acquire(ctx, a)
	return &countingConn{conn, c}, err
}

type countingConn struct {
	db.Conn
	c *counting
}

func (c *countingConn) Send(ctx context.Context, b *db.Batch) error {
	c.c.trips++
	return c.Conn.Send(ctx, b)
}

// Whether there are strays is asked in the round trip of the locks: a credit
// waits for nothing more while there are none.
func TestACreditAsksForStraysInTheRoundTripOfItsLocks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "till.db")
	now := func() till.Time { return till.TimeOf(time.Now()) }
	s, err := store.Open(ctx, store.Config{Path: path, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e, err := sqlite.Open(path, 1, now)
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{Engine: e}
	store.SetEngine(s, c, sqlite.Writers, now)
	if _, err := s.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	ref := store.Ref{Client: till.NewID(s.Now()), ID: till.NewID(s.Now())}
	stray := &matching.Stray{Connection: "mtn", ID: till.NewID(s.Now()), Subject: ref.ID, Source: matching.StrayCallback, SeenAt: s.Now()}
	lock := func(credits bool) (strays bool) {
		t.Helper()
		err := s.Update(ctx, func(tx *store.Tx) error {
			c.trips = 0
			l, err := tx.LockSubjects(ctx, till.SubjectPayment, []store.Ref{ref}, store.Cached{Credits: credits}, nil)
			if err != nil {
				return err
			}
			strays = l.Strays
			if c.trips != 1 {
				t.Errorf("%d round trips, want one", c.trips)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return strays
	}
	act := func(f func(tx *store.Tx) error) {
		t.Helper()
		if err := s.Update(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	if lock(true) {
		t.Error("there are strays where there are none")
	}
	act(func(tx *store.Tx) error { _, err := matching.InsertStray(ctx, tx, stray); return err })
	if !lock(true) || lock(false) {
		t.Error("a stray that is open is not told, or told without being asked for")
	}
	stray.Why, stray.ClosedAt, stray.ClosedBy, stray.Reason = matching.StrayForeign, s.Now(), "a test", "a test"
	act(func(tx *store.Tx) error { return matching.CloseStrays(ctx, tx, "", []*matching.Stray{stray}) })
	if lock(true) {
		t.Error("one that is closed is told")
	}
}
