package doctor

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"till/certificates"
)

const maxCertificateFile = 256 << 10

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
			begins = c.Ends.Add(-cmp.Or(c.Life, 3*certificates.MinLeft))
		}
		d.addCertificate(begins, c.Ends, now)
	}
}

func (d *doctor) addCertificate(begins, ends, now time.Time) {
	state, text := certificates.Judge(begins, ends, now)
	d.add("certificate", map[certificates.State]Severity{certificates.Good: Fine, certificates.Ending: Risky, certificates.Bad: Wrong}[state], "%s", text)
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
