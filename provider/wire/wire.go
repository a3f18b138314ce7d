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
	"sync/atomic"
	"time"

	"till/provider"
)

// MaxAnswer is how much of an operator's answer is read. A longer one is
// nothing that an operator says.
const MaxAnswer = 64 << 10

// userAgent names us. MTN's gateway refuses the names of some libraries.
const userAgent = "till"

// Client makes the calls of one connection.
type Client struct{ http *http.Client }

// NewClient returns a client that keeps at most conns connections.
func NewClient(conns int) *Client {
	if conns <= 0 {
		conns = 64
	}
	return &Client{&http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			MaxConnsPerHost:     conns,
			MaxIdleConnsPerHost: conns,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
			DisableCompression:  true, // an answer of a few hundred bytes
			ForceAttemptHTTP2:   true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Reply is an operator's answer, whatever it says.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do makes one call and reads the answer to its end. An error means that we
// do not know what became of it, unless it is provider.ErrNotSent: then not one
// byte has left. It never holds the address, which may hold a secret.
func (c *Client) Do(ctx context.Context, method, url string, header http.Header, body []byte) (*Reply, error) {
	var wrote atomic.Bool
	trace := &httptrace.ClientTrace{
		GotConn:          func(httptrace.GotConnInfo) { wrote.Store(true) },
		WroteHeaderField: func(string, []string) { wrote.Store(true) },
	}
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), method, url, r)
	if err != nil {
		return nil, fmt.Errorf("%w: the address is not one", provider.ErrNotSent)
	}
	// The standard library repeats a request by itself if a kept connection turns
	// out to be dead; a body that cannot be read twice forbids that.
	req.GetBody = nil
	for name, values := range header {
		req.Header[name] = values
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", userAgent)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if !wrote.Load() {
			return nil, fmt.Errorf("%w: %w", provider.ErrNotSent, cause(err))
		}
		return nil, cause(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, MaxAnswer+1))
	if err != nil {
		return nil, cause(err)
	}
	if len(text) > MaxAnswer {
		return nil, fmt.Errorf("the answer is longer than %d bytes", MaxAnswer)
	}
	return &Reply{res.StatusCode, res.Header, text}, nil
}

// cause strips the address from an error of net/http.
func cause(err error) error {
	type unwrapper interface{ Unwrap() error }
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return context.DeadlineExceeded
	}
	if u, ok := err.(unwrapper); ok && u.Unwrap() != nil {
		return u.Unwrap()
	}
	return errors.New("the call failed")
}
