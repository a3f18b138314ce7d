package door

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A thousand requests of one address are one line, and what a stranger chose is cut.
func TestRefusalsOfASecondAreOneLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := NewLog(slog.New(slog.NewTextHandler(&b, nil)))
		for range 1000 {
			l.Add(Refusal{Reason: "foreign", From: netip.MustParseAddr("203.0.113.7"), Route: "POST /console/join/{token}", Origin: "https://" + strings.Repeat("é", 10_000), Warn: true, Proxy: true}, "an id")
		}
		if b.Len() != 0 {
			t.Error("an answer waits for the log")
		}
		time.Sleep(logInterval)
		synctest.Wait()
		if got := b.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "count=1000") || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "trusted_proxies") || len(got) > 800 {
			t.Errorf("%d bytes: %s", len(got), got)
		}
	})
}
