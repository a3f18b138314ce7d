package certificates_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/certificates"
	"till/internal/acmetest"
	"till/internal/seal"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

var secret = bytes.Repeat([]byte{7}, 32)

const host = "pay.example.com"

// lockedBuffer is a log that goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newACME(t *testing.T, authority *acmetest.Server, s *store.Store, log io.Writer) *certificates.ACME {
	t.Helper()
	a, err := certificates.NewACME(certificates.ACMEConfig{Hosts: []string{host}, Directory: authority.Directory()}, s, seal.Single(secret), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serveTLS answers handshakes, and returns the address.
func serveTLS(t *testing.T, a *certificates.ACME) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{GetCertificate: a.GetCertificate, NextProtos: []string{"http/1.1", certificates.Protocol}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				c.(*tls.Conn).Handshake()
				c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// shake connects as a client that trusts the authority.
func shake(authority *acmetest.Server, address, name string) (serial string, err error) {
	c, err := tls.Dial("tcp", address, &tls.Config{ServerName: name, RootCAs: authority.Roots()})
	if err != nil {
		return "", err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

// Two instances on one database have one certificate, ordered once. The one that did not
// order answers the authority's challenge, by either kind. The database has no key that
// can be read.
func TestTwoInstancesShareACertificate(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		for _, kind := range []string{"tls-alpn-01", "http-01"} {
			t.Run(e.Name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				c, authority := e.Config(t), acmetest.New(t)
				stores := [2]*store.Store{storetest.Open(t, c), storetest.Open(t, c)}
				log := &lockedBuffer{}
				a, b := newACME(t, authority, stores[0], log), newACME(t, authority, stores[1], log)
				if kind == "tls-alpn-01" {
					authority.TLSAddr = serveTLS(t, b)
				} else {
					authority.HTTPAddr = serveHTTP(t, b.HTTPHandler(http.NotFoundHandler()))
					a.HTTPHandler(nil) // both are told to expect it
				}
				a.Look(t.Context(), false)
				var serials [2]string
				for i, x := range []*certificates.ACME{a, b} {
					var err error
					if serials[i], err = shake(authority, serveTLS(t, x), host); err != nil {
						t.Fatalf("%v\n%s", err, log.String())
					}
				}
				if n := authority.Orders(); n != 1 || serials[0] != serials[1] {
					t.Errorf("%d orders, certificates %v", n, serials)
				}
				b.Look(t.Context(), false)
				for i, x := range []*certificates.ACME{a, b} {
					if left := time.Until(endOf(x)); left < 89*24*time.Hour {
						t.Errorf("instance %d: the certificate is valid for %v", i, left)
					}
				}
				if err := stores[0].View(t.Context(), func(tx *store.Tx) error {
					row, err := admin.ReadCertificate(t.Context(), tx, host)
					if len(row.Sealed) == 0 || bytes.Contains(row.Sealed, []byte("PRIVATE")) || bytes.Contains(row.Sealed, []byte("CERTIFICATE")) {
						t.Errorf("the row holds %q", row.Sealed)
					}
					return err
				}); err != nil {
					t.Fatal(err)
				}
				if _, err := shake(authority, serveTLS(t, a), "other.example.com"); err == nil {
					t.Error("a name that is not configured has a certificate")
				}
			})
		}
	}
}

func endOf(a *certificates.ACME) time.Time {
	_, ends := a.Validity()
	return ends
}

func serveHTTP(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// An authority that refuses is asked again ever more rarely, by all instances together.
// The log says why. A person's word ends the wait.
func TestAnAuthorityThatRefuses(t *testing.T) {
	t.Parallel()
	noon := till.TimeOf(time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		authority, log := acmetest.New(t), &lockedBuffer{}
		authority.Refuse("we issue nothing for this name")
		// A new instance each time: autocert itself waits a minute.
		look := func(now bool) *certificates.ACME {
			a := newACME(t, authority, s, log)
			authority.TLSAddr = serveTLS(t, a)
			a.Look(t.Context(), now)
			return a
		}
		orders := func(when string, want int) {
			t.Helper()
			if got := authority.Orders(); got != want {
				t.Errorf("%s: %d orders, want %d\n%s", when, got, want, log.String())
			}
		}
		a := look(false)
		orders("first", 1)
		if !strings.Contains(log.String(), "we issue nothing for this name") || !endOf(a).IsZero() {
			t.Errorf("expiry %v, the log says\n%s", endOf(a), log.String())
		}
		if _, err := shake(authority, authority.TLSAddr, host); err == nil {
			t.Error("a certificate from nowhere")
		}
		look(false)
		orders("at once", 1)
		clock.Advance(5 * time.Minute)
		look(false)
		orders("after five minutes", 2)
		clock.Advance(9 * time.Minute)
		look(false)
		orders("nine minutes later", 2)
		clock.Advance(time.Minute)
		look(false)
		orders("ten minutes later", 3)
		authority.Refuse("")
		a = look(true)
		orders("a person asks", 4)
		if endOf(a).IsZero() {
			t.Errorf("there is no certificate\n%s", log.String())
		}
	})
}

// A certificate of a few seconds is renewed before it ends, and connections go on.
func TestACertificateIsRenewed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a renewal")
	}
	authority, log := acmetest.New(t), &lockedBuffer{}
	authority.Life = 5 * time.Second
	e := storetest.Engines()[0]
	a := newACME(t, authority, storetest.Open(t, e.Config(t)), log)
	authority.TLSAddr = serveTLS(t, a)
	a.Look(t.Context(), false)
	for n := range 2 {
		select {
		case <-authority.Issued():
		case <-time.After(2 * time.Minute):
			t.Fatalf("certificate %d was not issued\n%s", n+1, log.String())
		}
	}
}

// Settings that cannot work are refused with a sentence.
func TestACMEConfigMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config certificates.ACMEConfig
		want   string
	}{
		{certificates.ACMEConfig{Hosts: []string{"localhost"}}, "is not a name such as"},
		{certificates.ACMEConfig{Hosts: []string{"10.0.0.1"}}, "is not a name such as"},
		{certificates.ACMEConfig{Hosts: []string{"*.example.com"}}, "is not a name such as"},
		{certificates.ACMEConfig{Hosts: []string{"a.example.com", "a.example.com"}}, "stands here twice"},
		{certificates.ACMEConfig{Hosts: make([]string, 21)}, "more than 20"},
		{certificates.ACMEConfig{Hosts: []string{host}, Directory: "http://example.com/directory"}, "--acme-directory"},
		{certificates.ACMEConfig{Hosts: []string{host}, Email: "me"}, "--acme-email"},
		{certificates.ACMEConfig{Hosts: []string{host}, Directory: "https://ca.example/dir", Email: "me@example.com"}, ""},
		{certificates.ACMEConfig{}, ""},
	} {
		if err := c.config.Validate(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
}
