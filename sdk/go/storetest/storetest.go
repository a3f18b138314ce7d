package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	till "github.com/till-project/till/sdk/go"
)

// Env is a store, empty and installed, and how to run a transaction of your own
// on its database. Open opens the same database again, as another program.
type Env[T any] struct {
	Store  till.Store[T]
	Update func(ctx context.Context, fn func(tx T) error) error
	Open   func() till.Store[T]
	Set    func(ctx context.Context, tx T, value string) error // keep a value of yours in the transaction
	Get    func(ctx context.Context) (string, error)
}

// Run runs the suite. The function is called once for each case.
func Run[T any](t *testing.T, open func(t *testing.T) Env[T]) {
	for _, c := range []struct {
		name string
		run  func(*suite[T])
	}{
		{"Install twice changes nothing", (*suite[T]).installTwice},
		{"Put is seen after the commit", (*suite[T]).putCommits},
		{"Put goes with its transaction", (*suite[T]).putRollsBack},
		{"Put keeps the bytes", (*suite[T]).putKeepsBytes},
		{"Put of an attempt that is there leaves it", (*suite[T]).putTwice},
		{"Put in the same transaction is seen by Attempts", (*suite[T]).attemptsInTx},
		{"Attempts are oldest first, by kind and order", (*suite[T]).attempts},
		{"Newest of nothing is nil", (*suite[T]).newestOfNothing},
		{"Newest is the last attempt", (*suite[T]).newest},
		{"Due holds to the time, the state and the limit", (*suite[T]).due},
		{"Count is a compare and swap", (*suite[T]).count},
		{"Count refuses what is taken", (*suite[T]).countTaken},
		{"Count by many succeeds once", (*suite[T]).countRace},
		{"Settle holds to the state", (*suite[T]).settleFrom},
		{"Settle holds to the lease", (*suite[T]).settleLease},
		{"Settle leaves what is not named", (*suite[T]).settlePart},
		{"Settle of an unknown key does nothing", (*suite[T]).settleUnknown},
		{"Open holds to the time and the state", (*suite[T]).open},
		{"Since goes by key from a time", (*suite[T]).since},
		{"Attention lists what a person should see", (*suite[T]).attention},
		{"Apply saves what it decides", (*suite[T]).apply},
		{"Apply shows what is known", (*suite[T]).applyAgain},
		{"Apply saves nothing if the function fails", (*suite[T]).applyFails},
		{"Apply saves nothing if the function panics", (*suite[T]).applyPanics},
		{"Apply brings the order's attempts", (*suite[T]).applyAttempts},
		{"Apply keeps kinds apart", (*suite[T]).applyKinds},
		{"Apply of a subject without a row", (*suite[T]).applyStranger},
		{"Apply by many is one after the other", (*suite[T]).applyRace},
		{"Apply of two attempts is one after the other", (*suite[T]).applyTwoAttempts},
		{"Apply keeps your value in the transaction", (*suite[T]).applyYours},
		{"Apply moves the cursor", (*suite[T]).applyCursor},
		{"Cursor of nothing is zero", (*suite[T]).cursorOfNothing},
		{"Cursor only goes forward", (*suite[T]).cursorForward},
		{"Cursor of another log stays", (*suite[T]).cursorOtherLog},
		{"Cursor is reset by name", (*suite[T]).cursorReset},
		{"Cursors have names", (*suite[T]).cursorNames},
		{"Put of one attempt by many succeeds once", (*suite[T]).putRace},
		{"Another program sees it all", (*suite[T]).otherProgram},
		{"Times are kept to the millisecond", (*suite[T]).times},
		{"Texts of the world are kept", (*suite[T]).texts},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(&suite[T]{T: t, Env: open(t), ctx: t.Context()})
		})
	}
}

type suite[T any] struct {
	*testing.T
	Env[T]
	ctx context.Context
}

var start = time.Date(2026, 11, 15, 5, 51, 53, 123_000_000, time.UTC)

func row(order string, attempt int) till.Row {
	return till.Row{
		Key: fmt.Sprintf("00000000-0000-4000-8000-%s%d", order, attempt), Kind: till.KindPayment, Order: order, Attempt: attempt,
		Body: []byte(`{"a": 1}`), State: till.StateWritten, NextAt: start, SendUntil: start.Add(time.Minute), CreatedAt: start,
	}
}

func (s *suite[T]) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite[T]) put(rows ...till.Row) {
	s.Helper()
	s.must(s.Update(s.ctx, func(tx T) error {
		for _, r := range rows {
			if ok, err := s.Store.Put(s.ctx, tx, r); err != nil || !ok {
				return fmt.Errorf("put %s: %v, %w", r.Key, ok, err)
			}
		}
		return nil
	}))
}

// row reads an attempt that must be there.
func (s *suite[T]) get(order string) till.Row {
	s.Helper()
	r, err := s.Store.Newest(s.ctx, till.KindPayment, order)
	s.must(err)
	if r == nil {
		s.Fatalf("there is no attempt of %s", order)
	}
	return *r
}

func keys(rows []till.Row) []string {
	var out []string
	for _, r := range rows {
		out = append(out, fmt.Sprintf("%s%d", r.Order, r.Attempt))
	}
	return out
}

func (s *suite[T]) rows(want ...string) func([]till.Row, error) {
	return func(rows []till.Row, err error) {
		s.Helper()
		s.must(err)
		if got := keys(rows); !slices.Equal(got, want) {
			s.Errorf("rows %v, want %v", got, want)
		}
	}
}

func (s *suite[T]) installTwice() {
	s.put(row("a", 1))
	s.must(s.Store.Install(s.ctx))
	s.get("a")
}

func (s *suite[T]) putCommits() {
	s.put(row("a", 1))
	if got := s.get("a"); got.State != till.StateWritten || got.Attempt != 1 || !got.Lease.IsZero() || got.RemoteID != "" {
		s.Errorf("%+v", got)
	}
}

var errNo = errors.New("no")

func (s *suite[T]) putRollsBack() {
	err := s.Update(s.ctx, func(tx T) error {
		_, err := s.Store.Put(s.ctx, tx, row("a", 1))
		return errors.Join(err, errNo)
	})
	if r, readErr := s.Store.Newest(s.ctx, till.KindPayment, "a"); r != nil || readErr != nil || !errors.Is(err, errNo) {
		s.Errorf("%v, %v, %v", r, readErr, err)
	}
}

func (s *suite[T]) putKeepsBytes() {
	r := row("a", 1)
	r.Body = []byte("{\"text\": \"a\\u00e9 é 😀 \\n\", \"n\": 123456789012.123456,  \"x\":\t1}")
	s.put(r)
	if got := s.get("a").Body; string(got) != string(r.Body) {
		s.Errorf("%q", got)
	}
}

func (s *suite[T]) putTwice() {
	s.put(row("a", 1))
	s.must(s.Update(s.ctx, func(tx T) error {
		r := row("a", 1)
		r.Key, r.Body = "00000000-0000-4000-8000-other", []byte("{}")
		if ok, err := s.Store.Put(s.ctx, tx, r); ok || err != nil {
			return fmt.Errorf("%v, %w", ok, err)
		}
		rows, err := s.Store.Attempts(s.ctx, tx, till.KindPayment, "a") // it goes on
		s.rows("a1")(rows, err)
		return nil
	}))
	if string(s.get("a").Body) == "{}" {
		s.Error("the first one is gone")
	}
}

func (s *suite[T]) attemptsInTx() {
	s.must(s.Update(s.ctx, func(tx T) error {
		_, err := s.Store.Put(s.ctx, tx, row("a", 1))
		s.must(err)
		s.rows("a1")(s.Store.Attempts(s.ctx, tx, till.KindPayment, "a"))
		return nil
	}))
}

func (s *suite[T]) attempts() {
	out := row("a", 1)
	out.Kind, out.Key = till.KindPayout, "00000000-0000-4000-8000-payout"
	s.put(row("a", 1), row("a", 2), row("b", 1), out)
	s.must(s.Update(s.ctx, func(tx T) error {
		s.rows("a1", "a2")(s.Store.Attempts(s.ctx, tx, till.KindPayment, "a"))
		s.rows("a1")(s.Store.Attempts(s.ctx, tx, till.KindPayout, "a"))
		s.rows()(s.Store.Attempts(s.ctx, tx, till.KindPayment, "c"))
		return nil
	}))
}

func (s *suite[T]) newestOfNothing() {
	if r, err := s.Store.Newest(s.ctx, till.KindPayment, "a"); r != nil || err != nil {
		s.Errorf("%v, %v", r, err)
	}
}

func (s *suite[T]) newest() {
	s.put(row("a", 1), row("a", 2))
	if got := s.get("a").Attempt; got != 2 {
		s.Errorf("attempt %d", got)
	}
}

func (s *suite[T]) together(n int, fn func(n int) error) {
	s.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := fn(i); err != nil {
				s.Error(err)
			}
		}()
	}
	all.Wait()
}

func (s *suite[T]) putRace() {
	var won atomic.Int32
	s.together(6, func(n int) error {
		for range 50 { // a transaction that another one undid is yours to repeat
			first := false
			err := s.Update(s.ctx, func(tx T) error {
				r := row("a", 1)
				r.Key = fmt.Sprintf("00000000-0000-4000-8000-worker%d", n)
				ok, err := s.Store.Put(s.ctx, tx, r)
				first = ok
				return err
			})
			if err == nil {
				if first {
					won.Add(1)
				}
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		return errors.New("it never went through")
	})
	if won.Load() != 1 {
		s.Errorf("%d won", won.Load())
	}
}

func (s *suite[T]) otherProgram() {
	s.put(row("a", 1))
	other := s.Open()
	r, err := other.Newest(s.ctx, till.KindPayment, "a")
	s.must(err)
	if r == nil {
		s.Fatal("it sees nothing")
	}
	if ok, err := other.Count(s.ctx, *r, start.Add(time.Second), start); !ok || err != nil {
		s.Errorf("%v, %v", ok, err)
	}
	if s.get("a").Tries != 1 {
		s.Error("it is not seen here")
	}
}

func (s *suite[T]) times() {
	r := row("a", 1)
	s.put(r)
	if got := s.get("a"); !got.NextAt.Equal(r.NextAt) || !got.SendUntil.Equal(r.SendUntil) || !got.CreatedAt.Equal(r.CreatedAt) || !got.Lease.IsZero() {
		s.Errorf("%+v", got)
	}
}

func (s *suite[T]) texts() {
	order := "commande n° 7, 你好 😀 '\"; --"
	r := row("a", 1)
	r.Order, r.Key = order, "00000000-0000-4000-8000-text"
	s.put(r)
	if got := s.get(order); got.Key != r.Key || got.Order != order {
		s.Errorf("%+v", got)
	}
}
