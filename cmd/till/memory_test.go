package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"till"
	"till/store/storetest"
)

const (
	maxResident = raceFactor * 250 << 20 // bytes of one instance
	largeBody   = 48 << 10
)

// TestOneInstanceStaysUnder250MB gives a server open payments whose bodies
// have 48 KB each, with an endpoint that is sent them, and then a flood of
// more from 256 connections of one client. What the server holds of them is
// bounded, whatever their number: a server that held the bodies of 2 000 would
// have 100 MB of them, and as much garbage, beside what it has anyway. TILL_OPEN says how
// many they are, and TILL_FLOOD how long the flood lasts. It is not parallel: it loads the machine.
func TestOneInstanceStaysUnder250MB(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it floods an instance for many seconds")
	}
	openPayments := int64(2000)
	if n, err := strconv.ParseInt(os.Getenv("TILL_OPEN"), 10, 64); err == nil {
		openPayments = n
	}
	flood := 2 * time.Second
	if d, err := time.ParseDuration(os.Getenv("TILL_FLOOD")); err == nil {
		flood = d
	}
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			k := &killing{t: t, dir: dir, database: e.Config(t).Path, book: filepath.Join(dir, "sandbox.db"), window: 5 * time.Minute, answered: map[string]string{}}
			s := k.start()
			shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
			defer shop.Close()
			l := &largeLoad{key: k.key, base: s.base, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
			l.post(t.Context(), "/webhook-endpoints", `{"url":"`+shop.URL+`","events":["*"]}`)

			began := time.Now()
			l.run(t.Context(), 32, openPayments)
			t.Logf("%d open payments in %v: %d MB resident, %d MB at most", l.made.Load(), time.Since(began).Round(time.Millisecond), resident(t, s, "VmRSS")>>20, resident(t, s, "VmHWM")>>20)
			if l.made.Load() < openPayments {
				t.Errorf("%d of %d were made", l.made.Load(), openPayments)
			}
			ctx, cancel := context.WithTimeout(t.Context(), flood)
			defer cancel()
			before := l.made.Load()
			l.run(ctx, 256, 1<<30)
			most := resident(t, s, "VmHWM")
			t.Logf("a flood of %v made %d more, %d were told to come back: %d MB resident, %d MB at most", flood, l.made.Load()-before, l.refused.Load(), resident(t, s, "VmRSS")>>20, most>>20)
			if most > maxResident {
				t.Errorf("%d MB resident, want %d at most", most>>20, maxResident>>20)
			}
			k.end(s, syscall.SIGTERM)
			k.verify()
		})
	}
}

// largeLoad is a client whose payments say a lot.
type largeLoad struct {
	key, base     string
	client        *http.Client
	made, refused atomic.Int64
}

// run creates payments from many connections until so many more were made, or
// ctx ends. One that is asked to come back later does, with the same key.
func (l *largeLoad) run(ctx context.Context, connections int, want int64) {
	var wg sync.WaitGroup
	var begun atomic.Int64
	for range connections {
		wg.Go(func() {
			for ctx.Err() == nil && begun.Add(1) <= want {
				body := largePayment()
				for ctx.Err() == nil && !l.post(ctx, "/payments", body) {
					pause(ctx, 50*time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
}

// post reports whether a call was answered with success.
func (l *largeLoad) post(ctx context.Context, path, body string) bool {
	req, _ := http.NewRequestWithContext(context.WithoutCancel(ctx), "POST", l.base+path, bytes.NewReader([]byte(body)))
	req.Header.Set("X-Api-Key", l.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		l.refused.Add(1)
		return false
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	if resp.StatusCode/100 == 2 {
		l.made.Add(1)
		return true
	}
	l.refused.Add(1)
	return false
}

// largePayment is the body of a payment that stays open: its customer is a
// person who does not answer.
func largePayment() string {
	var b strings.Builder
	key := till.NewID(till.TimeOf(time.Now())).String()
	fmt.Fprintf(&b, `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"%s","customer":{"phone":"242061230000"},"metadata":{"note":"%s"},"charge":{"items":[`,
		key, strings.Repeat("m", 15<<10))
	for n := 0; b.Len() < largeBody-200; n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"name":"%s %d","quantity":1,"unit_price":"10","total":"10"}`, strings.Repeat("bread ", 8), n)
	}
	b.WriteString(`]}}`)
	return b.String()
}

// resident returns a figure of the memory that a server has.
func resident(t *testing.T, s *instance, name string) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(s.cmd.Process.Pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	t.Fatalf("no %s in the status of a process", name)
	return 0
}

// The collector may let twice of what lives pile up, and more only where that is
// little.
func TestTheMemoryLimitFollowsWhatLives(t *testing.T) {
	t.Parallel()
	for living, want := range map[int64]int64{0: softMemory, 40 << 20: softMemory, softMemory / 2: softMemory, 60 << 20: 128 << 20, 300 << 20: 608 << 20} {
		if got := memoryLimit(living); got != want || got < 2*living {
			t.Errorf("%d MB live: a limit of %d MB, want %d", living>>20, got>>20, want>>20)
		}
	}
	if n := readMemory().living; n < 1<<20 || n > 10<<30 {
		t.Errorf("%d bytes live", n)
	}
}

// A process that does little gives garbage back; one that works keeps it for its next
// requests, and so does one that has little of it.
func TestAnIdleProcessGivesItsGarbageBack(t *testing.T) {
	t.Parallel()
	last := memory{allocated: 100 << 20}
	for _, c := range []struct {
		name               string
		allocated, garbage int64
		wasteful           bool
	}{
		{"idle, with garbage", 0, idleGarbage + 1, true},
		{"idle, with little garbage", 0, idleGarbage, false},
		{"at work", quietRate, 16 << 20, false},
	} {
		now := memory{garbage: c.garbage, allocated: last.allocated + c.allocated}
		if got := now.wasteful(last); got != c.wasteful {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
