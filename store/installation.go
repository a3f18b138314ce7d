package store

import (
	"context"

	"till"
	"till/internal/db"
)

var selectInstallation = db.Define(db.SQL{Name: "installation.select",
	SQLite: `SELECT log_id, secret_check, created_at FROM installation WHERE one = 1`})

var insertInstallation = db.Define(db.SQL{Name: "installation.insert",
	SQLite: `INSERT INTO installation (one, log_id, secret_check, created_at) VALUES (1, $1, $2, $3)`})

var setLogID = db.Define(db.SQL{Name: "installation.setLogID",
	SQLite: `UPDATE installation SET log_id = $1 WHERE one = 1`})

var selectFingerprint = db.Define(db.SQL{Name: "installation.selectFingerprint",
	SQLite: `SELECT fingerprint FROM connections WHERE name = $1`})

var setFingerprint = db.Define(db.SQL{Name: "installation.setFingerprint",
	SQLite: `INSERT INTO connections (name, fingerprint) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET fingerprint = excluded.fingerprint`})

var countOpenPayments = db.Define(db.SQL{Name: "installation.countOpenPayments",
	SQLite: `SELECT count(*) FROM steps s JOIN payments p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE p.connection = $1 AND p.fingerprint <> $2`})

var countOpenPayouts = db.Define(db.SQL{Name: "installation.countOpenPayouts",
	SQLite: `SELECT count(*) FROM steps s JOIN payouts p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE p.connection = $1 AND p.fingerprint <> $2`})

var selectConnections = db.Define(db.SQL{Name: "installation.selectConnections",
	SQLite: `SELECT name, fingerprint FROM connections ORDER BY name LIMIT $1`})

// Installation is what all instances on one database share.
type Installation struct {
	LogID       till.ID
	SecretCheck []byte // proves that an instance holds the installation's secret
	CreatedAt   till.Time
}

// Installation returns the installation, or nil before the first start.
func (tx *Tx) Installation(ctx context.Context) (*Installation, error) {
	i := &Installation{}
	found, err := tx.db.QueryRow(ctx, selectInstallation, nil,
		idDest(&i.LogID), &i.SecretCheck, &i.CreatedAt)
	if err != nil || !found {
		return nil, err
	}
	return i, nil
}

// InsertInstallation writes the installation down at the first start.
func (tx *Tx) InsertInstallation(ctx context.Context, i *Installation) error {
	_, err := tx.db.Exec(ctx, insertInstallation,
		i.LogID[:], i.SecretCheck, int64(i.CreatedAt))
	return err
}

// SetLogID gives the event logs a new identity. It reports whether there is an
// installation.
func (tx *Tx) SetLogID(ctx context.Context, id till.ID) (bool, error) {
	n, err := tx.db.Exec(ctx, setLogID, id[:])
	return n == 1, err
}

// ConnectionFingerprint returns the account that a connection's name stood
// for when it was last registered, "" if never.
func (tx *Tx) ConnectionFingerprint(ctx context.Context, name string) (string, error) {
	var f string
	_, err := tx.db.QueryRow(ctx, selectFingerprint, []any{name}, &f)
	return f, err
}

// SetConnectionFingerprint registers what a connection's name stands for.
func (tx *Tx) SetConnectionFingerprint(ctx context.Context, name, fingerprint string) error {
	_, err := tx.db.Exec(ctx, setFingerprint,
		name, fingerprint)
	return err
}

// OpenOnConnection counts the payments, or the payouts, that are still asked
// about on a connection under another fingerprint than the given one.
func (tx *Tx) OpenOnConnection(ctx context.Context, kind, name, fingerprint string) (n int, err error) {
	count := countOpenPayments
	if kind == KindPayout {
		count = countOpenPayouts
	}
	_, err = tx.db.QueryRow(ctx, count, []any{name, fingerprint}, &n)
	return n, err
}

// Connections returns what every connection's name stood for when it was last
// registered.
func (tx *Tx) Connections(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := tx.db.Query(ctx, selectConnections, []any{maxConnections}, func(r db.Row) error {
		var name, fingerprint string
		err := r.Scan(&name, &fingerprint)
		out[name] = fingerprint
		return err
	})
	return out, err
}

// maxConnections is how many connections are listed.
const maxConnections = 1000
