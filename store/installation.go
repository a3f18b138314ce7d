package store

import (
	"context"

	"till"
)

// Installation is what all instances on one database share.
type Installation struct {
	LogID       till.ID
	SecretCheck []byte // proves that an instance holds the installation's secret
	CreatedAt   till.Time
}

// Installation returns the installation, or nil before the first start.
func (tx *Tx) Installation(ctx context.Context) (*Installation, error) {
	i := &Installation{}
	found, err := tx.one(ctx, `SELECT log_id, secret_check, created_at FROM installation WHERE one = 1`, nil,
		idDest(&i.LogID), &i.SecretCheck, &i.CreatedAt)
	if err != nil || !found {
		return nil, err
	}
	return i, nil
}

// InsertInstallation writes the installation down at the first start.
func (tx *Tx) InsertInstallation(ctx context.Context, i *Installation) error {
	_, err := tx.exec(ctx, `INSERT INTO installation (one, log_id, secret_check, created_at) VALUES (1, ?, ?, ?)`,
		i.LogID[:], i.SecretCheck, int64(i.CreatedAt))
	return err
}

// SetLogID gives the event logs a new identity. It reports whether there is an
// installation.
func (tx *Tx) SetLogID(ctx context.Context, id till.ID) (bool, error) {
	n, err := tx.exec(ctx, `UPDATE installation SET log_id = ? WHERE one = 1`, id[:])
	return n == 1, err
}

// ConnectionFingerprint returns the account that a connection's name stood
// for when it was last registered, "" if never.
func (tx *Tx) ConnectionFingerprint(ctx context.Context, name string) (string, error) {
	var f string
	_, err := tx.one(ctx, `SELECT fingerprint FROM connections WHERE name = ?`, []any{name}, &f)
	return f, err
}

// SetConnectionFingerprint registers what a connection's name stands for.
func (tx *Tx) SetConnectionFingerprint(ctx context.Context, name, fingerprint string) error {
	_, err := tx.exec(ctx, `INSERT INTO connections (name, fingerprint) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET fingerprint = excluded.fingerprint`,
		name, fingerprint)
	return err
}

// OpenOnConnection counts the payments, or the payouts, that are still asked
// about on a connection under another fingerprint than the given one.
func (tx *Tx) OpenOnConnection(ctx context.Context, kind, name, fingerprint string) (n int, err error) {
	query := `SELECT count(*) FROM steps s JOIN payments p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE p.connection = ? AND p.fingerprint <> ?`
	if kind == KindPayout {
		query = `SELECT count(*) FROM steps s JOIN payouts p ON p.client_id = s.client_id AND p.id = s.subject_id
		WHERE p.connection = ? AND p.fingerprint <> ?`
	}
	_, err = tx.one(ctx, query, []any{name, fingerprint}, &n)
	return n, err
}

// Connections returns what every connection's name stood for when it was last
// registered.
func (tx *Tx) Connections(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := tx.rows(ctx, `SELECT name, fingerprint FROM connections ORDER BY name LIMIT ?`, []any{maxConnections}, func(r row) error {
		var name, fingerprint string
		err := r.Scan(&name, &fingerprint)
		out[name] = fingerprint
		return err
	})
	return out, err
}

// maxConnections is how many connections are listed.
const maxConnections = 1000
