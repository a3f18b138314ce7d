package certificates

import (
	"context"
	"crypto/tls"
	"time"
)

// Source is where certificates come from.
type Source interface {
	// GetCertificate is for tls.Config.
	GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
	// Look checks for a newer certificate, and says in the log what it finds. It is called
	// once a minute. now says that a person wants it: waits after failures end.
	Look(ctx context.Context, now bool)
	// Validity returns from when to when the certificate is valid; of several, the one that
	// ends first. It is zero if one is missing.
	Validity() (begins, ends time.Time)
	// Name is "file" or "acme", for metrics.
	Name() string
}

// LookInterval is how often a Source is looked at.
const LookInterval = time.Minute

// MaxLook is how long one check may take: an order at a certificate authority.
const MaxLook = 6 * time.Minute
