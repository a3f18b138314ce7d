package certificates

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"till/internal/seal"
	"till/store"
	"till/store/admin"
)

// SealLabel separates this key from every other key of the installation's secret.
const SealLabel = "till certificates v1"

// The limits of the cache.
const (
	maxName       = 512             // characters; a longer one is nobody's
	maxReads      = 4               // reads of the database at once, because strangers cause them
	firstLease    = 5 * time.Minute // as long as one order may take
	maxLease      = time.Hour
	keepChallenge = 24 * time.Hour
	cacheTimeout  = 10 * time.Second
)

// cache is autocert's cache in the database.
type cache struct {
	store  *store.Store
	sealer *seal.Sealer
	log    *slog.Logger
	reads  chan struct{}
}

func newCache(s *store.Store, ring *seal.Ring, log *slog.Logger) (*cache, error) {
	sealer, err := ring.Sealer(SealLabel)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	return &cache{store: s, sealer: sealer, log: log, reads: make(chan struct{}, maxReads)}, nil
}

// errWait says that no certificate may be ordered now: another instance does, or the
// last order failed.
var errWait = errors.New("the certificate is being ordered, or the next try is not due yet")

// isCertificate reports whether a name is that of a certificate. Other names have a suffix
// that autocert gives them: the account's key, and answers to challenges.
func isCertificate(name string) bool {
	return !strings.Contains(strings.TrimSuffix(name, "+rsa"), "+")
}

func isChallenge(name string) bool {
	return strings.HasSuffix(name, "+token") || strings.HasSuffix(name, "+http-01")
}

// Get implements autocert.Cache. After a miss, autocert orders a certificate. So a miss
// takes the lease for that, and callers that do not get it have to wait.
func (c *cache) Get(ctx context.Context, name string) ([]byte, error) {
	if len(name) > maxName {
		return nil, autocert.ErrCacheMiss
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	select {
	case c.reads <- struct{}{}:
		defer func() { <-c.reads }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	row, text, err := c.read(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case text != nil && !(isCertificate(name) && expired(text)):
		return text, nil
	case !isCertificate(name):
		return nil, autocert.ErrCacheMiss
	}
	return nil, c.lease(ctx, row)
}

// expired reports whether the first certificate in a text has ended. autocert orders
// another one then, so that needs the lease, too.
func expired(text []byte) bool {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		leaf, err := x509.ParseCertificate(block.Bytes)
		return err != nil || time.Now().After(leaf.NotAfter)
	}
	return true
}

// read returns a row and its text, nil if it has none that can be read.
func (c *cache) read(ctx context.Context, name string) (row *admin.Certificate, text []byte, err error) {
	err = c.store.View(ctx, func(tx *store.Tx) (err error) {
		row, err = admin.ReadCertificate(ctx, tx, name)
		return err
	})
	if err != nil || len(row.Sealed) == 0 {
		return row, nil, err
	}
	if text, err = c.sealer.Open(row.Sealed, []byte(name)); err != nil {
		c.log.Warn("certificate not decrypted", "name", name)
		return row, nil, nil
	}
	return row, text, nil
}

// lease takes the right to order, and returns ErrCacheMiss if it got it.
func (c *cache) lease(ctx context.Context, row *admin.Certificate) error {
	won := false
	err := c.store.Update(ctx, func(tx *store.Tx) (err error) {
		now, next := tx.Now(), *row
		// A lease that ends later than any can was written before the clock was set back.
		if won = false; now < row.LeaseUntil && row.LeaseUntil <= now.Add(maxLease) {
			return nil
		}
		next.Tries++
		next.LeaseUntil = now.Add(backoff(next.Tries))
		won, err = admin.LeaseCertificate(ctx, tx, &next)
		return err
	})
	switch {
	case err != nil:
		return err
	case !won:
		return errWait
	}
	return autocert.ErrCacheMiss
}

// backoff returns how long nobody orders after a number of tries. Let's Encrypt lets five
// orders of a name fail in an hour.
func backoff(tries int64) time.Duration {
	d := firstLease
	for ; tries > 1 && d < maxLease; tries-- {
		d *= 2
	}
	return min(d, maxLease)
}

// Put implements autocert.Cache.
func (c *cache) Put(ctx context.Context, name string, data []byte) error {
	sealed := c.sealer.Seal(data, []byte(name))
	return c.store.Update(ctx, func(tx *store.Tx) error {
		if err := admin.PutCertificate(ctx, tx, name, sealed, isChallenge(name)); err != nil {
			return err
		}
		return admin.DeleteChallenges(ctx, tx, tx.Now().Add(-keepChallenge))
	})
}

// Delete implements autocert.Cache.
func (c *cache) Delete(ctx context.Context, name string) error {
	return c.store.Update(ctx, func(tx *store.Tx) error { return admin.DeleteCertificate(ctx, tx, name) })
}

// retry ends all waits after failed orders.
func (c *cache) retry(ctx context.Context) error {
	return c.store.Update(ctx, func(tx *store.Tx) error { return admin.RetryCertificates(ctx, tx) })
}
