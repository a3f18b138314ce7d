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

// userAgent is sent with every call. MTN's gateway rejects the names of some libraries.
const userAgent = "till"

// Client makes the calls of one connection.
type Client struct{ http *http.Client }

// The time limits of a call. A caller's context is usually shorter; these limits end a call
// without one.
const (
	dialTimeout = 10 * time.Second
	callTimeout = 45 * time.Second // MTN takes up to 20 s for a token
	// idleTimeout is shorter than operators' gateways keep an idle connection. A request on
	// a connection that they have just closed is lost, and its outcome unknown.
	idleTimeout = 30 * time.Second
)

// defaultConns is how many connections are kept by default.
const defaultConns = 64

// NewClient returns a client that keeps at most conns connections.
//
// It uses HTTP/1.1 only, where a connection that dies loses one answer. In HTTP/2 all calls
// share one connection, and its death is not noticed for minutes.
func NewClient(conns int) *Client { return ClientOf(provider.Deps{Conns: conns}) }

// ClientOf is NewClient for an adapter's dependencies.
func ClientOf(d provider.Deps) *Client {
	conns, dial, proxy := d.Conns, d.Dial, http.ProxyFromEnvironment
	if conns <= 0 {
		conns = defaultConns
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	} else {
		proxy = nil
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &Client{&http.Client{
		Transport: &http.Transport{
			Proxy:                  proxy,
			DialContext:            dial,
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

// ClientWithTransport returns a client with another transport, to measure an adapter
// without a network.
func ClientWithTransport(rt http.RoundTripper) *Client { return &Client{&http.Client{Transport: rt}} }

// Close closes the idle connections.
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
	return c.DoUpTo(ctx, MaxAnswer, method, address, header, body)
}

// DoUpTo is Do for an answer that may have so many bytes.
func (c *Client) DoUpTo(ctx context.Context, most int, method, address string, header http.Header, body []byte) (*Reply, error) {
	// Before GotConn nothing can have been written. After it, something may have been sent.
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
	// net/http repeats a request by itself if a kept connection is dead and the request can
	// be repeated: a GET, or a POST with an Idempotency-Key header. Without GetBody, it
	// does not repeat a request with a body. A POST without a body is not repeated either,
	// as long as there is no Idempotency-Key header.
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
	text, err := io.ReadAll(io.LimitReader(res.Body, int64(most)+1))
	if err != nil {
		return nil, withoutURL(err)
	}
	if len(text) > most {
		return nil, fmt.Errorf("the answer is longer than %d bytes", most)
	}
	return &Reply{res.StatusCode, res.Header, text}, nil
}

// withoutURL removes the address from an error of net/http.
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
