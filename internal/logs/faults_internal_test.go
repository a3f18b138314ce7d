package logs

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"till/store"
)

// A storm of one cause is one line a second, from all writers, and each line names the
// beginning. What has another cause is written as ever.
func TestFaultsOfTheDatabaseAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w bytes.Buffer
		log, end := CountFaults(New(&w, false, slog.LevelInfo))
		loop := log.With("loop", "collector")
		away := fmt.Errorf("%w: connection refused", store.ErrUnavailable)
		lines := func() []string {
			synctest.Wait()
			out := strings.Split(strings.TrimSuffix(w.String(), "\n"), "\n")
			w.Reset()
			return out
		}
		log.Warn("database unavailable", "request_id", "the first", "error", away)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "the first") {
			t.Fatalf("the first line waits: %q", got)
		}
		time.Sleep(faultInterval / 2) // between two lines
		const seconds = 20
		for i := range seconds {
			for n := range 50 {
				log.Warn("database unavailable", "request_id", fmt.Sprint(i, ".", n), "error", away)
			}
			loop.Error("due steps not read", "error", errors.Join(away, errors.New("another host too")))
			time.Sleep(faultInterval)
		}
		got := lines()
		if len(got) != seconds {
			t.Fatalf("%d lines in %d seconds: %q", len(got), seconds, got)
		}
		for _, want := range []string{"level=ERROR", `msg="faults counted"`, `cause="database is unavailable"`, "count=51", `lines="database unavailable 50, due steps not read 1"`,
			`first="database unavailable: db: database unavailable: connection refused"`, "since=2000-01-01T00:00:00.000Z", "19.0 19.1 "} {
			if !strings.Contains(got[seconds-1], want) {
				t.Errorf("a line lacks %s: %s", want, got[seconds-1])
			}
		}

		loop.Error("due steps not read", "error", away) // alone: as it is
		log.Warn("commit failed", "error", fmt.Errorf("%w: %w", store.ErrUnknownCommit, away))
		log.Warn("answer lost", "payment", "p1", "error", away.Error())
		log.Error("request failed", "error", errors.New("a fault of ours"))
		log.Info("asked", "error", away)
		time.Sleep(faultInterval)
		text := strings.Join(lines(), "\n")
		for _, want := range []string{`msg="due steps not read" loop=collector`, `msg="commit failed"`, `msg="answer lost" payment=p1`, `msg="request failed"`, "msg=asked"} {
			if strings.Count(text, want) != 1 {
				t.Errorf("%s is not written once: %s", want, text)
			}
		}

		time.Sleep((faultOver + 1) * faultInterval)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], `msg="fault over" cause="database is unavailable" count=1022 since=2000-01-01T00:00:00.000Z until=2000-01-01T00:00:20.500Z`) {
			t.Errorf("the end is %q", got)
		}
		log.Warn("database unavailable", "error", away)
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], `msg="database unavailable"`) {
			t.Errorf("the next one begins with %q", got)
		}
		log.Warn("database unavailable", "error", away)
		end()
		if got := lines(); len(got) != 2 || !strings.Contains(got[1], "fault over") {
			t.Errorf("a stop writes %q", got)
		}
	})
}
