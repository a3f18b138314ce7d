package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"till/internal/seal"
	"till/store"
)

// The limits of ACME.
const (
	maxHosts   = 20
	maxAnswer  = 1 << 20 // bytes of an authority's answer
	answerTime = 30 * time.Second
	// warnInterval is how often the log repeats that a certificate is not renewed.
	warnInterval = time.Hour
)

// ACMEConfig says which certificates are obtained from where.
type ACMEConfig struct {
	Hosts     []string // the names, one certificate each
	Directory string   // the authority's address; "" means Let's Encrypt
	Email     string   // where the authority writes to; may be ""
}

// DefaultDirectory is Let's Encrypt's.
const DefaultDirectory = acme.LetsEncryptURL

// validHost is the form of a name that authorities certify. It has a dot.
var validHost = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$`)

// Validate says what is wrong with the configuration.
func (c *ACMEConfig) Validate() error {
	if len(c.Hosts) > maxHosts {
		return fmt.Errorf("--acme-host stands here more than %d times", maxHosts)
	}
	for i, h := range c.Hosts {
		if !validHost.MatchString(h) || len(h) > 253 || slices.Contains(c.Hosts[:i], h) {
			return fmt.Errorf("--acme-host %q is not a name such as pay.example.com, in small letters, or stands here twice", h)
		}
	}
	u, err := url.Parse(c.Directory)
	if c.Directory != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname()))) {
		return errors.New("--acme-directory must be an address such as https://acme-v02.api.letsencrypt.org/directory")
	}
	if c.Email != "" && (!strings.Contains(c.Email, "@") || strings.ContainsAny(c.Email, " ,\r\n\t?")) {
		return errors.New("--acme-email is not an e-mail address")
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// ACME obtains certificates from a certificate authority.
type ACME struct {
	manager *autocert.Manager
	cache   *cache
	hosts   []string
	log     *slog.Logger

	mu     sync.Mutex
	leaves map[string]*x509.Certificate // by host, as last seen
	warned map[string]time.Time
}

// NewACME returns the certificates of a configuration. It connects to nobody yet.
func NewACME(c ACMEConfig, s *store.Store, ring *seal.Ring, log *slog.Logger) (*ACME, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	kept, err := newCache(s, ring, log)
	if err != nil {
		return nil, err
	}
	if c.Directory == "" {
		c.Directory = DefaultDirectory
	}
	a := &ACME{cache: kept, hosts: c.Hosts, log: log, leaves: map[string]*x509.Certificate{}, warned: map[string]time.Time{}}
	a.manager = &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: kept, HostPolicy: autocert.HostWhitelist(c.Hosts...), Email: c.Email,
		Client: &acme.Client{DirectoryURL: c.Directory, HTTPClient: authorityClient(), UserAgent: "till"},
	}
	return a, nil
}

// authorityClient calls the authority that the command line names, and no other address.
func authorityClient() *http.Client {
	return &http.Client{
		Timeout:       answerTime,
		Transport:     boundedAnswers{&http.Transport{ForceAttemptHTTP2: true, TLSHandshakeTimeout: answerTime, IdleConnTimeout: time.Minute}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// boundedAnswers ends answers that are too long.
type boundedAnswers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

// Protocol is what a certificate authority asks for in a handshake, beside HTTP.
const Protocol = acme.ALPNProto

// HTTPHandler answers the authority's challenges over plain HTTP, and hands everything
// else on. Without it, challenges are answered in TLS handshakes only.
func (a *ACME) HTTPHandler(next http.Handler) http.Handler { return a.manager.HTTPHandler(next) }

// GetCertificate implements Source.
func (a *ACME) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return a.manager.GetCertificate(hello)
}

// Look implements Source. It orders what is missing, so that no client waits for it, and
// says in the log what was not renewed, which autocert does not.
func (a *ACME) Look(ctx context.Context, now bool) {
	if now {
		if err := a.cache.retry(ctx); err != nil {
			a.log.Warn("certificate orders not reset", "error", err)
		}
	}
	for _, host := range a.hosts {
		if ctx.Err() == nil {
			a.look(ctx, host)
		}
	}
}

func (a *ACME) look(ctx context.Context, host string) {
	type result struct {
		cert *tls.Certificate
		err  error
	}
	done := make(chan result, 1)
	go func() { // autocert knows no context: a stop does not wait for it
		cert, err := a.manager.GetCertificate(modernHello(host))
		done <- result{cert, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		return
	}
	if r.err != nil {
		if !errors.Is(r.err, errWait) {
			a.log.Warn("certificate not obtained", "host", host, "error", r.err)
		}
		return
	}
	leaf := r.cert.Leaf
	a.mu.Lock()
	defer a.mu.Unlock()
	if seen := a.leaves[host]; seen == nil || !seen.Equal(leaf) {
		a.leaves[host] = leaf
		a.log.Info("certificate taken", "host", host, "expires", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	// It is renewed when a third of its life is left.
	if left := time.Until(leaf.NotAfter); left < leaf.NotAfter.Sub(leaf.NotBefore)/6 && time.Since(a.warned[host]) > warnInterval {
		a.warned[host] = time.Now()
		a.log.Warn("certificate not renewed", "host", host, "expires", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
}

// modernHello is a client like most: one that accepts ECDSA.
func modernHello(host string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{ServerName: host, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}
}

// Validity implements Source.
func (a *ACME) Validity() (begins, ends time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range a.hosts {
		leaf := a.leaves[h]
		if leaf == nil {
			return time.Time{}, time.Time{}
		}
		if ends.IsZero() || leaf.NotAfter.Before(ends) {
			begins, ends = leaf.NotBefore, leaf.NotAfter
		}
	}
	return begins, ends
}

// Name implements Source.
func (a *ACME) Name() string { return "acme" }
