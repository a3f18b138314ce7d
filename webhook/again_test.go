package webhook

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/store"
)

// D2, D20, F8: a crash at each step while the endpoint refuses. How far we have
// come and what failed on the way are one commit: no event is passed over.
func TestACrashWhileEventsAreRefusedLosesNothing(t *testing.T) {
	for _, step := range []string{"after claim", "after send", "before commit", "after commit"} {
		t.Run(step, func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world) {
				s := w.shop()
				s.answer = func(r *receipt) int {
					if r.n < 2 {
						return http.StatusInternalServerError
					}
					return http.StatusOK
				}
				var armed, sent atomic.Bool
				w.d.fault = func(at string) error {
					if at == "after send" {
						sent.Store(true)
					}
					// At the record of what was refused, not at the claim before it.
					if at == step && (step == "after claim" || sent.Load()) && armed.CompareAndSwap(true, false) {
						return store.ErrUnknownCommit // of the others any error will do
					}
					return nil
				}
				armed.Store(true)
				w.pay()
				w.pay()
				time.Sleep(10 * time.Minute)
				if armed.Load() {
					t.Error("the step was never reached")
				}
				s.everythingArrived()
				if got := s.sequences(); len(got) != 2 {
					t.Errorf("%d of 2 events arrived", len(got))
				}
			})
		})
	}
}

// D21: what somebody asks for is sent, however often the same event has
// arrived already.
func TestAnEventIsSentAgainAsOftenAsItIsAskedFor(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		w.pay()
		time.Sleep(time.Minute)
		expect(t, "at first", s.got(), "1")
		event, err := till.ParseID(s.receipts()[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			asked, err := w.acts.Redeliver(context.Background(), w.client.ID, event, nil, awa)
			if err != nil || len(asked) != 1 {
				t.Fatalf("asked of %d endpoints, %v", len(asked), err)
			}
			time.Sleep(time.Minute)
			expect(t, "asked for", s.got(), "1"+strings.Repeat(" 1", n+1))
			expect(t, "rows", s.rows(), "1 redelivery delivered 1")
		}
		from := int64(1)
		for n := range 2 {
			if _, err := w.acts.Replay(context.Background(), w.client.ID, s.e.ID, &Replay{From: &from}, awa); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			expect(t, "replayed", s.got(), "1 1 1 1"+strings.Repeat(" 1", n+1))
		}
		for _, r := range s.receipts() {
			if r.ID != event.String() {
				t.Errorf("it came as %s and as %s", event, r.ID)
			}
		}
	})
}

// F30: an attempt that took longer than its chunk is recorded once, although the
// answer to each commit is lost.
func TestALateAttemptIsRecordedOnceAfterAnUnknownCommit(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		s.answer = func(*receipt) int { time.Sleep(10 * time.Second); return http.StatusOK }
		var lost atomic.Bool
		w.d.fault = func(at string) error {
			if at != "after commit" {
				return nil
			}
			if lost.Swap(!lost.Load()) {
				return nil // the second try
			}
			return store.ErrUnknownCommit
		}
		w.pay()
		time.Sleep(time.Minute)
		expect(t, "arrived", s.got(), "1")
		expect(t, "rows", s.rows(), "1 event delivered 1")
	})
}
