package api

import (
	"testing"
	"time"

	"till"
)

// The longest wait and the read after it end before the connection does.
func TestTheLongestWaitFitsIntoTheWriteTimeout(t *testing.T) {
	t.Parallel()
	if longest := maxWait*time.Second + viewTimeout; longest >= writeTimeout {
		t.Errorf("a call may take %s and the connection is cut after %s", longest, writeTimeout)
	}
}

func TestPlacesAreBounded(t *testing.T) {
	t.Parallel()
	p := newInflight(maxPolls, maxClientPolls)
	var leave []func()
	enter := func(client byte, want till.Code) {
		t.Helper()
		l, err := p.enter(till.ID{client})
		if till.ErrorCode(err) != want {
			t.Fatalf("client %d with %d in all: %v, want %q", client, p.places.Held(), err, want)
		}
		if err == nil {
			leave = append(leave, l)
		}
	}
	for client := range byte(maxPolls / maxClientPolls) {
		for range maxClientPolls {
			enter(client, "")
		}
		enter(client, till.CodeRateLimited)
	}
	enter(255, till.CodeServiceUnavailable)
	for _, l := range leave {
		l()
	}
	if n := p.places.Held(); n != 0 {
		t.Errorf("%d places are left", n)
	}
	enter(255, "")
}
