package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// The limits of one attempt and of idle connections.
const (
	defaultTimeout  = 15 * time.Second // the whole exchange, from the DNS query to the last byte
	connectTimeout  = 10 * time.Second // of that, for a connection; the next attempt may use it
	checkTimeout    = 2 * time.Second  // for the DNS query at registration
	maxReply        = 4 << 10          // bytes read of a response
	maxReplyHeader  = 16 << 10
	maxIdlePerHost  = 64
	maxIdle         = 1024
	idleTimeout     = 60 * time.Second
	streamBuffer    = 64 << 10 // what one HTTP/2 response may make us buffer
	connBuffer      = 1 << 20
	pingAfter       = 15 * time.Second // then a silent HTTP/2 connection is pinged
	pingTimeout     = 5 * time.Second
	defaultUserName = "Till-Webhooks/1"
)

// SenderConfig configures a Sender. The zero value sends to the Internet only.
type SenderConfig struct {
	Allow     Allowed
	Timeout   time.Duration  // of one Post; 0 means 15 s
	Resolver  *net.Resolver  // nil means the system's
	Roots     *x509.CertPool // issuers of certificates; nil means the system's
	UserAgent string         // "" means Till-Webhooks/1

	// Proxy is the proxy from ParseProxy; nil means to connect directly. The environment's
	// proxy variables are not read.
	Proxy *url.URL

	// Dial replaces the guarded dialer, for a network in memory. It gets the host of the
	// URL, unresolved.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Sender posts to endpoints over one pool of connections. It is safe for concurrent use.
type Sender struct {
	guard     guard
	timeout   time.Duration
	resolver  *net.Resolver
	dialer    *net.Dialer
	transport *http.Transport
	agent     []string
	proxied   bool
	resolved  resolvedHosts
}

// NewSender returns a Sender. Close closes its connections.
func NewSender(c SenderConfig) *Sender {
	s := &Sender{guard: newGuard(c.Allow), timeout: c.Timeout, resolver: c.Resolver, agent: []string{c.UserAgent}}
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	if s.resolver == nil {
		s.resolver = net.DefaultResolver
	}
	if c.UserAgent == "" {
		s.agent[0] = defaultUserName
	}
	s.dialer = &net.Dialer{Timeout: connectTimeout, Resolver: s.resolver, ControlContext: s.guard.control}
	dial := s.dial
	if c.Dial != nil {
		dial = c.Dial
	}
	s.transport = &http.Transport{
		Proxy:                  nil, // the environment's variables would bypass the guard
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
		TLSHandshakeTimeout:    connectTimeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxReplyHeader,
		DisableCompression:     true, // a small response must not expand into a large one
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream:     streamBuffer,
			MaxReceiveBufferPerConnection: connBuffer,
			SendPingTimeout:               pingAfter,
			PingTimeout:                   pingTimeout,
		},
	}
	if c.Proxy != nil {
		s.useProxy(c.Proxy)
	}
	return s
}

// useProxy sends everything through a proxy, which may be on a private network. Post and
// the proxy itself check the address behind it.
func (s *Sender) useProxy(proxy *url.URL) {
	s.proxied = true
	s.dialer.ControlContext = nil
	s.transport.DialContext = s.dialer.DialContext
	s.transport.Proxy = http.ProxyURL(proxy)
	s.transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
		if res.StatusCode != http.StatusOK {
			return errProxy
		}
		return nil
	}
}

// Close closes the idle connections.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// dial connects to a host unless one of its addresses is forbidden. The name is resolved
// twice: here, to check all addresses, and by the dialer, which tries them in a good order.
// If the second answer differs, control checks it.
func (s *Sender) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if err := s.check(ctx, host); err != nil {
		return nil, err
	}
	conn, err := s.dialer.DialContext(ctx, network, addr)
	if err == nil {
		s.resolved.remember(host, conn)
	}
	return conn, err
}

// check rejects a host if any of its addresses is in a forbidden network. An attacker may
// mix allowed and forbidden addresses.
func (s *Sender) check(ctx context.Context, host string) error {
	addrs := make([]netip.Addr, 1)
	var err error
	if addrs[0], err = netip.ParseAddr(host); err != nil {
		if addrs, err = s.resolver.LookupNetIP(ctx, "ip", host); err != nil {
			return err
		}
	}
	for _, a := range addrs {
		if !s.guard.permits(a) {
			return errAddressRefused
		}
	}
	return nil
}

// checkHost resolves the name in an address that CheckURL accepted and rejects it if any
// address is forbidden. It accepts a name that does not resolve yet, because each
// connection is checked anyway.
func (s *Sender) checkHost(ctx context.Context, raw string) error {
	u, err := parseURL(raw, s.guard.allow)
	if err != nil {
		return err
	}
	lookup, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := s.check(lookup, u.Hostname()); errors.Is(err, errAddressRefused) {
		return forbiddenHost()
	}
	return ctx.Err()
}

// Post makes one attempt to deliver body with the headers of Sign. It returns within the
// timeout and follows no redirect.
func (s *Sender) Post(ctx context.Context, rawURL string, header http.Header, body []byte) Response {
	start := time.Now()
	attempt, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	a := s.post(attempt, rawURL, header, body)
	if a.Problem != "" && ctx.Err() == context.Canceled {
		a.Problem = ProblemCancelled // the caller cancelled; the endpoint is not to blame
	}
	a.Took = time.Since(start)
	return a
}

func (s *Sender) post(ctx context.Context, rawURL string, header http.Header, body []byte) Response {
	u, err := parseURL(rawURL, s.guard.allow)
	if err != nil {
		return Response{Problem: ProblemAddressRefused}
	}
	if s.proxied {
		if err := s.check(ctx, u.Hostname()); err != nil {
			return Response{Problem: problemOf(ctx, err)}
		}
	}
	res, err := s.transport.RoundTrip(s.request(ctx, u, header, body))
	if err != nil {
		return Response{Problem: problemOf(ctx, err)}
	}
	defer res.Body.Close()
	a := Response{Status: res.StatusCode}
	if !a.Delivered() {
		a.RetryAfter = retryAfter(res.Header.Get("Retry-After"), time.Now())
	}
	if a.Status >= 300 && a.Status <= 399 {
		a.Problem = ProblemRedirect
	}
	if a.Status == http.StatusSwitchingProtocols {
		a.Problem = ProblemMalformed // its body has no end
		return a
	}
	// Read to the end, so that the connection can be used again. A longer body is cut off,
	// and its connection closed.
	if res.Body == http.NoBody {
		return a
	}
	reply, err := io.ReadAll(io.LimitReader(res.Body, maxReply+1))
	a.Body = cleanText(reply)
	if err != nil && a.Problem == "" && len(reply) <= maxReply {
		// The endpoint began to answer and did not finish. It may have failed half-way, and
		// a second delivery does no harm.
		a.Problem = problemOf(ctx, err)
	}
	return a
}

// request builds the request by hand, because an http.Client would follow redirects and
// keep cookies.
func (s *Sender) request(ctx context.Context, u *url.URL, header http.Header, body []byte) *http.Request {
	h := make(http.Header, len(header)+3)
	for k, v := range header {
		h[k] = v
	}
	h["User-Agent"] = s.agent
	h["Content-Type"] = jsonType
	// This tells the transport, not the endpoint, that it may repeat the request if a kept
	// connection turns out to be closed.
	h["Idempotency-Key"] = nil
	r := &http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: int64(len(body)),
		Body:          http.NoBody,
	}
	if len(body) > 0 {
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
	}
	return r.WithContext(ctx)
}

var jsonType = []string{"application/json"}
