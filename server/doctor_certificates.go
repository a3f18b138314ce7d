package server

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"
)

// A certificate ends soon if less than minCertificateLeft and less than a third of its life
// is left: by then whoever renews it has failed for days. The alert TillCertificateEnds says
// the same.
const (
	minCertificateLeft = 7 * 24 * time.Hour
	maxCertificateFile = 256 << 10
)

// ServedCertificate is what a running server says of a certificate in its metrics.
type ServedCertificate struct {
	Ends time.Time     // zero: there is none yet
	Life time.Duration // from its beginning to its end; 0: not known
}

// examineCertificates reports when the certificate of a file ends, or else those of the
// running server.
func (d *doctor) examineCertificates(s *Setup, now time.Time) {
	if s.Certificate != "" {
		begins, ends, err := certificateOf(s.Certificate)
		if err != nil {
			d.add("certificate", Wrong, "%s: %v", s.Certificate, err)
			return
		}
		d.addCertificate(begins, ends, now)
		return
	}
	for _, c := range s.Served {
		var begins time.Time
		if !c.Ends.IsZero() {
			begins = c.Ends.Add(-cmp.Or(c.Life, 3*minCertificateLeft))
		}
		d.addCertificate(begins, c.Ends, now)
	}
}

func (d *doctor) addCertificate(begins, ends, now time.Time) {
	v, text := judgeCertificate(begins, ends, now)
	d.add("certificate", v, "%s", text)
}

// judgeCertificate says how well a certificate is. One without an end is none.
func judgeCertificate(begins, ends, now time.Time) (Severity, string) {
	left, at := ends.Sub(now), ends.UTC().Format(time.RFC3339)
	switch {
	case ends.IsZero():
		return Wrong, "the server has none yet, and refuses every connection; look for \"certificate not obtained\" in its log"
	case left <= 0:
		return Wrong, fmt.Sprintf("it ended at %s: clients refuse to connect; renew it", at)
	case now.Before(begins):
		return Wrong, fmt.Sprintf("it is valid from %s on, and not yet; look at the clock", begins.UTC().Format(time.RFC3339))
	case left < minCertificateLeft && left < ends.Sub(begins)/3:
		return Risky, fmt.Sprintf("it ends at %s, in %s, and nobody has renewed it", at, inDays(left))
	}
	return Fine, fmt.Sprintf("it ends at %s, in %s", at, inDays(left))
}

func inDays(left time.Duration) string {
	if days := int64(left / (24 * time.Hour)); days != 1 {
		return fmt.Sprintf("%d days", days)
	}
	return "1 day"
}

// certificateOf reads how long the first certificate of a PEM file is valid.
func certificateOf(path string) (begins, ends time.Time, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return begins, ends, err
	}
	if info.Size() > maxCertificateFile {
		return begins, ends, fmt.Errorf("it is larger than %d bytes", maxCertificateFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return begins, ends, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return begins, ends, errors.New("its certificate cannot be read")
		}
		return c.NotBefore, c.NotAfter, nil
	}
	return begins, ends, errors.New("it holds no certificate in PEM")
}
