package limit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// So many are inside, so many wait, and the next one is told at once.
func TestSlotsAreBoundedPerKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots[string](2, 1, 5*time.Second)
		first, _ := s.Enter(t.Context(), "awa")
		second, _ := s.Enter(t.Context(), "awa")
		if first == nil || second == nil {
			t.Fatal("there is no room for two")
		}
		if leave, ok := s.Enter(t.Context(), "brice"); !ok {
			t.Error("another one's room is taken")
		} else {
			leave()
		}
		entered := make(chan func())
		go func() {
			leave, _ := s.Enter(context.Background(), "awa")
			entered <- leave
		}()
		synctest.Wait()
		if _, ok := s.Enter(t.Context(), "awa"); ok {
			t.Error("the line is endless")
		}
		first()
		first() // once is enough
		third := <-entered
		if third == nil {
			t.Fatal("who waited did not get in")
		}
		began := time.Now()
		if _, ok := s.Enter(t.Context(), "awa"); ok || time.Since(began) != 5*time.Second {
			t.Errorf("in %t after %s", ok, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, ok := s.Enter(ctx, "awa"); ok {
			t.Error("who has left got in")
		}
		second()
		third()
		if n := s.Len(); n != 0 {
			t.Errorf("%d are remembered", n)
		}
	})
}

// Without a patience a caller waits as long as its context, and no longer.
func TestWithoutPatienceTheContextDecides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots[string](1, 1, 0)
		leave, _ := s.Enter(t.Context(), "awa")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		if _, ok := s.Enter(ctx, "awa"); ok || time.Since(began) != time.Hour {
			t.Errorf("in %t after %s", ok, time.Since(began))
		}
		leave()
		if leave, ok := s.Enter(t.Context(), "awa"); !ok {
			t.Error("there is room, and nobody gets in")
		} else {
			leave()
		}
	})
}
