package till

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// operation is one call of the interface, by the table that is generated.
type operation struct {
	id, method, path string
	repeat           repeat
}

// repeat says when a call is made again.
type repeat int

const (
	repeatSafe  repeat = iota // always
	repeatKey                 // always, because the key makes it one
	repeatNever               // only if not one byte was written
)

// request is one call with its values.
type request struct {
	op     operation
	params []string // of the path, in order
	query  url.Values
	body   []byte // rendered once; every try sends the same bytes
	accept string
	key    string        // the idempotency key, for errors
	wait   time.Duration // the service may take this long on purpose
	stream func(io.Reader) error
}

// Try is one request, for measurements.
type Try struct {
	Method, Route string
	Status        int    // 0 if there was no answer
	Reason        string // why there was no good one
	Duration      time.Duration
	RequestID     string
	Delay         time.Duration // before it
}

// Why there was no complete answer.
const (
	reasonTimeout     = "timeout"
	reasonCancelled   = "cancelled"
	reasonCertificate = "certificate"
	reasonUnreachable = "unreachable"
	reasonReset       = "reset"
	reasonCut         = "cut"
	reasonNotJSON     = "not_json"
	reasonTooLarge    = "too_large"
	reasonRedirect    = "redirect"
	reasonConnection  = "connection"
)

// tried is what came of one request.
type tried struct {
	status     int
	header     http.Header
	body       []byte
	problem    *Problem
	reason     string // "" for a complete answer
	sent       bool   // a byte may have been written
	retryAfter time.Duration
	cause      error
}

func (t *tried) code() string {
	if t.problem == nil {
		return ""
	}
	return t.problem.Code
}

// passing reports whether the failure may go away by itself.
func (t *tried) passing() bool {
	switch t.reason {
	case "":
	case reasonCertificate, reasonCancelled, reasonTooLarge, reasonRedirect:
		return false
	default:
		return true
	}
	switch t.status {
	case 408, 429, 500, 502, 503, 504:
		return true
	}
	return false
}

// repeatable reports whether a call may be made again after this try.
func (op operation) repeatable(t *tried) bool {
	return t.passing() && (op.repeat != repeatNever || !t.sent)
}

// delay is how long to wait before repeat n, counted from 0. Random is between 0
// and 1.
func delay(n int, retryAfter time.Duration, random float64) time.Duration {
	const first, most = 250 * time.Millisecond, 8 * time.Second
	d := most
	if n < 5 {
		d = first << n
	}
	d = time.Duration(float64(d) * (0.5 + random/2))
	return max(d, retryAfter+time.Duration(float64(retryAfter)*random/4))
}

func random() float64 { return rand.Float64() }

// call makes a call, and repeats it as the table of repeats allows.
func (c *Client) call(ctx context.Context, r request) (*tried, error) {
	ctx, cancel := context.WithTimeout(ctx, c.deadline+r.wait)
	defer cancel()
	end, _ := ctx.Deadline()
	var before, asked bool
	var wait time.Duration
	key, err := c.apiKey(ctx)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		t := c.try(ctx, r, key, wait)
		v := judge(r.op, t, before)
		switch {
		case v == verdictDone:
			c.budget.success()
			return t, nil
		case before && t.status == 404 && r.op.method == http.MethodDelete:
			return t, nil // the try without an answer did it
		case t.status == 401 && !asked:
			asked = true
			if again, err := c.apiKey(ctx); err == nil && again != key {
				key = again
				continue
			}
		}
		before = before || t.unanswered()
		if n >= c.tries || !r.op.repeatable(t) {
			return nil, c.end(v, t, r, n)
		}
		wait = delay(n-1, t.retryAfter, c.random())
		if time.Now().Add(wait).After(end) || !c.budget.spend(t.reason == reasonTimeout) {
			return nil, c.end(v, t, r, n)
		}
		if err := c.sleep(ctx, wait); err != nil {
			return nil, c.end(v, t, r, n)
		}
	}
}

// end makes the error of a call. What is refused if nothing exists stays unclear
// for a caller that does not look.
func (c *Client) end(v verdict, t *tried, r request, tries int) error {
	if v == verdictLook {
		return &lookFirst{failure(verdictRefused, t, r.key, tries), failure(verdictUnclear, t, r.key, tries)}
	}
	return failure(v, t, r.key, tries)
}

// lookFirst is refused if a read by the key finds nothing, else unclear.
type lookFirst struct{ absent, unknown error }

func (e *lookFirst) Error() string { return e.unknown.Error() }

// unanswered reports whether the request may have been done although its answer
// does not say so.
func (t *tried) unanswered() bool {
	return t.sent && t.reason != reasonRedirect && (t.reason != "" || t.status == 408 ||
		t.status >= 500 && t.code() != CodeMethodUnavailable && t.code() != CodePayoutsHeld)
}

// maxAnswer bounds an answer: 200 payments with all they may hold.
const maxAnswer = 32 << 20

// try makes one request.
func (c *Client) try(ctx context.Context, r request, key string, waited time.Duration) *tried {
	began := time.Now()
	tryCtx, cancel := c.tryContext(ctx, &r)
	defer cancel()
	t := &tried{header: http.Header{}}
	c.exchange(tryCtx, r, key, t)
	if t.reason != "" && r.stream != nil && tryCtx.Err() != nil {
		t.reason = reasonTimeout
	}
	if t.reason != "" && ctx.Err() != nil {
		t.cause = ctx.Err()
		if errors.Is(t.cause, context.Canceled) {
			t.reason = reasonCancelled
		}
	}
	if c.onTry != nil {
		c.onTry(Try{r.op.method, r.op.path, t.status, t.reason, time.Since(began), t.header.Get("X-Request-Id"), waited})
	}
	return t
}

// tryContext ends with the time of a try. A stream takes as long as it takes, but no
// pause of it is longer than a try.
func (c *Client) tryContext(ctx context.Context, r *request) (context.Context, context.CancelFunc) {
	if r.stream == nil {
		return context.WithTimeout(ctx, c.tryTimeout+r.wait)
	}
	ctx, cancel := context.WithCancel(ctx)
	idle, read := time.AfterFunc(c.tryTimeout, cancel), r.stream
	r.stream = func(body io.Reader) error { return read(&idleReader{body, idle, c.tryTimeout}) }
	return ctx, func() { idle.Stop(); cancel() }
}

// idleReader limits how long one read may wait. What the caller does between two reads
// is its own time.
type idleReader struct {
	body io.Reader
	idle *time.Timer
	most time.Duration
}

func (r *idleReader) Read(b []byte) (int, error) {
	r.idle.Reset(r.most)
	defer r.idle.Stop()
	return r.body.Read(b)
}

func (c *Client) exchange(ctx context.Context, r request, key string, t *tried) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := c.request(ctx, r, key)
	if err != nil {
		t.reason = reasonConnection
		return
	}
	t.sent = true
	res, err := c.http.Do(req)
	if err != nil {
		t.reason = reasonOf(err)
		t.sent = connected.Load() || !unconnected(err)
		return
	}
	defer res.Body.Close()
	t.status, t.header = res.StatusCode, res.Header
	c.noteClock(res.Header)
	t.retryAfter = retryAfter(res.Header, time.Now())
	if r.stream != nil && res.StatusCode == http.StatusOK {
		if err := r.stream(res.Body); err != nil {
			t.reason, t.cause = reasonCut, err
		}
		return
	}
	t.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		if t.reason = reasonOf(err); t.reason != reasonTimeout {
			t.reason = reasonCut
		}
	case len(t.body) > maxAnswer:
		t.reason = reasonTooLarge
	case t.status >= 300 && t.status < 400:
		t.reason = reasonRedirect
	case t.status >= 400:
		// An answer that holds the API key repeats the request, as some proxies do. Its
		// texts would bring the key into logs.
		var p Problem
		if !bytes.Contains(t.body, []byte(key)) && json.Unmarshal(t.body, &p) == nil && p.Code != "" {
			t.problem = &p
		}
	case t.status != http.StatusNoContent && !r.op.answers(t.body):
		t.reason = reasonNotJSON
	}
}

// answers reports whether a body can be the answer to a call. JSON of something
// else, as a portal sends it, is no answer to a read: taken for an empty list, it
// would say that nothing exists.
func (op operation) answers(body []byte) bool {
	if op.method != http.MethodGet {
		return json.Valid(body)
	}
	var got struct {
		ID    string            `json:"id"`
		KeyID string            `json:"key_id"`
		Items []json.RawMessage `json:"items"`
	}
	err := json.Unmarshal(body, &got)
	switch {
	case err != nil:
		return false
	case strings.HasSuffix(op.path, "}"):
		return got.ID != ""
	case op == opGetMe:
		return got.KeyID != ""
	}
	return got.Items != nil
}

// request renders a try.
func (c *Client) request(ctx context.Context, r request, key string) (*http.Request, error) {
	path := r.op.path
	for _, p := range r.params {
		begin, end := strings.Index(path, "{"), strings.Index(path, "}")
		path = path[:begin] + url.PathEscape(p) + path[end+1:]
	}
	address := c.base + path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.op.method, address, body)
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // the transport repeats nothing by itself
	req.Header.Set("X-Api-Key", key)
	req.Header.Set("User-Agent", "till-sdk-go/"+Version+" (api "+APIVersion+")")
	req.Header.Set("Accept", "application/json")
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// reasonOf puts an error of the network into one word: its text may name
// addresses.
func reasonOf(err error) string {
	var (
		timeout   net.Error
		dns       *net.DNSError
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return reasonTimeout
	case errors.Is(err, context.Canceled):
		return reasonCancelled
	case errors.As(err, &verify), errors.As(err, &authority):
		return reasonCertificate
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &dns):
		return reasonUnreachable
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return reasonReset
	}
	return reasonConnection
}

// unconnected reports whether an error proves that there was no connection, so
// that not one byte was written. Whatever else a transport says proves nothing.
func unconnected(err error) bool {
	var (
		op     *net.OpError
		dns    *net.DNSError
		verify *tls.CertificateVerificationError
	)
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") || errors.As(err, &dns) || errors.As(err, &verify)
}

// maxRetryAfter bounds what a header can ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads the header, in seconds or as a date. A date is held against
// the date of the answer, so that a wrong clock of ours does not matter.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	var d time.Duration
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			now = date
		}
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

func (c *Client) noteClock(h http.Header) {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		c.skew.Store(int64(time.Until(date).Round(time.Second) / time.Second))
		c.skewKnown.Store(true)
	}
}

// read makes a call and decodes its answer.
func read[A any](ctx context.Context, c *Client, r request) (*A, error) {
	t, err := c.call(ctx, r)
	if err != nil {
		return nil, plain(err)
	}
	return decode[A](t, r)
}

func decode[A any](t *tried, r request) (*A, error) {
	var a A
	if err := json.Unmarshal(t.body, &a); err != nil {
		t.reason = reasonNotJSON
		return nil, failure(judge(r.op, t, true), t, r.key, 1)
	}
	return &a, nil
}

// plain turns the error of a caller that cannot look into an unclear one.
func plain(err error) error {
	var look *lookFirst
	if errors.As(err, &look) {
		return look.unknown
	}
	return err
}

// render writes a body.
func render(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
