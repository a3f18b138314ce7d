package api

import (
	"context"
	"net/http"
	"testing"
)

// FillLookups takes all slots in which h looks up unknown keys, until free is called.
func FillLookups(h http.Handler) (free func()) {
	var leave []func()
	for range maxLookups {
		l, _ := h.(*server).addressLimits.lookups.Enter(context.Background(), struct{}{})
		leave = append(leave, l)
	}
	return func() {
		for _, l := range leave {
			l()
		}
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
