package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxRetryAfter is the longest pause that an endpoint may request: the longest pause of
// retryDelays.
const maxRetryAfter = 24 * time.Hour

// maxResponseBody is how many bytes of a response are kept for people to read.
const maxResponseBody = 1 << 10

// Response is the result of one attempt.
type Response struct {
	Status     int           // of HTTP; 0 if there was no answer
	Body       string        // the beginning of it, at most MaxResponseBody bytes of printable text
	Took       time.Duration // the whole attempt
	RetryAfter time.Duration // how long the endpoint asks us to wait, at most MaxRetryAfter; 0 if it does not
	Problem    string        // "" or one of the problems below
}

// The problems of an attempt, for machines. A status other than 2xx is no problem: it is an
// answer.
const (
	ProblemTimeout        = "timeout"         // no complete answer within the deadline
	ProblemDNS            = "dns"             // the name does not resolve
	ProblemConnect        = "connect"         // nothing listens, or there is no route
	ProblemTLS            = "tls"             // no TLS, or a certificate that is not valid for the name
	ProblemReset          = "reset"           // the connection or the stream ended before the answer did
	ProblemMalformed      = "malformed"       // the answer is not HTTP, or its headers are too large
	ProblemRedirect       = "redirect"        // the answer is 3xx; redirects are not followed
	ProblemAddressRefused = "address_refused" // the guard refused the address
	ProblemCancelled      = "cancelled"       // the caller cancelled; says nothing about the endpoint
)

// Delivered reports whether the endpoint accepted the event: a complete 2xx answer.
func (a Response) Delivered() bool { return a.Status >= 200 && a.Status <= 299 && a.Problem == "" }

// gone reports whether the endpoint says that it wants no more events.
func (a Response) gone() bool { return a.Status == http.StatusGone }

// problemOf returns the problem of a failed exchange.
func problemOf(ctx context.Context, err error) string {
	var (
		dns     *net.DNSError
		op      *net.OpError
		timeout net.Error
	)
	switch {
	case errors.Is(err, errAddressRefused):
		return ProblemAddressRefused
	case errors.As(err, &dns):
		return ProblemDNS
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return ProblemTimeout
	case errors.Is(err, errProxy), errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"):
		return ProblemConnect
	case isTLSError(err):
		return ProblemTLS
	case strings.Contains(err.Error(), "malformed"), strings.Contains(err.Error(), "server response headers exceeded"),
		strings.Contains(err.Error(), "response header list larger"):
		return ProblemMalformed // net/http has texts for it, but no types
	}
	return ProblemReset
}

// errProxy says that the proxy refused to connect.
var errProxy = errors.New("the proxy does not connect")

func isTLSError(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
		unknown     x509.UnknownAuthorityError
		name        x509.HostnameError
	)
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &alert) ||
		errors.As(err, &unknown) || errors.As(err, &name) ||
		strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "HTTP response to HTTPS client")
}

// retryAfter reads the Retry-After header: seconds, or a date.
func retryAfter(text string, now time.Time) time.Duration {
	var d time.Duration
	switch at, err := http.ParseTime(text); {
	case text == "":
		return 0
	case strings.Trim(text, "0123456789") == "":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n > int64(maxRetryAfter/time.Second) { // more digits than fit are more seconds than allowed
			return maxRetryAfter
		}
		d = time.Duration(n) * time.Second
	case err == nil:
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}

// cleanText returns the beginning of a response as text that is safe to store and to show:
// printable UTF-8, at most MaxResponseBody bytes. It returns "" for binary data, which has
// a zero byte.
func cleanText(b []byte) string {
	if len(b) > maxResponseBody {
		b = b[:maxResponseBody]
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return ""
	}
	return strings.TrimSpace(string(bytes.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == utf8.RuneError, !unicode.IsPrint(r):
			return -1
		}
		return r
	}, b)))
}
