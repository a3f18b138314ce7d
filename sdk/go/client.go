package till

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Client makes calls. It is safe for use by many goroutines; one per program is
// enough.
type Client struct {
	Payments       *Payments
	Payouts        *Payouts
	Refunds        *Refunds
	Checkouts      *Checkouts
	Links          *Links
	Events         *Events
	Webhooks       *WebhookEndpoints
	PaymentMethods *PaymentMethods
	Wallets        *Wallets
	Transactions   *Transactions
	APIKeys        *APIKeys
	Sandbox        *Sandbox

	base       string
	key        KeySource
	expect     string
	http       *http.Client
	deadline   time.Duration // of a call
	tryTimeout time.Duration
	tries      int
	onTry      func(Try)
	plain      bool // http:// to other machines
	budget     budget
	skew       atomic.Int64 // how far the service's clock is ahead of ours, in seconds
	skewKnown  atomic.Bool
	noLongPoll atomic.Bool // the service reads a payment at once only

	sleep  func(context.Context, time.Duration) error
	random func() float64
}

// KeySource returns the API key. It is asked for each call, so that a new key
// needs no restart, and once more after a 401.
type KeySource func(ctx context.Context) (string, error)

// Key is a key that stays.
func Key(key string) KeySource { return func(context.Context) (string, error) { return key, nil } }

// KeyFromEnv is the key in a variable of the environment.
func KeyFromEnv(name string) KeySource {
	return func(context.Context) (string, error) { return os.Getenv(name), nil }
}

// Option changes a Client.
type Option func(*Client)

// WithDeadline sets how long a call may take in all, 30 s otherwise.
func WithDeadline(d time.Duration) Option { return func(c *Client) { c.deadline = d } }

// WithTryTimeout sets how long one request may take, 10 s otherwise.
func WithTryTimeout(d time.Duration) Option { return func(c *Client) { c.tryTimeout = d } }

// WithTries sets how many requests one call may make, 5 otherwise.
func WithTries(n int) Option { return func(c *Client) { c.tries = n } }

// WithTransport sets what carries the requests.
func WithTransport(t http.RoundTripper) Option { return func(c *Client) { c.http.Transport = t } }

// WithPlainHTTP allows http:// to other machines, where anybody can read the key.
func WithPlainHTTP() Option { return func(c *Client) { c.plain = true } }

// WithExpect refuses keys of the other mode: "live" in production, "test"
// elsewhere.
func WithExpect(mode string) Option { return func(c *Client) { c.expect = mode } }

// WithOnTry calls f with every request, for measurements. Nothing is logged
// otherwise.
func WithOnTry(f func(Try)) Option { return func(c *Client) { c.onTry = f } }

const (
	defaultDeadline   = 30 * time.Second
	defaultTryTimeout = 10 * time.Second
	defaultTries      = 5
	connectTimeout    = 5 * time.Second
)

// New returns a client for the base address that you were given with your key;
// it ends in /v1.
func New(baseURL string, key KeySource, options ...Option) (*Client, error) {
	c := &Client{
		base: strings.TrimRight(baseURL, "/"), key: key, deadline: defaultDeadline, tryTimeout: defaultTryTimeout, tries: defaultTries,
		http: &http.Client{
			Transport: &http.Transport{
				Proxy:             http.ProxyFromEnvironment,
				DialContext:       (&net.Dialer{Timeout: connectTimeout}).DialContext,
				ForceAttemptHTTP2: true, TLSHandshakeTimeout: connectTimeout,
				MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		sleep: sleep, random: random,
	}
	c.budget.tokens = maxTokens
	for _, option := range options {
		option(c)
	}
	if key == nil {
		return nil, ErrNoKey
	}
	u, err := url.Parse(c.base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, ErrBaseURL
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && (c.plain || loopback(u.Hostname()))) {
		return nil, ErrBaseURL
	}
	if c.deadline <= 0 || c.tryTimeout <= 0 || c.tries < 1 {
		return nil, errors.New("till: a deadline and the tries are more than nothing")
	}
	if c.expect != "" && c.expect != "live" && c.expect != "test" {
		return nil, errors.New(`till: what is expected is "live" or "test"`)
	}
	c.Payments, c.Payouts, c.Refunds, c.Checkouts, c.Links = &Payments{c}, &Payouts{c}, &Refunds{c}, &Checkouts{c}, &Links{c}
	c.Events, c.Webhooks = &Events{c}, &WebhookEndpoints{c}
	c.PaymentMethods, c.Wallets, c.Transactions = &PaymentMethods{c}, &Wallets{c}, &Transactions{c}
	c.APIKeys, c.Sandbox = &APIKeys{c}, &Sandbox{c}
	return c, nil
}

// Me tells whose key this is, what it may do, and where the service is reached.
func (c *Client) Me(ctx context.Context) (*Me, error) {
	return read[Me](ctx, c, request{op: opGetMe})
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// apiKey asks for the key, and refuses one that cannot be right.
func (c *Client) apiKey(ctx context.Context) (string, error) {
	key, err := c.key(ctx)
	if err != nil {
		return "", err
	}
	if key == "" {
		return "", ErrNoKey
	}
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return "", ErrBadKey
		}
	}
	if c.expect != "" && !strings.HasPrefix(key, "till_"+c.expect+"_") {
		return "", ErrWrongMode
	}
	return key, nil
}

// ClockSkew tells how far the service's clock is ahead of this machine's, as far
// as an answer has told.
func (c *Client) ClockSkew() (time.Duration, bool) {
	return time.Duration(c.skew.Load()) * time.Second, c.skewKnown.Load()
}

// The budget of repeats: when a service is ill, clients that all try five times
// keep it so.
const (
	maxTokens    = 100
	repeatCost   = 5
	timeoutCost  = 10
	successGives = 1
)

type budget struct {
	sync.Mutex
	tokens int
}

// spend takes what a repeat costs, and reports whether there was enough.
func (b *budget) spend(timeout bool) bool {
	cost := repeatCost
	if timeout {
		cost = timeoutCost
	}
	b.Lock()
	defer b.Unlock()
	if b.tokens < cost {
		return false
	}
	b.tokens -= cost
	return true
}

func (b *budget) success() {
	b.Lock()
	defer b.Unlock()
	b.tokens = min(maxTokens, b.tokens+successGives)
}

// sleep waits, or returns why not.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
