package admin

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var selectCertificate = db.Define(db.SQL{Name: "certificates.select",
	SQLite: `SELECT version, sealed, tries, lease_until FROM certificates WHERE name = $1`})

var insertCertificate = db.Define(db.SQL{Name: "certificates.insert",
	SQLite: `INSERT INTO certificates (name, version, sealed, challenge, tries, lease_until, written_at) VALUES ($1, 1, $2, 0, $3, $4, $5)
		ON CONFLICT (name) DO NOTHING`})

var leaseCertificate = db.Define(db.SQL{Name: "certificates.lease",
	SQLite: `UPDATE certificates SET version = version + 1, tries = $1, lease_until = $2, written_at = $3 WHERE name = $4 AND version = $5`})

var putCertificate = db.Define(db.SQL{Name: "certificates.put",
	SQLite: `INSERT INTO certificates (name, version, sealed, challenge, tries, lease_until, written_at) VALUES ($1, 1, $2, $3, 0, 0, $4)
		ON CONFLICT (name) DO UPDATE SET version = certificates.version + 1, sealed = excluded.sealed, challenge = excluded.challenge,
			tries = 0, lease_until = 0, written_at = excluded.written_at`})

var deleteCertificate = db.Define(db.SQL{Name: "certificates.delete",
	SQLite: `DELETE FROM certificates WHERE name = $1`})

var deleteChallenges = db.Define(db.SQL{Name: "certificates.delete_challenges",
	SQLite: `DELETE FROM certificates WHERE challenge = 1 AND written_at < $1`})

var retryCertificates = db.Define(db.SQL{Name: "certificates.retry",
	SQLite: `UPDATE certificates SET version = version + 1, tries = 0, lease_until = 0 WHERE lease_until > 0`})

// Certificate is a row of what instances share of their TLS certificates.
type Certificate struct {
	Name       string
	Version    int64  // 0: it was never written
	Sealed     []byte // empty: there is none yet
	Tries      int64  // orders since the last success
	LeaseUntil till.Time
}

// ReadCertificate returns a row; one of version 0 if it was never written.
func ReadCertificate(ctx context.Context, tx *store.Tx, name string) (*Certificate, error) {
	c := &Certificate{Name: name}
	_, err := tx.DB().QueryRow(ctx, selectCertificate, []any{name}, &c.Version, &c.Sealed, &c.Tries, &c.LeaseUntil)
	return c, err
}

// LeaseCertificate writes the tries and the lease of a row if it is still of the version
// that was read, and reports whether it was.
func LeaseCertificate(ctx context.Context, tx *store.Tx, c *Certificate) (won bool, err error) {
	var n int64
	if c.Version == 0 {
		n, err = tx.DB().Exec(ctx, insertCertificate, c.Name, []byte{}, c.Tries, int64(c.LeaseUntil), int64(tx.Now()))
	} else {
		n, err = tx.DB().Exec(ctx, leaseCertificate, c.Tries, int64(c.LeaseUntil), int64(tx.Now()), c.Name, c.Version)
	}
	return n == 1, err
}

// PutCertificate writes a row and ends its lease. One that answers a challenge is needed
// for minutes only.
func PutCertificate(ctx context.Context, tx *store.Tx, name string, sealed []byte, challenge bool) error {
	flag := int64(0)
	if challenge {
		flag = 1
	}
	_, err := tx.DB().Exec(ctx, putCertificate, name, sealed, flag, int64(tx.Now()))
	return err
}

// DeleteCertificate deletes a row.
func DeleteCertificate(ctx context.Context, tx *store.Tx, name string) error {
	_, err := tx.DB().Exec(ctx, deleteCertificate, name)
	return err
}

// DeleteChallenges deletes answers to challenges from before a moment, which a crash left.
func DeleteChallenges(ctx context.Context, tx *store.Tx, before till.Time) error {
	_, err := tx.DB().Exec(ctx, deleteChallenges, int64(before))
	return err
}

// RetryCertificates ends all waits for another order.
func RetryCertificates(ctx context.Context, tx *store.Tx) error {
	_, err := tx.DB().Exec(ctx, retryCertificates)
	return err
}
