package store

import (
	"context"
	"path/filepath"
	"testing"

	"till"
	"till/internal/db"
)

// counting is a session that counts what somebody waits for.
type counting struct {
	session
	locks, others int
}

func (c *counting) lockFirst(ctx context.Context, before []read, lock read, after ...read) error {
	c.locks++
	return c.session.lockFirst(ctx, before, lock, after...)
}

func (c *counting) queryEach(ctx context.Context, reads ...read) error {
	c.others++
	return c.session.queryEach(ctx, reads...)
}

func (c *counting) query(ctx context.Context, q *db.SQL, args []any, scan func(r row) error) error {
	c.others++
	return c.session.query(ctx, q, args, scan)
}

func (c *counting) exec(ctx context.Context, q *db.SQL, args []any) (int64, error) {
	c.others++
	return c.session.exec(ctx, q, args)
}

// Whether there are strays is asked in the round trip of the locks: a credit
// waits for nothing more while there are none.
func TestACreditAsksForStraysInTheRoundTripOfItsLocks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := Open(ctx, Config{Path: filepath.Join(t.TempDir(), "till.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	ref := Ref{Client: till.NewID(s.Now()), ID: till.NewID(s.Now())}
	stray := &Stray{Connection: "mtn", ID: till.NewID(s.Now()), Subject: ref.ID, Source: StrayCallback, SeenAt: s.Now()}
	lock := func(credits bool) (strays bool) {
		t.Helper()
		err := s.Update(ctx, func(tx *Tx) error {
			c := &counting{session: tx.ses}
			tx.ses = c
			l, err := tx.Lock(ctx, KindPayment, []Ref{ref}, Known{Credits: credits}, nil)
			if err != nil {
				return err
			}
			strays = l.Strays
			if c.locks != 1 || c.others != 0 {
				t.Errorf("%d round trips for the locks and %d for other things", c.locks, c.others)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return strays
	}
	act := func(f func(tx *Tx) error) {
		t.Helper()
		if err := s.Update(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	if lock(true) {
		t.Error("there are strays where there are none")
	}
	act(func(tx *Tx) error { _, err := tx.InsertStray(ctx, stray); return err })
	if !lock(true) || lock(false) {
		t.Error("a stray that is open is not told, or told without being asked for")
	}
	stray.Why, stray.ClosedAt, stray.ClosedBy, stray.Reason = StrayForeign, s.Now(), "a test", "a test"
	act(func(tx *Tx) error { return tx.CloseStrays(ctx, "", []*Stray{stray}) })
	if lock(true) {
		t.Error("one that is closed is told")
	}
}
