package logs_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"till/internal/logs"
)

// The last 2 000 lines are kept as they were written: masked.
func TestTheLogRing(t *testing.T) {
	var written bytes.Buffer
	ring := logs.NewRing(&written)
	log := logs.New(ring, true, slog.LevelInfo)
	for i := range 2500 {
		log.Info("line", "number", i, "phone", "242061234567")
	}
	log.Info("long", "text", strings.Repeat("x", 10_000))
	kept := strings.Split(strings.TrimSuffix(string(ring.Last()), "\n"), "\n")
	if len(kept) != 2000 || !strings.Contains(kept[0], `"number":501,`) || !strings.Contains(kept[1998], `"number":2499,`) {
		t.Errorf("%d lines from %s to %s", len(kept), kept[0], kept[len(kept)-2])
	}
	if last := kept[1999]; len(last) > 5000 || !strings.HasSuffix(last, "…") {
		t.Errorf("a long line has %d bytes", len(last))
	}
	if strings.Contains(string(ring.Last()), "242061234567") || strings.Count(written.String(), "\n") != 2501 {
		t.Error("a phone number is kept, or a line was not passed on")
	}
	if n := testing.AllocsPerRun(100, func() { fmt.Fprint(ring, "x\n") }); n > 1 {
		t.Errorf("a line allocates %v times", n)
	}
}
