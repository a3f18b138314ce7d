package store

import (
	"testing"
	"testing/synctest"
	"time"

	"till"
)

// The clock runs on from what the server showed, for a second.
func TestAGuessedClockIsFreshOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{}
		if _, fresh := s.clock(); fresh {
			t.Error("a clock that was never seen is fresh")
		}
		shown := till.TimeOf(time.Now().Add(time.Hour)) // it is ahead of ours
		sent := time.Now()
		time.Sleep(10 * time.Millisecond)
		s.saw(sent, shown)
		time.Sleep(500 * time.Millisecond)
		if now, fresh := s.clock(); !fresh || now != shown.Add(505*time.Millisecond) {
			t.Errorf("half a second later it shows %v, fresh %t; want %v", now, fresh, shown.Add(505*time.Millisecond))
		}
		time.Sleep(500 * time.Millisecond)
		if _, fresh := s.clock(); fresh {
			t.Error("after a second it is still fresh")
		}
		sent = time.Now()
		time.Sleep(200 * time.Millisecond)
		s.saw(sent, shown) // too slow an answer says nothing
		if _, fresh := s.clock(); fresh {
			t.Error("a slow answer made it fresh")
		}
	})
}
