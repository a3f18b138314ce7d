package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"till/internal/quota"
	"till/store"
	"till/store/storetest"
)

// payLarge makes a payment whose document has about 48 KB.
func (w *world) payLarge() {
	w.t.Helper()
	item := `{"name":"` + strings.Repeat("bread ", 40) + `","quantity":1,"unit_price":"10","total":"10"}`
	storetest.NewPayment(w.t, w.collector, w.client, storetest.Body{
		Rest: `"metadata":{"note":"` + strings.Repeat("m", 15<<10) + `"},"charge":{"items":[` + strings.Repeat(item+",", 100) + item + `]}`,
	})
}

// What is read for one window is bounded by bytes, of retries and of what is
// new; but something is always read, or nothing would ever be sent.
func TestAWindowIsBoundedByBytes(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		s.prove()
		// The shop answers when all twelve have arrived: three failures before that would end the chunk.
		var posted sync.WaitGroup
		posted.Add(12)
		s.set(func() { s.answer = func(*receipt) int { posted.Done(); posted.Wait(); return http.StatusBadGateway } })
		w.stop()
		for range 12 {
			w.payLarge()
		}
		w.start(nil) // it finds all of them at once
		w.d.Wake(context.Background(), w.client.ID)
		posted.Wait()
		s.set(func() { s.answer = func(*receipt) int { return http.StatusBadGateway } })
		w.stop()     // what was tried is rows that are due later
		w.start(nil) // nobody is notified, and nothing is kept
		time.Sleep(10 * time.Minute)
		for _, c := range []struct {
			due  bool
			room int64
			want int
		}{{true, 0, 1}, {true, 90 << 10, 2}, {true, 1 << 30, 12}, {false, 0, 1}, {false, 90 << 10, 2}, {false, 1 << 30, 12}} {
			w.d.bodyCache.forget(w.client.ID)
			e := s.endpoint()
			e.Failures, e.ThrottleUntil = 0, 0
			if e.NextRetry = w.store.Now(); !c.due {
				e.NextRetry, e.Cursor = 0, 0
			}
			win, err := w.d.readChunk(context.Background(), e, c.room)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, it := range win.items {
				if (it.row != nil) == c.due {
					n++
				}
				if it.body.event == nil {
					t.Errorf("due %v, room for %d: event %d has no body", c.due, c.room, it.Sequence)
				}
			}
			if n != c.want || c.room < 1<<20 && len(win.items) != n || win.weight() < int64(n)*40<<10 {
				t.Errorf("due %v, room for %d: %d of %d events, %d bytes, want %d", c.due, c.room, n, len(win.items), win.weight(), c.want)
			}
		}
		s.set(func() { s.answer = nil })
		time.Sleep(15 * time.Minute)
		s.everythingArrived()
	})
}

// Endpoints that find no room wait for it, and are sent everything.
func TestEndpointsThatFindNoRoomWait(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.stop()
		w.d = New(w.d.c)
		w.d.memory = quota.New(3*minMemory, 2*minMemory) // for two endpoints of a client at a time
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { w.d.Run(ctx); close(done) }()
		w.stop = func() {
			cancel()
			<-done
			if err := w.d.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		var shops []*shop
		for range 6 {
			shops = append(shops, w.shop())
		}
		if err := w.d.memory.Take(w.client.ID, 2*minMemory); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			w.payLarge()
		}
		w.d.Wake(context.Background(), w.client.ID)
		time.Sleep(time.Second)
		for _, s := range shops {
			expect(t, "without room", fmt.Sprint(s.sequences()), "[]")
		}
		w.d.memory.Give(w.client.ID, 2*minMemory)
		time.Sleep(10 * time.Second)
		for _, s := range shops {
			if n := len(s.sequences()); n != 20 {
				t.Errorf("%d of 20 events arrived", n)
			}
			s.everythingArrived()
		}
		if held := w.d.memory.Held(); held != 0 {
			t.Errorf("%d bytes are held for nobody", held)
		}
	})
}

// The database stops reading a log when its reader has enough.
func TestALogIsReadAsFarAsThereIsRoom(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		for range 10 {
			w.payLarge()
		}
		w.view(func(ctx context.Context, tx *store.Tx) error {
			left := int64(100 << 10)
			tx.Weigh(weighUntil(&left))
			rows, err := tx.EventBodies(ctx, w.client.ID, 0, 10)
			if err != nil || len(rows) != 3 || rows[2].Sequence != 3 {
				t.Errorf("of 100 KB: %d events, %v", len(rows), err)
			}
			tx.Weigh(nil)
			if rows, err = tx.EventBodies(ctx, w.client.ID, 0, 10); err != nil || len(rows) != 10 {
				t.Errorf("unweighed, in the same transaction: %d events, %v", len(rows), err)
			}
			return err
		})
	})
}
