package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// stub is a session that is only held.
type stub struct {
	session
	dead, closed bool
}

func (s *stub) broken() bool { return s.dead }
func (s *stub) close()       { s.closed = true }

func TestThePoolGivesTheSessionThatWorkedLast(t *testing.T) {
	p := newPool(2)
	take := func() session {
		t.Helper()
		ses, err := p.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return ses
	}
	if a, b := take(), take(); a != nil || b != nil {
		t.Fatalf("an empty pool gives %v and %v, want nil: they have to be made", a, b)
	}
	warm, cold := &stub{}, &stub{}
	p.put(cold)
	p.put(warm)
	if got := take(); got != warm {
		t.Error("the session that was used last is not taken first")
	}
	warm.dead = true
	p.put(warm)
	if !warm.closed {
		t.Error("a dead session is kept open")
	}
	if got := take(); got != cold {
		t.Error("the other session is lost")
	}
	if got := take(); got != nil {
		t.Errorf("the place of the dead session gives %v, want nil", got)
	}
}

func TestThePoolLetsNoMoreInThanItHasPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		if _, err := p.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := p.take(ctx); done <- err }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("a second take ends with %v, want that its context has ended", err)
		}
		p.put(nil)
		if _, err := p.take(t.Context()); err != nil {
			t.Errorf("a place that was put back: %v", err)
		}
	})
}
