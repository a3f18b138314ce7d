package webhook

import (
	"errors"
	"testing"
	"time"
)

// A clock that was an hour ahead leaves retries, pauses and leases in the future;
// once it is set right, all of them come as if it had always been.
func TestAClockThatIsSetBackKeepsNoDeliveryWaiting(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		w.ahead.Store(int64(time.Hour))
		for range 5 {
			w.pay()
		}
		time.Sleep(3 * time.Minute) // refused: what is signed an hour ahead is not believed
		if s.refusals() < 4 || s.endpoint().Status() != "failing" {
			t.Fatalf("%d deliveries were refused, the endpoint is %s", s.refusals(), s.endpoint().Status())
		}
		w.ahead.Store(0)
		time.Sleep(maxProbe + time.Minute)
		if n := len(s.sequences()); n != 5 {
			t.Errorf("%d of 5 events came within %s", n, maxProbe+time.Minute)
		}
		s.everythingArrived()
	})
}

// One that takes over after a crash does not wait for a lease of a time to come.
func TestALeaseFromTheFutureIsNotWaitedFor(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		s := w.shop()
		w.d.fault = func(at string) error {
			if at == "after claim" {
				return errors.New("a crash")
			}
			return nil
		}
		w.ahead.Store(int64(time.Hour))
		w.pay()
		time.Sleep(time.Second)
		w.stop()
		w.ahead.Store(0)
		w.start(nil)
		time.Sleep(Lease + 20*time.Second)
		expect(t, "received", s.got(), "1")
	})
}
