package main

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"till/internal/dev/loadgen"
)

// The goals of backups: what creates keep of their rate beside one, how much later
// the slowest come, and how long a drill of a million payments takes.
const (
	goalRate  = 0.9
	goalDelay = 2.0
	goalDrill = time.Minute
)

// TestBackupsOfManyPayments measures a backup, a drill, and creates beside backups, in turns.
// It reports: a slow day fails nothing.
// TILL_ROWS says of how many payments; make soak says a million.
func TestBackupsOfManyPayments(t *testing.T) {
	rows, err := strconv.ParseInt(os.Getenv("TILL_ROWS"), 10, 64)
	if err != nil {
		t.Skip("make soak runs it: it measures with a million payments")
	}
	b := newSaved(t, rows)
	begun := time.Now()
	b.must(0, b.backup()...)
	t.Logf("a backup takes %s", time.Since(begun).Round(time.Millisecond))
	begun = time.Now()
	t.Log(b.must(0, "drill", b.place, "--identity", b.identity, "--work", b.dir))
	t.Logf("a drill takes %s; the goal is %s", time.Since(begun).Round(time.Millisecond), goalDrill)
	k := &killing{t: t, dir: filepath.Dir(b.database), database: b.database, book: filepath.Join(b.dir, "sandbox.db"), answered: map[string]string{}}
	s := k.start("--role", "api")
	u, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("till")
	if err != nil {
		t.Fatal(err)
	}
	load := func() (float64, time.Duration) {
		t.Helper()
		r, err := loadgen.Closed{Addr: u.Host, APIKey: k.key, Connections: 64, Duration: 10 * time.Second}.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r.Rate(), r.Latency.Quantile(0.99)
	}
	beside := func() (float64, time.Duration) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			for {
				cmd := exec.CommandContext(ctx, path, b.backup()...)
				if out, err := cmd.CombinedOutput(); ctx.Err() != nil {
					done <- nil
					return
				} else if err != nil {
					t.Logf("%s", out)
					done <- err
					return
				}
			}
		}()
		rate, p99 := load()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return rate, p99
	}
	load() // warm
	var rates [2]float64
	var delays [2]time.Duration
	for range 3 {
		for i, f := range []func() (float64, time.Duration){load, beside} {
			rate, p99 := f()
			t.Logf("%-6s %.0f creates a second, p99 %s", []string{"alone", "beside"}[i], rate, p99)
			rates[i], delays[i] = rates[i]+rate, delays[i]+p99
		}
	}
	ratio, later := rates[1]/rates[0], float64(delays[1])/float64(delays[0])
	t.Logf("creates beside a backup: %.2f of the rate, p99 %.2f times as late", ratio, later)
	t.Logf("the goal is %.2f of the rate, and p99 at most %.1f times as late", goalRate, goalDelay)
}
