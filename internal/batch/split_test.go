package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestAGroupThatIsStuckHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		s := NewSplit(4, 8, func(_ context.Context, c *call) int { return c.n % 2 }, func(ctx context.Context, own *Batcher[*call], calls []*call) {
			if own.Len() > 8 {
				t.Error("it was given another's Batcher")
			}
			for _, c := range calls {
				if c.n%2 != calls[0].n%2 {
					t.Error("two groups share a batch")
				}
			}
			if calls[0].n%2 == 1 {
				<-stuck
			}
			count(ctx, calls)
		})
		var late []<-chan error
		for _, n := range []int{1, 3, 5} {
			err := make(chan error, 1)
			go func() { err <- s.Do(t.Context(), &call{n: n}) }()
			late = append(late, err)
			synctest.Wait()
		}
		if s.Len() != 2 {
			t.Errorf("%d are queued, want 2", s.Len())
		}
		for n := range 5 {
			c := &call{n: 2 * n}
			if err := s.Do(t.Context(), c); err != nil || c.runs != 1 {
				t.Errorf("%v after %d runs", err, c.runs)
			}
		}
		close(stuck)
		for _, err := range late {
			if err := <-err; err != nil {
				t.Error(err)
			}
		}
		s.Close()
		for _, n := range []int{0, 7} {
			if err := s.Do(t.Context(), &call{n: n}); !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
		if len(s.parts) != 2 {
			t.Errorf("%d groups, want 2", len(s.parts))
		}
	})
}
