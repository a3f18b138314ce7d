package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/books"
	"till/store"
	"till/store/storetest"
)

// replaceLog makes the events beyond a sequence other ones, as a failover does
// that lost commits: their numbers are given out again. The endpoint's own
// progress was lost with them.
func (w *world) replaceLog(after int64) {
	w.t.Helper()
	// The log is append only: nothing less than this rewrites it.
	if store.IsPostgres(w.path) {
		storetest.Raw(w.t, w.path, `ALTER TABLE events DISABLE TRIGGER USER`)
	} else {
		storetest.Raw(w.t, w.path, `DROP TRIGGER IF EXISTS events_update`)
	}
	storetest.Raw(w.t, w.path, fmt.Sprintf(`UPDATE events SET created_at = created_at + 1 WHERE sequence > %d`, after))
	storetest.Raw(w.t, w.path, fmt.Sprintf(`UPDATE webhook_endpoints SET cursor_sequence = %d WHERE cursor_sequence > %d`, after, after))
}

// putLogBack undoes it, so that the books can be proved at the end.
func (w *world) putLogBack(after int64) {
	w.t.Helper()
	storetest.Raw(w.t, w.path, fmt.Sprintf(`UPDATE events SET created_at = created_at - 1 WHERE sequence > %d`, after))
	storetest.Raw(w.t, w.path, `UPDATE webhook_endpoints SET cursor_at = NULL`)
}

// events lists the ids of the client's log.
func (w *world) events() (ids []string) {
	w.view(func(ctx context.Context, tx *store.Tx) error {
		events, err := tx.Events(ctx, w.client.ID, 0, 100)
		for _, e := range events {
			ids = append(ids, e.ID().String())
		}
		return err
	})
	return ids
}

func (s *shop) ids() (ids []string) {
	for _, r := range s.receipts() {
		ids = append(ids, r.ID)
	}
	return ids
}

// After a failover that lost commits, events get numbers that others had
// before. What is kept in memory under those numbers is not sent instead.
func TestKeptBodiesDoNotReplaceNewEvents(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		for range 4 {
			w.pay()
		}
		w.d.Wake(t.Context(), w.client.ID)
		time.Sleep(20 * time.Second)
		expect(t, "before", fmt.Sprint(s.sequences()), "[1 2 3 4]")
		lost := w.events()[2:]
		w.replaceLog(2)
		w.d.Wake(t.Context(), w.client.ID)
		time.Sleep(40 * time.Second)
		want := slices.Concat(w.events()[:2], lost, w.events()[2:])
		slices.Sort(want)
		if got := slices.Sorted(slices.Values(s.ids())); !slices.Equal(got, want) {
			t.Errorf("received %v, want %v", got, want)
		}
		w.putLogBack(2)
	})
}

// The same while a window is under way: what was sent of the lost log does not
// move the cursor over the events of the new one.
func TestALostLogDoesNotMoveTheCursor(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		var armed, failedOver atomic.Bool
		w.d.fault = func(at string) error {
			if at == "after send" && armed.CompareAndSwap(true, false) {
				w.replaceLog(1)
				failedOver.Store(true)
			}
			return nil
		}
		w.pay()
		w.d.Wake(t.Context(), w.client.ID)
		time.Sleep(20 * time.Second)
		armed.Store(true)
		w.pay()
		w.pay()
		w.d.Wake(t.Context(), w.client.ID)
		time.Sleep(60 * time.Second)
		if !failedOver.Load() {
			t.Fatal("nothing was sent")
		}
		for _, id := range w.events() {
			if !slices.Contains(s.ids(), id) {
				t.Errorf("event %s never arrived", id)
			}
		}
		w.putLogBack(1)
	})
}

// If an endpoint was sent another event than the log has at its cursor, the
// proof of the books says so: the new one was never sent.
func TestVerifyNoticesAnEventThatWasReplaced(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		w.pay()
		w.d.Wake(t.Context(), w.client.ID)
		time.Sleep(20 * time.Second)
		expect(t, "before", s.got(), "1")
		storetest.Raw(t, w.path, `UPDATE webhook_endpoints SET cursor_at = cursor_at + 1`)
		report, err := books.Verify(t.Context(), w.store, books.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(report.Problems); !strings.Contains(text, "the new ones were not sent") {
			t.Errorf("problems: %s", text)
		}
		storetest.Raw(t, w.path, `UPDATE webhook_endpoints SET cursor_at = cursor_at - 1`)
	})
}
