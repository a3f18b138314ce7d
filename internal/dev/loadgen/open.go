package loadgen

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// MaxRate is the highest rate of an Open load, in requests per second.
const MaxRate = 100_000

// Open is a load whose requests are due at fixed times. Latency counts from the time a
// request was due, not from when a connection was free. So a stall of the server counts for
// all requests that were due meanwhile.
type Open struct {
	BaseURL     string // http:// or https://, with its version: ends in /v1
	APIKey      string
	Rate        float64 // requests per second, at most MaxRate
	Duration    time.Duration
	Connections int

	// Progress, if set, is called each second with the result so far.
	Progress func(OpenResult)
}

// OpenResult is the result of an Open load.
type OpenResult struct {
	Due      int64 // requests to send in all
	Sent     int64 // requests that were sent
	Accepted int64 // answers 202
	Elapsed  time.Duration
	Latency  Histogram        // of all that were answered, from their due times
	Failures map[string]int64 // the others, by status, or by "no answer"
}

// Rate returns the accepted requests per second.
func (r *OpenResult) Rate() float64 {
	return float64(r.Accepted) / max(r.Elapsed.Seconds(), 1e-9)
}

// check returns the mistakes of the load.
func (l *Open) check() (*url.URL, error) {
	u, err := url.Parse(l.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the base URL must begin with http:// or https:// and a host")
	case strings.ContainsAny(l.APIKey, "\r\n"):
		return nil, errors.New("the key has a line break in it")
	case l.Rate <= 0 || l.Rate > MaxRate:
		return nil, fmt.Errorf("the rate must be more than 0 and at most %d per second", MaxRate)
	case l.Duration <= 0 || l.Duration > MaxTime:
		return nil, fmt.Errorf("the duration must be more than 0 and at most %v", MaxTime)
	case l.Connections < 1 || l.Connections > MaxConnections:
		return nil, fmt.Errorf("connections must be 1 to %d", MaxConnections)
	case l.Rate*l.Duration.Seconds() > MaxRequests:
		return nil, fmt.Errorf("that would be more than %d requests", MaxRequests)
	}
	return u, nil
}

// Run loads the server until the time is over or ctx ends; the result has what was measured
// in either case. It returns an error if the load cannot begin.
func (l Open) Run(ctx context.Context) (*OpenResult, error) {
	u, err := l.check()
	if err != nil {
		return nil, err
	}
	run := &openRun{Open: l, url: u, total: int64(l.Rate * l.Duration.Seconds())}
	first, err := run.dial(ctx)
	if err != nil {
		return nil, err
	}
	run.orders.Store(time.Now().UnixMicro())
	run.start = time.Now()
	run.result.Failures, run.result.Due = map[string]int64{}, run.total

	// It waits no longer than this for an answer after the last request was due.
	ctx, cancel := context.WithDeadline(ctx, run.start.Add(l.Duration+AnswerTime))
	defer cancel()
	var wg sync.WaitGroup
	for i := range l.Connections {
		conn := first
		if i > 0 {
			conn = nil
		}
		wg.Go(func() { run.work(ctx, conn) })
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	run.watch(done)
	r := run.snapshot()
	return &r, nil
}

// openRun is an Open load in progress.
type openRun struct {
	Open
	url    *url.URL
	total  int64
	start  time.Time
	next   atomic.Int64 // the number of the next request
	orders atomic.Int64

	mu     sync.Mutex
	result OpenResult
}

// watch calls Progress each second until done.
func (run *openRun) watch(done chan struct{}) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticks.C:
			if run.Progress != nil {
				run.Progress(run.snapshot())
			}
		}
	}
}

func (run *openRun) snapshot() OpenResult {
	run.mu.Lock()
	defer run.mu.Unlock()
	r := run.result
	r.Failures = make(map[string]int64, len(run.result.Failures))
	for k, n := range run.result.Failures {
		r.Failures[k] = n
	}
	r.Elapsed = time.Since(run.start)
	return r
}

// work is one connection: it takes the next request, waits until it is due, sends it and
// waits for the answer. It replaces a connection that fails.
func (run *openRun) work(ctx context.Context, conn net.Conn) {
	t := newTemplate(run.url.Host, strings.TrimSuffix(run.url.Path, "/"), run.APIKey, &run.orders)
	r := &reader{}
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	for ctx.Err() == nil {
		n := run.next.Add(1) - 1
		if n >= run.total {
			return
		}
		due := run.start.Add(time.Duration(float64(n) / run.Rate * float64(time.Second)))
		if !sleepUntil(ctx, due) {
			return
		}
		status, keep, err := 0, false, error(nil)
		if conn == nil {
			conn, err = run.dial(ctx)
		}
		if err == nil {
			r.src = conn
			status, keep, err = sendRequest(ctx, conn, t, r)
		}
		run.record(status, err, time.Since(due))
		if conn != nil && !keep {
			conn.Close()
			conn = nil
		}
	}
}

// sendRequest sends one request and returns the status of its answer, and whether
// the connection can be used again.
func sendRequest(ctx context.Context, conn net.Conn, t *template, r *reader) (status int, keep bool, err error) {
	if err := conn.SetDeadline(time.Now().Add(AnswerTime)); err != nil {
		return 0, false, err
	}
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := conn.Write(t.next()); err != nil {
		return 0, false, err
	}
	status, body, err := r.next()
	if err != nil {
		return 0, false, err
	}
	head := r.buf[:r.used-len(body)]
	return status, status == accepted || !bytes.Contains(head, closing), nil
}

func (run *openRun) record(status int, err error, took time.Duration) {
	run.mu.Lock()
	defer run.mu.Unlock()
	r := &run.result
	r.Sent++
	switch {
	case err != nil:
		r.Failures["no answer"]++
		return
	case status == accepted:
		r.Accepted++
	default:
		r.Failures[fmt.Sprint(status)]++
	}
	r.Latency.Record(took)
}

// closing is the header by which a server announces that it closes the connection.
var closing = []byte("\r\nConnection: close\r\n")

// dial connects to the server, with TLS if the URL says so.
func (run *openRun) dial(ctx context.Context) (net.Conn, error) {
	d := &net.Dialer{Timeout: 5 * time.Second}
	host, port := run.url.Hostname(), run.url.Port()
	if run.url.Scheme == "https" {
		if port == "" {
			port = "443"
		}
		t := tls.Dialer{NetDialer: d, Config: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}
		return t.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	}
	if port == "" {
		port = "80"
	}
	return d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
}

// sleepUntil waits, and reports whether ctx did not end before.
func sleepUntil(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
