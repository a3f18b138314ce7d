package pay

import (
	"strings"
	"testing"
	"time"
)

// A page that waits answers as soon as its payment has ended, and not before its time if nothing
// happens.
func TestAPageThatWaitsIsWoken(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		own := w.fill(w.open(""), asks)
		w.until(own, "Look at your phone")
		time.Sleep(waitAfter + time.Second)
		began := time.Now()
		if a := w.get(own); !strings.Contains(a.body, "Look at your phone") {
			t.Errorf("nobody approves, and the page says: %s", textOf(a.body))
		}
		whole := time.Since(began)
		go func() {
			time.Sleep(100 * time.Millisecond)
			w.approve()
		}()
		began = time.Now()
		if a := w.get(own); !strings.Contains(a.body, "<title>✓ Paid") || time.Since(began) > whole-time.Second {
			t.Errorf("after %v of %v the page says: %s", time.Since(began), whole, textOf(a.body))
		}
	})
}
