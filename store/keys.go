package store

import (
	"context"
	"strings"

	"till"
)

const keyColumns = `client_id, key_id, name, scopes, secret_hash, created_at, expires_at, revoked_at, last_used_at, exposed_at, made_by, replaces`

func scanKey(r row) (*till.Key, error) {
	k := &till.Key{}
	var scopes string
	var hash []byte
	err := r.Scan(idDest(&k.ClientID), &k.ID, textDest(&k.Name), &scopes, &hash, &k.CreatedAt,
		intDest(&k.ExpiresAt), intDest(&k.RevokedAt), intDest(&k.LastUsedAt), intDest(&k.ExposedAt), textDest(&k.MadeBy), textDest(&k.Replaces))
	copy(k.SecretHash[:], hash)
	for _, s := range strings.Fields(scopes) {
		k.Scopes = append(k.Scopes, till.Scope(s))
	}
	return k, err
}

// InsertKey writes a new key and its entry in the global look-up.
func (tx *Tx) InsertKey(ctx context.Context, k *till.Key) error {
	scopes := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		scopes[i] = string(s)
	}
	if _, err := tx.exec(ctx, `INSERT INTO api_keys (client_id, key_id, name, scopes, secret_hash, created_at, expires_at, made_by, replaces)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, k.ClientID[:], k.ID, orNull(k.Name), strings.Join(scopes, " "), k.SecretHash[:], int64(k.CreatedAt), orNull(k.ExpiresAt),
		orNull(k.MadeBy), orNull(k.Replaces)); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `INSERT INTO key_clients (key_id, client_id) VALUES (?, ?)`, k.ID, k.ClientID[:])
	return err
}

// KeyOwner returns the client that a key id belongs to; false if none.
func (tx *Tx) KeyOwner(ctx context.Context, keyID string) (till.ID, bool, error) {
	var id till.ID
	found, err := tx.one(ctx, `SELECT client_id FROM key_clients WHERE key_id = ?`, []any{keyID}, idDest(&id))
	return id, found, err
}

// Key returns one key of a client. It returns CodeKeyNotFound if there is none.
func (tx *Tx) Key(ctx context.Context, client till.ID, keyID string) (*till.Key, error) {
	var k *till.Key
	err := tx.rows(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE client_id = ? AND key_id = ?`, []any{client[:], keyID},
		func(r row) (err error) { k, err = scanKey(r); return err })
	if err == nil && k == nil {
		err = till.Errorf(till.CodeKeyNotFound, "there is no such key")
	}
	return k, err
}

// Keys returns up to limit keys of a client, newest first.
func (tx *Tx) Keys(ctx context.Context, client till.ID, limit int) ([]*till.Key, error) {
	return tx.keys(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE client_id = ? ORDER BY created_at DESC, key_id DESC LIMIT ?`, client[:], limit)
}

func (tx *Tx) keys(ctx context.Context, query string, args ...any) (out []*till.Key, err error) {
	err = tx.rows(ctx, query, args, func(r row) error {
		k, err := scanKey(r)
		out = append(out, k)
		return err
	})
	return out, err
}

const selectLiving = `SELECT ` + keyColumns + ` FROM api_keys WHERE client_id = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?) `

// Descendants returns the keys of a client that open something at now and
// that come from one of its keys, also through others that open nothing any
// more, oldest first: all of them, or those that it made and that these made,
// without the keys that took its place.
func (tx *Tx) Descendants(ctx context.Context, client till.ID, keyID string, all bool) ([]*till.Key, error) {
	next := `JOIN api_keys k ON k.client_id = ? AND k.made_by = line.key_id WHERE k.replaces IS NULL OR k.replaces <> ?`
	args := []any{client[:], int64(tx.Now()), keyID, client[:], keyID, keyID}
	if all {
		next = `JOIN api_keys k ON k.client_id = ? AND (k.made_by = line.key_id OR k.replaces = line.key_id)`
		args = []any{client[:], int64(tx.Now()), keyID, client[:], keyID}
	}
	return tx.keys(ctx, selectLiving+`AND key_id IN (WITH RECURSIVE line (key_id) AS (SELECT CAST(? AS TEXT) UNION SELECT k.key_id FROM line `+next+`)
		SELECT key_id FROM line) AND key_id <> ? ORDER BY created_at, key_id`, args...)
}

// Successors returns the keys that took the place of one and open something at
// now.
func (tx *Tx) Successors(ctx context.Context, client till.ID, keyID string) ([]*till.Key, error) {
	return tx.keys(ctx, selectLiving+`AND replaces = ? ORDER BY created_at, key_id`, client[:], int64(tx.Now()), keyID)
}

// CountActiveKeys returns how many keys of a client open something at now.
func (tx *Tx) CountActiveKeys(ctx context.Context, client till.ID) (n int, err error) {
	_, err = tx.one(ctx, `SELECT count(*) FROM api_keys WHERE client_id = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`,
		[]any{client[:], int64(tx.Now())}, &n)
	return n, err
}

// UpdateKey writes what may change of a key: its expiry, its revocation, and
// when it was last used or seen in a URL.
func (tx *Tx) UpdateKey(ctx context.Context, k *till.Key) error {
	_, err := tx.exec(ctx, `UPDATE api_keys SET expires_at = ?, revoked_at = ?, last_used_at = ?, exposed_at = ? WHERE client_id = ? AND key_id = ?`,
		orNull(k.ExpiresAt), orNull(k.RevokedAt), orNull(k.LastUsedAt), orNull(k.ExposedAt), k.ClientID[:], k.ID)
	return err
}

// TouchKeys records when keys were last used; a later time is kept.
func (tx *Tx) TouchKeys(ctx context.Context, used map[string]till.Key) error {
	for _, k := range used {
		if _, err := tx.exec(ctx, `UPDATE api_keys SET last_used_at = ? WHERE client_id = ? AND key_id = ? AND coalesce(last_used_at, 0) < ?`,
			int64(k.LastUsedAt), k.ClientID[:], k.ID, int64(k.LastUsedAt)); err != nil {
			return err
		}
	}
	return nil
}
