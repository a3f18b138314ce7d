package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	till "github.com/till-project/till/sdk/go"
)

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
