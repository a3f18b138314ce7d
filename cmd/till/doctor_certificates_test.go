package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeCertificate writes a certificate that is valid between two times.
func writeCertificate(t *testing.T, begins, ends time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: begins, NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDoctorOnCertificates(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Now()
	for _, c := range []struct {
		begins, ends time.Duration
		verdict      severity
		says         string
	}{
		{-60 * day, 30*day + time.Hour, isFine, "in 30 days"},
		{-84 * day, 6*day + time.Hour, isRisky, "in 6 days, and nobody has renewed it"},
		{-89 * day, day + time.Hour, isRisky, "in 1 day,"},
		{-2 * day, 4*day + time.Hour, isFine, "in 4 days"}, // one of six days is renewed when two are left
		{-90 * day, -time.Hour, isWrong, "it ended at"},
		{time.Hour, 90 * day, isWrong, "not yet"},
	} {
		d := &doctor{}
		d.examineCertificates(t.Context(), writeCertificate(t, now.Add(c.begins), now.Add(c.ends)), "")
		if len(d.findings) != 1 || d.findings[0].verdict != c.verdict || !strings.Contains(d.findings[0].detail, c.says) {
			t.Errorf("%+v: %+v", c, d.findings)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("-----BEGIN PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{empty: "no certificate in PEM", empty + ".none": "no such file"} {
		d := &doctor{}
		if d.examineCertificates(t.Context(), path, ""); d.worst() != isWrong || !strings.Contains(d.findings[0].detail, says) {
			t.Errorf("%s: %+v", path, d.findings)
		}
	}
}

// Without a file, the doctor asks the running server for what it serves.
func TestDoctorOnTheServersCertificate(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]severity{
		fmt.Sprintf("till_certificate_expiry_timestamp_seconds{name=\"files\"} %d\ntill_certificate_life_seconds{name=\"files\"} 7.776e+06\n", time.Now().Add(72*time.Hour).Unix()): isRisky,
		"till_certificate_expiry_timestamp_seconds{name=\"acme\"} 0\n": isWrong,
		"": -1, // it serves none
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "till_build_info{version=\"v1\"} 1\n"+page)
		}))
		d := &doctor{}
		d.examineCertificates(t.Context(), "", web.Listener.Addr().String())
		web.Close()
		if want < 0 && len(d.findings) > 0 || want >= 0 && (len(d.findings) != 1 || d.worst() != want) {
			t.Errorf("%q: %+v", page, d.findings)
		}
	}
	d := &doctor{}
	if d.examineCertificates(t.Context(), "", "127.0.0.1:1"); len(d.findings) > 0 {
		t.Errorf("a server that does not run: %+v", d.findings)
	}
}
