package webhook

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/store"
	"till/store/storetest"
)

func TestACrashAtEachStepLosesNothing(t *testing.T) {
	for _, step := range []string{"before claim", "after claim", "after send", "before commit", "after commit"} {
		t.Run(step, func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world) {
				s := w.shop()
				var armed atomic.Bool
				w.d.fault = func(at string) error {
					if at == step && armed.CompareAndSwap(true, false) {
						return store.ErrUnknownCommit // of the others any error will do
					}
					return nil
				}
				armed.Store(true)
				p := w.pay()
				w.pay()
				time.Sleep(time.Second)
				w.move(p, storetest.Succeeded)
				if step == "after commit" || step == "before commit" {
					time.Sleep(time.Second)
					armed.Store(true) // once more, at a record
					w.pay()
				}
				time.Sleep(time.Minute)
				if armed.Load() {
					t.Error("the step was never reached")
				}
				s.everythingArrived()
				if n := len(s.receipts()); n > 8 {
					t.Errorf("%d deliveries of 4 events", n)
				}
				if e := s.endpoint(); e.Cursor != e.LastEvent || e.LeaseUntil > w.store.Now() {
					t.Errorf("the endpoint is left as %+v", e)
				}
			})
		})
	}
}

// A process that stops in the middle, and another that takes over.
func TestAnotherInstanceTakesOver(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		dead := w.d
		var ready atomic.Bool // so that both events are in one window
		dead.fault = func(at string) error {
			if at == "after send" || at == "before claim" && (!ready.Load() || s.tried() > 0) {
				return errors.New("it is not there yet, or not any more")
			}
			return nil
		}
		p, q := w.pay(), w.pay()
		time.Sleep(time.Second)
		ready.Store(true)
		dead.Wake(t.Context(), w.client.ID)
		time.Sleep(time.Second)
		if n := s.tried(); n != 2 {
			t.Errorf("%d were sent before the crash, want 2", n)
		}
		w.stop()
		w.start(nil)
		w.move(p, storetest.Succeeded)
		time.Sleep(5 * time.Second)
		if n := s.tried(); n != 2 {
			t.Errorf("%d were sent while the dead one held the lease, want 2", n)
		}
		time.Sleep(Lease + 15*time.Second)
		s.everythingArrived()
		for _, r := range s.receipts()[2:] {
			if r.Data.Payment.ID == q.ID.String() && r.n != 1 {
				t.Errorf("the second time its number is %d", r.n)
			}
		}
	})
}

func (s *shop) tried() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tries
}

func TestASecretIsRotatedUnderLoad(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		ctx, cancel := context.WithCancel(t.Context())
		var load sync.WaitGroup
		load.Go(func() {
			for ctx.Err() == nil {
				w.pay()
				time.Sleep(500 * time.Millisecond)
			}
		})
		time.Sleep(5 * time.Second)
		_, secret, err := w.acts.Rotate(t.Context(), w.client.ID, s.e.ID, time.Minute, nil, awa)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second) // both sign, the shop knows the old one
		s.set(func() { s.secrets = []Secret{secret} })
		time.Sleep(10 * time.Second) // both sign, it knows the new one
		two := len(s.receipts())
		time.Sleep(time.Minute) // the new one signs alone
		cancel()
		load.Wait()
		time.Sleep(3 * time.Second)
		s.everythingArrived()
		if s.refusals() > 0 || len(s.receipts()) < two+100 {
			t.Errorf("%d of %d deliveries were refused", s.refusals(), len(s.receipts()))
		}
		// With no overlap the old secret is worth nothing at once.
		if _, _, err := w.acts.Rotate(t.Context(), w.client.ID, s.e.ID, 0, nil, awa); err != nil {
			t.Fatal(err)
		}
		w.pay()
		time.Sleep(time.Second)
		if s.refusals() == 0 {
			t.Error("what the new secret signs was accepted by who knows the old one")
		}
	})
}

func TestAnswersThatMeanMore(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		gone, busy, moved := w.shop(), w.shop(), w.shop()
		gone.answer = func(*receipt) int { return http.StatusGone }
		busy.after = "120"
		start := time.Now()
		busy.answer = func(*receipt) int {
			if time.Since(start) < 100*time.Second {
				return http.StatusTooManyRequests
			}
			return http.StatusOK
		}
		moved.answer = func(*receipt) int { return http.StatusMovedPermanently }
		w.pay()
		time.Sleep(10 * time.Second)
		w.pay()
		time.Sleep(time.Minute)
		e := gone.endpoint()
		expect(t, "gone", e.Status()+" "+string(e.DisableReason)+" "+w.cases(e.ID), "disabled gone endpoint_disabled")
		expect(t, "rows of gone", gone.rows(), "1 event disabled 1")
		if len(gone.receipts()) != 1 {
			t.Errorf("what is gone was sent %d events", len(gone.receipts()))
		}
		for i, r := range busy.receipts() { // at first, that another is gone may come along
			if i > 1 || r.at.Sub(start) > 5*time.Second {
				t.Errorf("who asked for two minutes was sent %s after %s", r.Type, r.at.Sub(start))
			}
		}
		if len(moved.receipts()) < 2 || moved.endpoint().FailingSince == 0 {
			t.Error("a redirect was taken for an answer")
		}
		time.Sleep(2 * time.Minute)
		busy.everythingArrived()
	})
}

// F44: an event that an endpoint cannot take, and one that we cannot send.
func TestAPoisonEventIsInNobodysWay(t *testing.T) {
	poisoned := func(c *Config) {
		c.SweepInterval = 20 * time.Minute
		c.Sender = &panicking{HTTPSender: c.Sender}
	}
	inWorld(t, poisoned, func(t *testing.T, w *world) {
		s := w.shop()
		s.answer = func(r *receipt) int {
			if r.Sequence == 7 {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		w.d.c.Sender.(*panicking).on.Store(till.EventID(w.client.ID, 9, 0).String()[19:])
		for range 20 {
			w.pay()
		}
		time.Sleep(3 * time.Second)
		if n := len(s.sequences()); n != 18 {
			t.Errorf("%d events arrived, want all but two", n)
		}
		if e := s.endpoint(); e.Status() != "active" {
			t.Errorf("the endpoint is %s", e.Status())
		}
		for range 10 {
			time.Sleep(10 * time.Hour)
			p, before := w.pay(), time.Now()
			time.Sleep(time.Second)
			if !slices.ContainsFunc(s.receipts(), func(r *receipt) bool {
				return r.Data.Payment.ID == p.ID.String() && r.at.Sub(before) < time.Second/2
			}) {
				t.Error("beside what cannot be delivered a new event did not come at once")
			}
		}
		time.Sleep(10 * time.Hour)
		expect(t, "rows", s.rows(), "7 event exhausted 12, 9 event exhausted 12")
		expect(t, "cases", w.cases(s.e.ID), "endpoint_exhausted")
		if n := len(s.sequences()); n != 28 {
			t.Errorf("%d events arrived, want all but two", n)
		}
	})
}

// panicking is a way to endpoints that cannot bear one event.
type panicking struct {
	HTTPSender
	on atomic.Value // the end of its id
}

func (p *panicking) Post(ctx context.Context, url string, h http.Header, body []byte) Response {
	if on, _ := p.on.Load().(string); on != "" && strings.HasSuffix(h.Get(HeaderID), on) {
		panic("this one cannot be sent")
	}
	return p.HTTPSender.Post(ctx, url, h, body)
}

func TestOneDeadAmongAHundred(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		var shops []*shop
		var clients []*till.Client
		for range 5 {
			c := storetest.NewClient(t, w.store, till.Test)
			clients = append(clients, c)
			for range MaxEndpoints {
				shops = append(shops, w.shopOf(c, "payment.pending"))
			}
		}
		dead, slow := shops[3], shops[25]
		dead.goDown(true)
		slow.answer = func(*receipt) int { time.Sleep(14 * time.Second); return http.StatusOK }
		sent := map[string]time.Time{}
		for range 10 {
			for _, c := range clients {
				sent[w.payTo(c).ID.String()] = time.Now()
			}
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		for i, s := range shops {
			if s == dead || s == slow {
				continue
			}
			if len(s.receipts()) != 10 {
				t.Errorf("endpoint %d got %d of 10 events", i, len(s.receipts()))
			}
			for _, r := range s.receipts() {
				if late := r.at.Sub(sent[r.Data.Payment.ID]); late > time.Second {
					t.Errorf("endpoint %d was told after %s", i, late)
				}
			}
		}
		slow.set(func() { slow.answer = nil })
		time.Sleep(time.Minute)
		if n := len(slow.sequences()); n != 10 {
			t.Errorf("the slow one got %d of 10 events", n)
		}
	})
}

// F43, F45: what waits for a dead endpoint is one row, and a client that has
// much to send does not keep another waiting.
func TestABacklogIsOneRowAndAFloodIsNobodyElses(t *testing.T) {
	const many = 1500
	inWorld(t, nil, func(t *testing.T, w *world) {
		dead, alive := w.shop(), w.shop()
		dead.goDown(true)
		alive.answer = func(*receipt) int { time.Sleep(20 * time.Millisecond); return http.StatusOK }
		other := storetest.NewClient(t, w.store, till.Test)
		calm := w.shopOf(other)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for range many / 10 {
					storetest.NewPayment(t, w.collector, w.client, storetest.Body{})
				}
			})
		}
		all.Wait()
		w.d.Wake(t.Context(), w.client.ID)
		start := time.Now()
		p := w.payTo(other)
		time.Sleep(time.Second)
		if len(calm.receipts()) != 1 || calm.receipts()[0].Data.Payment.ID != p.ID.String() || calm.receipts()[0].at.Sub(start) > 500*time.Millisecond {
			t.Errorf("beside a flood one event came as %+v", calm.receipts())
		}
		time.Sleep(time.Minute)
		if n := len(alive.sequences()); n != many {
			t.Errorf("the healthy endpoint got %d of %d events", n, many)
		}
		if n := strings.Count(dead.rows(), "pending"); n > 2*defaultPerEndpoint {
			t.Errorf("%d rows wait for the dead endpoint", n)
		}

		// A restart with all of that due, and then the endpoint comes back.
		w.stop()
		w.start(nil)
		dead.goDown(false)
		back := time.Now()
		time.Sleep(10 * time.Minute)
		dead.everythingArrived()
		if took := dead.receipts()[len(dead.receipts())-1].at.Sub(back); took < (many/drainRate-2)*time.Second {
			t.Errorf("%d events drained in %s", many, took)
		}
		newest := int64(0)
		for _, r := range dead.receipts()[1:] { // the first is the probe
			if newest = max(newest, r.Sequence); r.Sequence < newest-drainRate {
				t.Errorf("event %d came after event %d", r.Sequence, newest)
			}
		}
	})
}

// A worker that held an endpoint and was stopped for longer than the lease has no say
// any more.
func TestAHolderThatWasAwayChangesNothing(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		s.answer = func(r *receipt) int {
			if r.n == 0 {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		away := w.d
		away.fault = func(at string) error {
			if at == "after send" {
				time.Sleep(Lease + 20*time.Second)
			}
			return nil
		}
		stopAway := w.stop
		w.pay()
		time.Sleep(time.Second)
		w.start(nil) // another instance
		time.Sleep(Lease + 17*time.Second)
		expect(t, "before it is back", s.rows(), "")
		if e := s.endpoint(); len(s.receipts()) != 2 || e.Cursor != 1 {
			t.Errorf("%d deliveries, the cursor is at %d; want the other to have delivered", len(s.receipts()), e.Cursor)
		}
		time.Sleep(time.Minute)
		stopAway()
		expect(t, "when it is back", s.rows(), "")
		if n := len(s.receipts()); n != 2 {
			t.Errorf("%d deliveries, want 2", n)
		}
	})
}

// An attempt that could outlive the lease is not begun.
func TestNoAttemptOutlivesItsLease(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		var once sync.Once
		w.d.fault = func(at string) error {
			if at == "after claim" {
				once.Do(func() { time.Sleep(10 * time.Second) })
			}
			return nil
		}
		s.answer = func(*receipt) int {
			if left := s.endpoint().LeaseUntil.Sub(w.store.Now()); left < attemptTime {
				t.Errorf("an attempt began with %s left of the lease", left)
			}
			return http.StatusOK
		}
		w.pay()
		time.Sleep(time.Minute)
		s.everythingArrived()
	})
}
