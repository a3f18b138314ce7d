package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"till/internal/loop"
)

// The limits of sending.
const (
	sendInterval   = time.Second // how long a span waits for others
	maxPost        = 512         // spans in one request
	maxTries       = 5           // of one request, while the collector is busy
	firstPause     = time.Second // after the first try; it doubles
	maxPause       = 30 * time.Second
	maxAnswer      = 64 << 10 // bytes read of an answer
	defaultTimeout = 10 * time.Second
	closeTimeout   = time.Second // for what is left at the end
)

// busy are the answers after which OTLP allows the same request again.
var busy = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}

// sending is the request that is under way.
type sending struct {
	body      []byte // nil: none
	spans     int
	tries     int
	notBefore time.Time
	failing   bool // the last request failed; said once
}

func newClient(c Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
			TLSHandshakeTimeout: defaultTimeout, MaxIdleConns: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Run sends spans until ctx ends, one request at a time.
func (t *Tracer) Run(ctx context.Context) {
	loop.Run(ctx, loop.Options{Interval: sendInterval, MaxStep: 2 * t.c.timeout(), Wake: t.waker.C(), Step: func(ctx context.Context) time.Duration {
		if t.step(ctx, time.Now()) {
			return 0
		}
		return -1
	}})
}

// Close sends what is left, once and within a second, and closes the connections. Call it
// after Run has returned.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	t.notBefore = time.Time{}
	for t.step(ctx, time.Now()) {
	}
	t.client.CloseIdleConnections()
}

// step sends one request, if there is one to send. It reports whether more waits.
func (t *Tracer) step(ctx context.Context, now time.Time) (more bool) {
	if now.Before(t.notBefore) {
		return false
	}
	if t.body == nil {
		spans := t.take(maxPost)
		if len(spans) == 0 {
			return false
		}
		t.body, t.spans, t.tries = t.pack(spans), len(spans), 0
	}
	t.tries++
	lost, pause, err := t.post(ctx)
	if pause > 0 && t.tries < maxTries {
		t.notBefore = now.Add(pause)
		return false
	}
	if err != nil {
		lost = t.spans
	}
	if lost > 0 {
		t.c.Dropped(lost)
	}
	t.tell(err)
	t.body, t.notBefore = nil, time.Time{}
	return err == nil && t.waiting() > 0
}

func (t *Tracer) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// tell logs that the collector has begun to fail, or works again.
func (t *Tracer) tell(err error) {
	switch {
	case err != nil && !t.failing:
		t.c.Log.Warn("spans not sent", "error", err)
	case err == nil && t.failing:
		t.c.Log.Info("spans sent again")
	}
	t.failing = err != nil
}

// pack encodes spans as the body of a request.
func (t *Tracer) pack(spans []Span) []byte {
	b := encode(t.c.Resource, spans)
	if t.c.Plain {
		return b
	}
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	w.Write(b) // into memory: no error
	w.Close()
	return out.Bytes()
}

// post sends the request once. lost is how many spans the collector has not taken. With an
// error, pause says how long to wait before the same request; 0 means not to send it again.
func (t *Tracer) post(ctx context.Context) (lost int, pause time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.c.timeout())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.c.Endpoint, bytes.NewReader(t.body))
	if err != nil {
		return 0, 0, errors.New("the collector's address is not valid")
	}
	for name, value := range t.c.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "Till-Traces/1")
	if !t.c.Plain {
		r.Header.Set("Content-Encoding", "gzip")
	}
	res, err := t.client.Do(r)
	if err != nil {
		return 0, 0, fmt.Errorf("the collector cannot be reached: %w", cause(err))
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case res.StatusCode/100 == 2:
		return int(min(max(rejected(answer), 0), int64(t.spans))), 0, nil
	case slices.Contains(busy, res.StatusCode):
		return 0, t.pause(res.Header.Get("Retry-After")), fmt.Errorf("the collector answers %d", res.StatusCode)
	}
	return 0, 0, fmt.Errorf("the collector answers %d", res.StatusCode)
}

// pause returns how long to wait: what the collector asks for, within limits, or ever
// longer.
func (t *Tracer) pause(retryAfter string) time.Duration {
	if seconds, err := strconv.Atoi(retryAfter); err == nil && seconds > 0 {
		return min(time.Duration(seconds)*time.Second, maxPause)
	}
	d := min(firstPause<<(t.tries-1), maxPause)
	return d + rand.N(d/4)
}

// cause returns an error of the client without the address, which may hold what the log
// must not.
func cause(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
