package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"till/provider"
)

// MaxAnswer is the longest answer in bytes. A longer one is an error.
const MaxAnswer = 64 << 10

// userAgent is sent with every call. MTN's gateway refuses the names of some libraries.
const userAgent = "till"

// Client makes the calls of one connection.
type Client struct{ http *http.Client }

// How long the parts of a call may take. A caller's context is shorter; these
// limits end a call without one.
const (
	dialTimeout = 10 * time.Second
	callTimeout = 45 * time.Second // a token of MTN's takes up to 20 s
	// idleTimeout is shorter than operators' gateways keep a quiet connection:
	// a request on one that they have just closed is lost, and its payment unclear.
	idleTimeout = 30 * time.Second
)

// defaultConns is how many connections are kept unless somebody says.
const defaultConns = 64

// NewClient returns a client that keeps at most conns connections.
//
// It speaks HTTP/1.1 only: there a connection that dies takes one answer with
// it. In HTTP/2 all calls share one, and a dead one is not noticed for minutes.
func NewClient(conns int) *Client {
	if conns <= 0 {
		conns = defaultConns
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &Client{&http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
			Protocols:              &protocols,
			MaxConnsPerHost:        conns,
			MaxIdleConnsPerHost:    conns,
			IdleConnTimeout:        idleTimeout,
			TLSHandshakeTimeout:    dialTimeout,
			MaxResponseHeaderBytes: MaxAnswer,
			DisableCompression:     true, // an answer of a few hundred bytes
		},
		Timeout:       callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ClientWithTransport returns a client that makes its calls by another transport: for those
// who measure an adapter without a network.
func ClientWithTransport(rt http.RoundTripper) *Client { return &Client{&http.Client{Transport: rt}} }

// Close closes the connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Reply is an operator's answer, whatever it says.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do makes one call and reads the whole answer. An error means that the outcome
// is unknown, unless it is provider.ErrNotSent: then no byte was sent. An error
// never contains the URL, which may contain a secret.
func (c *Client) Do(ctx context.Context, method, address string, header http.Header, body []byte) (*Reply, error) {
	// Before GotConn nothing can have been written; after it, something may have.
	// Whether bytes have left a buffer cannot be known.
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), method, address, r)
	if err != nil {
		return nil, fmt.Errorf("%w: the address is not one", provider.ErrNotSent)
	}
	// The standard library repeats a request by itself if a kept connection turns
	// out to be dead and the request can be repeated: a GET, or a POST under an
	// idempotency key. A body that cannot be read twice forbids that; a POST
	// without a body is not repeated either, as long as no header is called
	// Idempotency-Key.
	req.GetBody = nil
	for name, values := range header {
		req.Header[name] = values
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", userAgent)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if !connected.Load() {
			return nil, fmt.Errorf("%w: %w", provider.ErrNotSent, withoutURL(err))
		}
		return nil, withoutURL(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, MaxAnswer+1))
	if err != nil {
		return nil, withoutURL(err)
	}
	if len(text) > MaxAnswer {
		return nil, fmt.Errorf("the answer is longer than %d bytes", MaxAnswer)
	}
	return &Reply{res.StatusCode, res.Header, text}, nil
}

// withoutURL strips the address from an error of net/http.
func withoutURL(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return context.DeadlineExceeded
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}
