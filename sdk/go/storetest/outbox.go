package storetest

import (
	"sync/atomic"
	"time"

	till "github.com/till-project/till/sdk/go"
)

func (s *suite[T]) settle(x till.Settlement) bool {
	s.Helper()
	ok, err := s.Store.Settle(s.ctx, x)
	s.must(err)
	return ok
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
	const details = `{"detail": "« Airtel » 😀", "errors": []}`
	s.settle(till.Settlement{Key: key, Details: till.Ptr(details)})
	if got := s.get("a"); got.Details != details || got.State != before.State {
		s.Errorf("%+v", got)
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
