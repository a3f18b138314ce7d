package certificates_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/certificates"
)

// pair makes a certificate that ends at a moment, and its key, as PEM.
func pair(t *testing.T, serial int64, begins, ends time.Time) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"pay.example.com"}, NotBefore: begins, NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A pair that does not fit, is expired, not valid yet, or not there never replaces the one
// that works; one that does is taken at the next look.
func TestFilesAreSwappedForAPairThatWorksOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	hour, now := time.Hour, time.Now()
	cert, key := pair(t, 1, now.Add(-hour), now.Add(hour))
	write(t, certFile, cert)
	write(t, keyFile, key)
	var log bytes.Buffer
	f, err := certificates.OpenFiles(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	serves := func(serial int64) {
		t.Helper()
		c, err := f.GetCertificate(nil)
		if err != nil || c.Leaf.SerialNumber.Int64() != serial {
			t.Fatalf("serves %v, %v; want %d", c.Leaf.SerialNumber, err, serial)
		}
	}
	look := func(said string, times int) {
		t.Helper()
		log.Reset()
		f.Look(t.Context(), false)
		f.Look(t.Context(), false)
		if n := strings.Count(log.String(), said); n != times || strings.Contains(log.String(), "PRIVATE KEY") {
			t.Errorf("the log says %q %d times, want %d:\n%s", said, n, times, log.String())
		}
	}
	look("certificate", 0)
	serves(1)

	next, nextKey := pair(t, 2, now.Add(-hour), now.Add(2*hour))
	write(t, certFile, next) // between the two writes of its renewal
	look("cannot be used together", 1)
	serves(1)
	write(t, keyFile, nextKey)
	look("certificate taken", 1)
	serves(2)
	if _, end := f.Validity(); end.Sub(now).Round(hour) != 2*hour {
		t.Errorf("it ends at %v", end)
	}

	for _, c := range []struct {
		begins, ends time.Time
		said         string
	}{
		{now.Add(-2 * hour), now.Add(-hour), "expired on"},
		{now.Add(hour), now.Add(2 * hour), "valid from"},
	} {
		bad, badKey := pair(t, 3, c.begins, c.ends)
		write(t, certFile, bad)
		write(t, keyFile, badKey)
		look(c.said, 1)
		serves(2)
	}
	write(t, certFile, bytes.Repeat([]byte("x"), 300<<10))
	look("is larger than", 1)
	os.Remove(keyFile)
	write(t, certFile, next)
	look("no such file", 1)
	serves(2)
	write(t, keyFile, nextKey)
	look("certificate", 0)
	serves(2)
}

// What cannot be used at a start is an error; what is expired is served with an error in
// the log, because open payments must not wait for it.
func TestFilesAtAStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	var log bytes.Buffer
	open := func() error {
		_, err := certificates.OpenFiles(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
		return err
	}
	if err := open(); err == nil || !strings.Contains(err.Error(), "cert.pem") {
		t.Errorf("without files: %v", err)
	}
	cert, key := pair(t, 1, time.Now().Add(-time.Hour), time.Now().Add(-time.Minute))
	_, other := pair(t, 2, time.Now(), time.Now().Add(time.Hour))
	write(t, certFile, cert)
	write(t, keyFile, other)
	if err := open(); err == nil || !strings.Contains(err.Error(), "cannot be used together") {
		t.Errorf("a pair that does not fit: %v", err)
	}
	write(t, keyFile, key)
	if err := open(); err != nil || !strings.Contains(log.String(), "level=ERROR msg=\"certificate not valid\"") {
		t.Errorf("an expired pair: %v\n%s", err, log.String())
	}
}
