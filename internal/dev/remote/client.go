package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"till"
)

// The limits of a call.
const (
	maxBody    = 32 << 20         // bytes of an answer that are read
	maxTries   = 5                // of one call
	tryTimeout = 15 * time.Second // of one try, beside what the service is asked to wait
	firstDelay = 250 * time.Millisecond
	maxDelay   = 5 * time.Second
)

// Client calls the service at one address with one key.
type Client struct {
	base string
	key  string
	http *http.Client
}

// New returns a client of a service. The address ends in /v1, as the SDKs have it.
func New(base, key string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%q is no address of a service, such as http://127.0.0.1:8080/v1", base)
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the API key is no key: it looks like till_test_…")
	}
	return &Client{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Base returns the address of the service.
func (c *Client) Base() string { return c.base }

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get reads a path into out. The service is asked to wait at most so long: see the wait
// parameter of the path.
func (c *Client) Get(ctx context.Context, path string, wait time.Duration, out any) error {
	return c.call(ctx, http.MethodGet, path, nil, wait, out)
}

// Post sends a body and reads the answer into out. The same bytes may be sent several times,
// so the body has an idempotency key, or the call changes nothing the second time.
func (c *Client) Post(ctx context.Context, path string, body []byte, out any) error {
	return c.call(ctx, http.MethodPost, path, body, 0, out)
}

// call repeats a try after a failure that may pass.
func (c *Client) call(ctx context.Context, method, path string, body []byte, wait time.Duration, out any) error {
	delay := firstDelay
	for n := 1; ; n++ {
		err := c.try(ctx, method, path, body, wait, out)
		var passing *passingError
		if !errors.As(err, &passing) || ctx.Err() != nil {
			return err
		}
		if n == maxTries {
			return passing.error
		}
		timer := time.NewTimer(min(max(delay, passing.after), maxDelay))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		delay *= 2
	}
}

// passingError is a failure after which the same call may succeed.
type passingError struct {
	error
	after time.Duration // what the service asks to wait
}

func (e *passingError) Unwrap() error { return e.error }

func (c *Client) try(ctx context.Context, method, path string, body []byte, wait time.Duration, out any) error {
	attempt, cancel := context.WithTimeout(ctx, tryTimeout+wait)
	defer cancel()
	r, err := http.NewRequestWithContext(attempt, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("X-Api-Key", c.key)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &passingError{error: c.unreachable(err)}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &passingError{error: c.unreachable(err)}
	case len(text) > maxBody:
		return fmt.Errorf("%s %s: the answer has more than %d bytes", method, path, maxBody)
	case res.StatusCode < 200 || res.StatusCode > 299:
		return c.refused(res, text)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return &passingError{error: fmt.Errorf("the answer of %s is not Till's: %w", c.base, err)}
	}
	return nil
}

// unreachable says which service does not answer; the path may hold ids only.
func (c *Client) unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("the service at %s does not answer: %w", c.base, err)
}

// refused returns the error of an answer that is no success.
func (c *Client) refused(res *http.Response, text []byte) error {
	var p struct {
		Code   string `json:"code"`
		Detail string `json:"detail"`
		Errors []struct {
			Pointer string `json:"pointer"`
			Code    string `json:"code"`
			Detail  string `json:"detail"`
		} `json:"errors"`
	}
	var err error
	if json.Unmarshal(text, &p) != nil || p.Code == "" {
		err = fmt.Errorf("the service at %s answers %d, and not as Till does: is the address right? It ends in /v1", c.base, res.StatusCode)
	} else {
		e := &till.Error{Code: till.Code(p.Code), Detail: p.Detail}
		for _, f := range p.Errors {
			e.Fields = append(e.Fields, till.FieldError{Pointer: f.Pointer, Code: till.Code(f.Code), Detail: f.Detail})
		}
		err = e
	}
	switch res.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return &passingError{err, time.Duration(max(seconds, 0)) * time.Second}
	}
	return err
}
