package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/books"
	"till/certificates"
	"till/internal/acmetest"
	"till/server"
)

// writePair writes a certificate for 127.0.0.1 and its key, and returns the certificate.
func writePair(t *testing.T, certFile, keyFile string, serial int64) *x509.Certificate {
	t.Helper()
	return writePairFrom(t, certFile, keyFile, serial, time.Now().Add(-time.Hour))
}

// writePairFrom is writePair with a time from which on it is valid.
func writePairFrom(t *testing.T, certFile, keyFile string, serial int64, begins time.Time) *x509.Certificate {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: begins, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// trusting returns a client that trusts one certificate, and follows no redirect.
func trusting(t *testing.T, c *tls.Config) *http.Client {
	transport := &http.Transport{TLSClientConfig: c}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func fetch(t *testing.T, c *http.Client, url, key string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// With a certificate in files the API is served by TLS only, and plain HTTP redirects.
func TestTLSByFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := testConfig(t)
	c.TLSCert, c.TLSKey, c.HTTPListen = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), "127.0.0.1:0"
	pool := x509.NewCertPool()
	pool.AddCert(writePair(t, c.TLSCert, c.TLSKey, 1))
	log := &syncBuffer{}
	c.Log = slog.New(slog.NewTextHandler(log, nil))
	r := start(t, c)
	base, key := r.BaseURL(), r.Demo().APIKey
	if !strings.HasPrefix(base, "https://127.0.0.1:") {
		t.Fatalf("the base URL is %s", base)
	}
	answer, body := fetch(t, trusting(t, &tls.Config{RootCAs: pool}), base+"/wallets", key)
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Strict-Transport-Security") != "max-age=31536000" || answer.ProtoMajor != 1 {
		t.Errorf("answered %s %v %s", answer.Status, answer.Header, body)
	}
	for _, name := range []string{"expiry_timestamp", "life"} {
		if got := r.metrics()[`till_certificate_`+name+`_seconds{name="file"}`]; got == "" || got == "0" {
			t.Errorf("its gauge %s is %q", name, got)
		}
	}
	if _, err := tls.Dial("tcp", r.Addr().String(), &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}

	plain := trusting(t, nil)
	if answer, body := fetch(t, plain, "http://"+r.Addr().String()+"/v1/wallets", key); answer.StatusCode != http.StatusBadRequest || !strings.Contains(body, "HTTPS only") {
		t.Errorf("plain HTTP on the address of TLS: %s %s", answer.Status, body)
	}
	host := strings.TrimSuffix(strings.TrimPrefix(base, "https://"), "/v1")
	front := "http://" + r.HTTPAddr().String()
	if answer, _ := fetch(t, plain, front+"/docs/?a=b", ""); answer.StatusCode != http.StatusPermanentRedirect || answer.Header.Get("Location") != "https://"+host+"/docs/?a=b" {
		t.Errorf("a browser: %s %s", answer.Status, answer.Header.Get("Location"))
	}
	if answer, body := fetch(t, plain, front+"/v1/wallets", key); answer.StatusCode != http.StatusForbidden || answer.Header.Get("Location") != "" || strings.Contains(body, key) {
		t.Errorf("a key in plain text: %s %s", answer.Status, body)
	}

	// Reload takes a new pair at once, and new connections get it.
	pool.AddCert(writePair(t, c.TLSCert, c.TLSKey, 2))
	r.Reload()
	for end := time.Now().Add(2 * time.Minute); ; {
		conn, err := tls.Dial("tcp", r.Addr().String(), &tls.Config{RootCAs: pool})
		if err != nil {
			t.Fatal(err)
		}
		serial := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
		conn.Close()
		if serial == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the certificate of before is served\n%s", log.String())
		}
	}
}

// A client that sends nothing, or half a handshake, is dropped and holds nobody up.
func TestASlowHandshakeIsDropped(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a deadline of the server")
	}
	dir := t.TempDir()
	c := testConfig(t)
	c.TLSCert, c.TLSKey = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePair(t, c.TLSCert, c.TLSKey, 1)
	r := start(t, c)
	conn, err := net.Dial("tcp", r.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write([]byte{22, 3, 1, 0, 200, 1}) // the beginning of a record
	conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || os.IsTimeout(err) {
		t.Errorf("read %d bytes, %v; want the end", n, err)
	}
}

// The whole program obtains a certificate from an authority before the first client comes.
func TestTLSByACME(t *testing.T) {
	t.Parallel()
	authority := acmetest.New(t)
	c := testConfig(t)
	c.ACME, c.HTTPListen = certificates.ACMEConfig{Hosts: []string{"pay.example.com"}, Directory: authority.Directory()}, "127.0.0.1:0"
	log := &syncBuffer{}
	c.Log = slog.New(slog.NewTextHandler(log, nil))
	s, err := server.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	authority.TLSAddr, authority.HTTPAddr = s.Addr().String(), s.HTTPAddr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-authority.Issued():
	case <-time.After(2 * time.Minute):
		t.Fatalf("no certificate was issued\n%s", log.String())
	}
	if s.BaseURL() != "https://pay.example.com/v1" {
		t.Errorf("the base URL is %s", s.BaseURL())
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority.Roots()},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Addr().String())
		},
	}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	answer, body := fetch(t, client, s.BaseURL()+"/wallets", s.Demo().APIKey)
	if answer.StatusCode != http.StatusOK || authority.Orders() != 1 {
		t.Errorf("answered %s %s after %d orders\n%s", answer.Status, body, authority.Orders(), log.String())
	}
}

func TestTLSSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	for want, set := range map[string]func(c *server.Config){
		"--tls-cert and --tls-key go together":        func(c *server.Config) { c.TLSCert = "cert.pem" },
		"--tls-cert and --acme-host exclude":          func(c *server.Config) { c.TLSCert, c.TLSKey, c.ACME.Hosts = "c", "k", []string{"a.example.com"} },
		"--http-listen is for redirects":              func(c *server.Config) { c.HTTPListen = ":80" },
		"is not a name such as pay.example.com":       func(c *server.Config) { c.ACME.Hosts = []string{"localhost"} },
		"read the certificate: open /nonexistent.pem": func(c *server.Config) { c.TLSCert, c.TLSKey = "/nonexistent.pem", "/nonexistent.key" },
	} {
		t.Run(fmt.Sprintf("%.30s", want), func(t *testing.T) {
			t.Parallel()
			c := testConfig(t)
			set(&c)
			refused(t, c, want)
		})
	}
}

// A certificate that ends soon is a trouble, also for a command beside the server.
func TestACertificateThatEndsIsTold(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.TLSCert, c.TLSKey = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	writePairFrom(t, c.TLSCert, c.TLSKey, 1, time.Now().Add(-90*24*time.Hour))
	start(t, c).tells(c.Database, books.TroubleCertificate)
}
