package server

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"till/config"
	"till/operators"
)

// A start that others reach by HTTPS, and that names no proxy, tells once that there is one.
func TestAProxyThatIsNotNamedIsToldOnce(t *testing.T) {
	t.Parallel()
	named := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		about, base string
		trusted     []netip.Prefix
		tls         string
		forwarded   bool
		told        int
	}{
		{"a proxy that is not named", "https://pay.example.com/v1", nil, "", true, 1},
		{"a proxy that says nothing", "https://pay.example.com/v1", nil, "", false, 0},
		{"a proxy that is named", "https://pay.example.com/v1", named, "", true, 0},
		{"no proxy: a client's own words", "http://127.0.0.1:8080/v1", nil, "", true, 0},
		{"TLS of our own", "https://pay.example.com/v1", nil, "cert.pem", true, 0},
	} {
		var log bytes.Buffer
		s := &Server{c: Config{TLSCert: c.tls}, baseURL: c.base, operators: &operators.Operators{File: &config.File{TrustedProxies: c.trusted}}, log: slog.New(slog.NewTextHandler(&log, nil))}
		served := 0
		h := s.watchForwarded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
		for range 3 {
			r := httptest.NewRequest(http.MethodGet, "/v1/payments", nil)
			if c.forwarded {
				r.Header.Set("X-Forwarded-For", "203.0.113.7")
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		if got := strings.Count(log.String(), "trusted_proxies does not name it"); got != c.told || served != 3 {
			t.Errorf("%s: told %d times, served %d", c.about, got, served)
		}
	}
}
