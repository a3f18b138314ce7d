package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
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
		verdict      Severity
		says         string
	}{
		{-60 * day, 30*day + time.Hour, Fine, "in 30 days"},
		{-84 * day, 6*day + time.Hour, Risky, "in 6 days, and nobody has renewed it"},
		{-89 * day, day + time.Hour, Risky, "in 1 day,"},
		{-2 * day, 4*day + time.Hour, Fine, "in 4 days"}, // one of six days is renewed when two are left
		{-90 * day, -time.Hour, Wrong, "it ended at"},
		{time.Hour, 90 * day, Wrong, "not yet"},
	} {
		d := &doctor{}
		d.examineCertificates(&Setup{Certificate: writeCertificate(t, now.Add(c.begins), now.Add(c.ends))}, now)
		if len(d.All) != 1 || d.All[0].Verdict != c.verdict || !strings.Contains(d.All[0].Detail, c.says) {
			t.Errorf("%+v: %+v", c, d.All)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("-----BEGIN PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{empty: "no certificate in PEM", empty + ".none": "no such file"} {
		d := &doctor{}
		if d.examineCertificates(&Setup{Certificate: path}, now); d.Worst() != Wrong || !strings.Contains(d.All[0].Detail, says) {
			t.Errorf("%s: %+v", path, d.All)
		}
	}
}

// Without a file, what the running server says of its own is judged.
func TestDoctorOnServedCertificates(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Now()
	for _, c := range []struct {
		served  ServedCertificate
		verdict Severity
	}{
		{ServedCertificate{Ends: now.Add(3 * day), Life: 90 * day}, Risky},
		{ServedCertificate{Ends: now.Add(3 * day), Life: 6 * day}, Fine},
		{ServedCertificate{Ends: now.Add(3 * day)}, Risky}, // of a server that does not say its life
		{ServedCertificate{}, Wrong},
	} {
		d := &doctor{}
		if d.examineCertificates(&Setup{Served: []ServedCertificate{c.served}}, now); len(d.All) != 1 || d.Worst() != c.verdict {
			t.Errorf("%+v: %+v", c.served, d.All)
		}
	}
}
