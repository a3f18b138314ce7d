package main

import (
	"bytes"
	"context"
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

// examineCertificates reports when the certificate of a file ends, or else that of the
// running server. A server that does not answer, or serves none, has no finding.
func (d *doctor) examineCertificates(ctx context.Context, file, admin string) {
	if file != "" {
		begins, ends, err := certificateOf(file)
		if err != nil {
			d.add("certificate", isWrong, "%s: %v", file, err)
			return
		}
		d.addCertificate(begins, ends, time.Now())
		return
	}
	if admin == "" {
		return
	}
	text, err := readAdmin(ctx, admin, "/metrics", maxBundlePart)
	if err != nil {
		return
	}
	if read, err := parseMetrics(bytes.NewReader(text), time.Now()); err == nil {
		d.addServed(read)
	}
}

// addServed judges the certificates that a server tells of in its metrics.
func (d *doctor) addServed(read *scraped) {
	for _, s := range read.all["till_certificate_expiry_timestamp_seconds"] {
		if s.value == 0 {
			d.add("certificate", isWrong, "the server has none yet, and refuses every connection; look for \"certificate not obtained\" in its log")
			continue
		}
		ends := time.Unix(int64(s.value), 0)
		life := 3 * minCertificateLeft
		for _, l := range read.all["till_certificate_life_seconds"] {
			if l.label("name") == s.label("name") {
				life = time.Duration(l.value) * time.Second
			}
		}
		d.addCertificate(ends.Add(-life), ends, read.at)
	}
}

func (d *doctor) addCertificate(begins, ends, now time.Time) {
	left, at := ends.Sub(now), ends.UTC().Format(time.RFC3339)
	switch {
	case left <= 0:
		d.add("certificate", isWrong, "it ended at %s: clients refuse to connect; renew it", at)
	case now.Before(begins):
		d.add("certificate", isWrong, "it is valid from %s on, and not yet; look at the clock", begins.UTC().Format(time.RFC3339))
	case left < minCertificateLeft && left < ends.Sub(begins)/3:
		d.add("certificate", isRisky, "it ends at %s, in %s, and nobody has renewed it", at, inDays(left))
	default:
		d.add("certificate", isFine, "it ends at %s, in %s", at, inDays(left))
	}
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
