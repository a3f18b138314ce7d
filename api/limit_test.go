package api

import (
	"net/http"
	"testing"
	"time"

	"till"
)

// FillLookups takes all slots in which h looks up unknown keys, until free is called.
func FillLookups(h http.Handler) (free func()) {
	slots := h.(*server).addressLimits.lookupSlots
	for range cap(slots) {
		slots <- struct{}{}
	}
	return func() {
		for range cap(slots) {
			<-slots
		}
	}
}

func TestLimitersAreBounded(t *testing.T) {
	t.Parallel()
	l := newLimits(10)
	now := time.Now()
	busy := l.bucket(till.ID{1}, now)
	busy.AllowN(now, 15)
	for i := range 3 * maxLimiters {
		l.bucket(till.ID{2, byte(i >> 16), byte(i >> 8), byte(i)}, now)
	}
	if n := len(l.buckets); n > maxLimiters {
		t.Errorf("%d buckets", n)
	}
	if l.bucket(till.ID{1}, now) != busy {
		t.Error("a bucket in use was dropped while idle ones were there")
	}
	for i := range 3 * maxLimiters { // all of them in use
		l.bucket(till.ID{3, byte(i >> 16), byte(i >> 8), byte(i)}, now).AllowN(now, 1)
	}
	if n := len(l.buckets); n > maxLimiters {
		t.Errorf("%d buckets in use", n)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]string{100: `"default";q=200;w=2`, 1: `"default";q=2;w=2`, 0.1: `"default";q=1;w=10`, 2.5: `"default";q=5;w=2`} {
		if got := newLimits(rate).policy[0]; got != want {
			t.Errorf("%v a second: got %s, want %s", rate, got, want)
		}
	}
	if newLimits(0) != nil || newLimits(-1) != nil {
		t.Error("no rate is still a limit")
	}
}
