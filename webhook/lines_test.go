package webhook

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/store/storetest"
)

// lockedBuffer is a log that a test reads while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Each attempt that failed has a line with all fields, which names the endpoint's host and
// not its path. The last attempt warns, and so does the end of the endpoint.
func TestFailedAttemptsHaveLines(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		log := &lockedBuffer{}
		w.stop()
		w.start(func(c *Config) {
			c.SweepInterval = 5 * time.Minute
			c.Log = slog.New(slog.NewJSONHandler(log, nil))
		})
		s := w.shop()
		w.pay()
		time.Sleep(6 * time.Minute)
		if strings.Contains(log.String(), "delivery") {
			t.Errorf("an attempt that was delivered has a line: %s", log.String())
		}
		s.goDown(true)
		for range 13 {
			w.move(w.pay(), storetest.Succeeded)
			time.Sleep(10 * time.Hour)
		}
		want := map[string]string{
			"delivery": "attempt client endpoint host level msg problem result sequence status time took",
			"changed":  "from id level msg time to what why",
		}
		seen := map[string]int{}
		for line := range strings.Lines(log.String()) {
			var f map[string]any
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatal(err)
			}
			message := f["msg"].(string)
			if want[message] == "" {
				continue
			}
			seen[message]++
			if got := strings.Join(slices.Sorted(maps.Keys(f)), " "); got != want[message] {
				t.Errorf("%s has %s", message, got)
			}
			if message == "changed" {
				continue
			}
			last := f["attempt"].(float64) >= float64(MaxAttempts)
			if last != (f["level"] == "WARN") || f["result"] != "unreachable" || f["endpoint"] != s.e.ID.String() || !strings.HasPrefix(s.addr(), f["host"].(string)) {
				t.Errorf("%s", line)
			}
			if last {
				seen["last"]++
			}
		}
		if seen["delivery"] < MaxAttempts || seen["last"] == 0 || seen["changed"] != 1 {
			t.Errorf("lines: %v", seen)
		}
		if strings.Contains(log.String(), "/hooks") {
			t.Error("a line has the path of an endpoint")
		}
	})
}
