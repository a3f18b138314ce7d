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

	till "till/sdk/go"
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

func (s *suite[T]) settle(x till.Settlement) bool {
	s.Helper()
	ok, err := s.Store.Settle(s.ctx, x)
	s.must(err)
	return ok
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

func (s *suite[T]) due() {
	late, early, sending, taken := row("a", 1), row("b", 1), row("c", 1), row("d", 1)
	late.NextAt, early.NextAt = start.Add(time.Second), start.Add(-time.Second)
	sending.State, taken.State = till.StateSending, till.StateTaken
	s.put(late, early, sending, taken)
	s.rows("b1", "c1")(s.Store.Due(s.ctx, start, 10))
	s.rows("b1")(s.Store.Due(s.ctx, start, 1))
	s.rows("b1", "c1", "a1")(s.Store.Due(s.ctx, start.Add(time.Second), 10))
}

func (s *suite[T]) count() {
	s.put(row("a", 1))
	r := s.get("a")
	lease, next := start.Add(10*time.Second), start.Add(11*time.Second)
	ok, err := s.Store.Count(s.ctx, r, lease, next)
	s.must(err)
	got := s.get("a")
	if !ok || got.State != till.StateSending || got.Tries != 1 || !got.Lease.Equal(lease) || !got.NextAt.Equal(next) {
		s.Errorf("%v, %+v", ok, got)
	}
	if ok, err := s.Store.Count(s.ctx, r, lease.Add(1), next); ok || err != nil {
		s.Errorf("the lease is another, and yet: %v, %v", ok, err)
	}
	if ok, err := s.Store.Count(s.ctx, got, lease.Add(time.Second), next); !ok || err != nil || s.get("a").Tries != 2 {
		s.Errorf("%v, %v", ok, err)
	}
}

func (s *suite[T]) countTaken() {
	s.put(row("a", 1))
	r := s.get("a")
	s.settle(till.Settlement{Key: r.Key, State: till.StateTaken})
	if ok, err := s.Store.Count(s.ctx, r, start.Add(time.Second), start); ok || err != nil || s.get("a").State != till.StateTaken {
		s.Errorf("%v, %v", ok, err)
	}
}

func (s *suite[T]) countRace() {
	s.put(row("a", 1))
	r := s.get("a")
	var won atomic.Int32
	s.together(8, func(n int) error {
		ok, err := s.Store.Count(s.ctx, r, start.Add(time.Duration(n+1)*time.Second), start)
		if ok {
			won.Add(1)
		}
		return err
	})
	if got := s.get("a"); won.Load() != 1 || got.Tries != 1 {
		s.Errorf("%d won, %d tries", won.Load(), got.Tries)
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

func (s *suite[T]) settleFrom() {
	s.put(row("a", 1))
	key := s.get("a").Key
	if s.settle(till.Settlement{Key: key, From: []string{till.StateSending, till.StateTaken}, State: till.StateEnded}) || s.get("a").State != till.StateWritten {
		s.Error("it was not in that state")
	}
	if !s.settle(till.Settlement{Key: key, From: []string{till.StateSending, till.StateWritten}, State: till.StateTaken}) || s.get("a").State != till.StateTaken {
		s.Error("it was in that state")
	}
}

func (s *suite[T]) settleLease() {
	s.put(row("a", 1))
	r := s.get("a")
	lease := start.Add(10 * time.Second)
	_, err := s.Store.Count(s.ctx, r, lease, start)
	s.must(err)
	if s.settle(till.Settlement{Key: r.Key, Lease: lease.Add(time.Millisecond), State: till.StateWritten}) {
		s.Error("that is another try's lease")
	}
	if !s.settle(till.Settlement{Key: r.Key, Lease: lease, State: till.StateWritten}) {
		s.Error("that is its lease")
	}
}

func (s *suite[T]) settlePart() {
	s.put(row("a", 1))
	key := s.get("a").Key
	s.settle(till.Settlement{Key: key, RemoteID: till.Ptr("r1"), Status: till.Ptr("pending"), Problem: till.Ptr("p")})
	before := s.get("a")
	s.settle(till.Settlement{Key: key, NextAt: start.Add(time.Hour)})
	after := s.get("a")
	if after.RemoteID != "r1" || after.Status != "pending" || after.Problem != "p" || after.State != before.State || !after.SendUntil.Equal(before.SendUntil) || !after.NextAt.Equal(start.Add(time.Hour)) {
		s.Errorf("%+v", after)
	}
	s.settle(till.Settlement{Key: key, Problem: till.Ptr("")})
	if s.get("a").Problem != "" {
		s.Error("an empty text is a value")
	}
}

func (s *suite[T]) settleUnknown() {
	if s.settle(till.Settlement{Key: "00000000-0000-4000-8000-nobody", State: till.StateTaken}) {
		s.Error("nothing is there")
	}
}

func (s *suite[T]) open() {
	a, b, c := row("a", 1), row("b", 1), row("c", 1)
	a.State, b.State, c.State = till.StateTaken, till.StateTaken, till.StateEnded
	b.NextAt = start.Add(time.Minute)
	s.put(a, b, c)
	s.rows("a1")(s.Store.Open(s.ctx, start, 10))
	s.rows("a1", "b1")(s.Store.Open(s.ctx, start.Add(time.Minute), 10))
	s.rows("a1")(s.Store.Open(s.ctx, start.Add(time.Minute), 1))
}

func (s *suite[T]) since() {
	old := row("a", 1)
	old.CreatedAt = start.Add(-time.Hour)
	s.put(old, row("b", 1), row("c", 1), row("d", 1))
	s.rows("b1", "c1")(s.Store.Since(s.ctx, start, "", 2))
	s.rows("d1")(s.Store.Since(s.ctx, start, row("c", 1).Key, 2))
}

func (s *suite[T]) attention() {
	var rows []till.Row
	for i, state := range []string{till.StateWritten, till.StateSending, till.StateTaken, till.StateEnded, till.StateRefused, till.StateLapsed, till.StateLost, till.StateTaken} {
		r := row(string(rune('a'+i)), 1)
		r.State, r.CreatedAt = state, start.Add(time.Duration(i)*time.Second)
		if i == 7 {
			r.Problem = till.ResolutionAttention
		}
		rows = append(rows, r)
	}
	s.put(rows...)
	s.rows("e1", "f1", "g1", "h1")(s.Store.Attention(s.ctx, start, 10))
	s.rows("g1", "h1")(s.Store.Attention(s.ctx, start.Add(6*time.Second), 10))
	s.rows("e1")(s.Store.Attention(s.ctx, start, 1))
}

// do applies with a function that only decides.
func (s *suite[T]) do(subject, key string, fn func(x till.Subject, attempts []till.Row) (till.Decision, error)) error {
	return s.Store.Apply(s.ctx, subject, till.KindPayment, key, func(_ context.Context, _ T, x till.Subject, attempts []till.Row) (till.Decision, error) {
		return fn(x, attempts)
	})
}

func (s *suite[T]) apply() {
	s.put(row("a", 1))
	key := s.get("a").Key
	s.must(s.do("p1", key, func(x till.Subject, _ []till.Row) (till.Decision, error) {
		if x.ID != "p1" || x.Rank != 0 || len(x.Seen) != 0 {
			s.Errorf("%+v", x)
		}
		x.Rank, x.Seen = 3, []string{"success"}
		return till.Decision{Subject: &x, Settle: &till.Settlement{Key: key, State: till.StateEnded, RemoteID: till.Ptr("p1"), Status: till.Ptr("success")}}, nil
	}))
	if got := s.get("a"); got.State != till.StateEnded || got.RemoteID != "p1" || got.Status != "success" {
		s.Errorf("%+v", got)
	}
}

func (s *suite[T]) applyAgain() {
	for i, want := range []int{0, 2, 4} {
		s.must(s.do("p1", "", func(x till.Subject, _ []till.Row) (till.Decision, error) {
			if x.Rank != want || len(x.Seen) != i || x.Sequence != int64(i) || i == 2 && (x.Seen[0] != "k0" || !x.Has("k1")) {
				s.Errorf("%+v", x)
			}
			x.Rank += 2
			x.Sequence++
			x.Seen = append(x.Seen, fmt.Sprintf("k%d", i))
			return till.Decision{Subject: &x}, nil
		}))
	}
}

// untouched checks that a failed application left nothing behind.
func (s *suite[T]) untouched() {
	s.Helper()
	s.must(s.do("p1", "", func(x till.Subject, _ []till.Row) (till.Decision, error) {
		if x.Rank != 0 || len(x.Seen) != 0 {
			s.Errorf("%+v", x)
		}
		return till.Decision{}, nil
	}))
	if got := s.get("a"); got.State != till.StateWritten {
		s.Errorf("%+v", got)
	}
	if c, err := s.Store.Cursor(s.ctx, "log"); err != nil || c.After != 0 {
		s.Errorf("%+v, %v", c, err)
	}
}

func (s *suite[T]) failing(end func() error) error {
	s.put(row("a", 1))
	return s.Store.Apply(s.ctx, "p1", till.KindPayment, s.get("a").Key, func(ctx context.Context, tx T, x till.Subject, rows []till.Row) (till.Decision, error) {
		s.must(s.Set(ctx, tx, "yours"))
		x.Rank, x.Seen = 3, []string{"success"}
		return till.Decision{Subject: &x, Settle: &till.Settlement{Key: rows[0].Key, State: till.StateEnded}, Cursor: &till.Cursor{Name: "log", Log: "l", After: 9}}, end()
	})
}

func (s *suite[T]) applyFails() {
	if err := s.failing(func() error { return errNo }); !errors.Is(err, errNo) {
		s.Error(err)
	}
	s.untouched()
	if v, err := s.Get(s.ctx); v != "" || err != nil {
		s.Errorf("%q, %v", v, err)
	}
}

func (s *suite[T]) applyPanics() {
	func() {
		defer func() {
			if recover() == nil {
				s.Error("the panic is gone")
			}
		}()
		_ = s.failing(func() error { panic("no") })
	}()
	s.untouched()
}

func (s *suite[T]) applyAttempts() {
	s.put(row("a", 1), row("a", 2), row("b", 1))
	s.must(s.do("p1", row("a", 2).Key, func(_ till.Subject, rows []till.Row) (till.Decision, error) {
		s.rows("a1", "a2")(rows, nil)
		return till.Decision{}, nil
	}))
}

func (s *suite[T]) applyKinds() {
	r := row("a", 1)
	r.Kind = till.KindPayout
	s.put(r)
	s.must(s.do("p1", r.Key, func(_ till.Subject, rows []till.Row) (till.Decision, error) {
		s.rows()(rows, nil)
		return till.Decision{}, nil
	}))
}

func (s *suite[T]) applyStranger() {
	s.must(s.do("p1", "00000000-0000-4000-8000-nobody", func(x till.Subject, rows []till.Row) (till.Decision, error) {
		s.rows()(rows, nil)
		x.Rank = 3
		return till.Decision{Subject: &x}, nil
	}))
}

func (s *suite[T]) applyRace() {
	var calls atomic.Int32
	s.together(8, func(int) error {
		return s.do("p1", "", func(x till.Subject, _ []till.Row) (till.Decision, error) {
			if x.Has("success") {
				return till.Decision{}, nil
			}
			calls.Add(1)
			x.Seen = append(x.Seen, "success")
			return till.Decision{Subject: &x}, nil
		})
	})
	if calls.Load() != 1 {
		s.Errorf("%d were the first", calls.Load())
	}
}

func (s *suite[T]) applyTwoAttempts() {
	s.put(row("a", 1), row("a", 2))
	var first atomic.Int32
	s.together(2, func(n int) error {
		key := row("a", n+1).Key
		return s.do(fmt.Sprintf("p%d", n), key, func(x till.Subject, rows []till.Row) (till.Decision, error) {
			other := slices.ContainsFunc(rows, func(r till.Row) bool { return r.Key != key && r.Status == till.Success })
			if !other {
				first.Add(1)
			}
			time.Sleep(20 * time.Millisecond)
			return till.Decision{Subject: &x, Settle: &till.Settlement{Key: key, Status: till.Ptr(till.Success)}}, nil
		})
	})
	if first.Load() != 1 {
		s.Errorf("%d attempts saw no other that was paid", first.Load())
	}
}

func (s *suite[T]) applyYours() {
	s.must(s.Store.Apply(s.ctx, "p1", till.KindPayment, "", func(ctx context.Context, tx T, x till.Subject, _ []till.Row) (till.Decision, error) {
		return till.Decision{Subject: &x}, s.Set(ctx, tx, "yours")
	}))
	if v, err := s.Get(s.ctx); v != "yours" || err != nil {
		s.Errorf("%q, %v", v, err)
	}
}

func (s *suite[T]) cursor(want till.Cursor) {
	s.Helper()
	got, err := s.Store.Cursor(s.ctx, want.Name)
	s.must(err)
	if got != want {
		s.Errorf("%+v, want %+v", got, want)
	}
}

func (s *suite[T]) applyCursor() {
	s.must(s.do("p1", "", func(x till.Subject, _ []till.Row) (till.Decision, error) {
		return till.Decision{Subject: &x, Cursor: &till.Cursor{Name: "log", Log: "l", After: 5}}, nil
	}))
	s.cursor(till.Cursor{Name: "log", Log: "l", After: 5})
}

func (s *suite[T]) cursorOfNothing() { s.cursor(till.Cursor{Name: "log"}) }

func (s *suite[T]) cursorForward() {
	for _, after := range []int64{5, 3, 5, 9, 8} {
		s.must(s.Store.MoveCursor(s.ctx, till.Cursor{Name: "log", Log: "l", After: after}, false))
	}
	s.cursor(till.Cursor{Name: "log", Log: "l", After: 9})
}

func (s *suite[T]) cursorOtherLog() {
	s.must(s.Store.MoveCursor(s.ctx, till.Cursor{Name: "log", Log: "l", After: 5}, false))
	s.must(s.Store.MoveCursor(s.ctx, till.Cursor{Name: "log", Log: "m", After: 9}, false))
	s.cursor(till.Cursor{Name: "log", Log: "l", After: 5})
}

func (s *suite[T]) cursorReset() {
	s.must(s.Store.MoveCursor(s.ctx, till.Cursor{Name: "log", Log: "l", After: 5}, false))
	s.must(s.Store.MoveCursor(s.ctx, till.Cursor{Name: "log", Log: "m", After: 2}, true))
	s.cursor(till.Cursor{Name: "log", Log: "m", After: 2})
}

func (s *suite[T]) cursorNames() {
	s.must(s.Store.MoveCursor(s.ctx, till.Cursor{Name: "log", Log: "l", After: 5}, false))
	s.must(s.Store.MoveCursor(s.ctx, till.Cursor{Name: "other", Log: "l", After: 7}, false))
	s.cursor(till.Cursor{Name: "log", Log: "l", After: 5})
	s.cursor(till.Cursor{Name: "other", Log: "l", After: 7})
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
