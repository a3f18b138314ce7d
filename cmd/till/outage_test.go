package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"till/internal/db/pgtest"
)

// While PostgreSQL is unreachable under load, everything fails many times a second. The log has a
// line a second for each cause, and the first line of the outage as it was.
// TILL_OUTAGE says for how many seconds.
func TestAnOutageIsALineASecond(t *testing.T) {
	t.Parallel()
	if os.Getenv("TILL_TEST_POSTGRES_URL") == "" {
		t.Skip("TILL_TEST_POSTGRES_URL names no server; make test starts one")
	}
	away, _ := strconv.Atoi(cmp.Or(os.Getenv("TILL_OUTAGE"), "4"))
	c, err := pgtest.NewInMemory(t.Context(), "shared_buffers = 32MB")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	dir := t.TempDir()
	f := &failover{primary: c, bodies: map[string]string{}}
	f.killing = &killing{t: t, dir: dir, book: filepath.Join(dir, "operator.db"), database: c.URL("postgres"), answered: map[string]string{}}
	f.server = f.start()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ; ctx.Err() == nil; pause(ctx, 25*time.Millisecond) {
				f.create(ctx)
			}
		})
	}
	more := func(what string) {
		t.Helper()
		n := f.answers() + 40
		f.await(what, func() bool { return f.answers() >= n })
	}
	more("creates are answered")
	c.Kill()
	began := time.Now()
	f.await("the outage has lasted", func() bool { return time.Since(began) > time.Duration(away)*time.Second })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	long := time.Since(began)
	more("creates are answered again")
	stop()
	all.Wait()
	refused := len(f.open)
	f.end(f.server, syscall.SIGTERM)

	log, about, troubled := f.server.log(), 0, regexp.MustCompile(`level=(WARN|ERROR)`)
	for line := range strings.Lines(log) {
		// Calls have a limit of their own, and the sandbox is somebody else's system.
		if troubled.MatchString(line) && !strings.Contains(line, "msg=call ") && !strings.Contains(line, `msg="sandbox`) {
			about++
		}
	}
	t.Logf("away for %s, %d creates refused, %d lines of warnings and errors", long.Round(100*time.Millisecond), refused, about)
	if limit := 2*int(long.Seconds()+2) + 10; refused < 20*away || about > limit {
		t.Errorf("%d lines, want at most %d:\n%s", about, limit, log)
	}
	if !strings.Contains(log, `msg="faults counted"`) || !strings.Contains(log, `msg="fault over"`) {
		t.Error("no line says how often, or for how long")
	}
}
