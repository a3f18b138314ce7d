package access

import (
	"context"
	"strings"

	"till"
	"till/internal/db"
	"till/store"
)

const keyColumns = `client_id, key_id, name, scopes, secret_hash, created_at, expires_at, revoked_at, last_used_at, exposed_at, made_by, replaces`

var insertKey = db.Define(db.SQL{Name: "keys.insert",
	SQLite: `INSERT INTO api_keys (client_id, key_id, name, scopes, secret_hash, created_at, expires_at, made_by, replaces)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`})

var insertKeyOwner = db.Define(db.SQL{Name: "keys.insertOwner",
	SQLite: `INSERT INTO key_clients (key_id, client_id) VALUES ($1, $2)`})

var selectKeyOwner = db.Define(db.SQL{Name: "keys.selectOwner",
	SQLite: `SELECT client_id FROM key_clients WHERE key_id = $1`})

var selectKey = db.Define(db.SQL{Name: "keys.selectKey",
	SQLite: `SELECT ` + keyColumns + ` FROM api_keys WHERE client_id = $1 AND key_id = $2`})

var selectKeys = db.Define(db.SQL{Name: "keys.selectKeys",
	SQLite: `SELECT ` + keyColumns + ` FROM api_keys WHERE client_id = $1 ORDER BY created_at DESC, key_id DESC LIMIT $2`})

const selectLiving = `SELECT ` + keyColumns + ` FROM api_keys WHERE client_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2) `

var selectSuccessors = db.Define(db.SQL{Name: "keys.selectSuccessors",
	SQLite: selectLiving + `AND replaces = $3 ORDER BY created_at, key_id`})

var selectDescendants = db.Define(db.SQL{Name: "keys.selectDescendants",
	SQLite: selectLiving + `AND key_id IN (WITH RECURSIVE line (key_id) AS (SELECT CAST($3 AS TEXT)
		UNION SELECT k.key_id FROM line JOIN api_keys k ON k.client_id = $1 AND (k.made_by = line.key_id OR k.replaces = line.key_id))
		SELECT key_id FROM line) AND key_id <> $3 ORDER BY created_at, key_id`})

var selectMadeBy = db.Define(db.SQL{Name: "keys.selectMadeBy",
	SQLite: selectLiving + `AND key_id IN (WITH RECURSIVE line (key_id) AS (SELECT CAST($3 AS TEXT)
		UNION SELECT k.key_id FROM line JOIN api_keys k ON k.client_id = $1 AND k.made_by = line.key_id WHERE k.replaces IS NULL OR k.replaces <> $3)
		SELECT key_id FROM line) AND key_id <> $3 ORDER BY created_at, key_id`})

var countActiveKeys = db.Define(db.SQL{Name: "keys.countActiveKeys",
	SQLite: `SELECT count(*) FROM api_keys WHERE client_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`})

var updateKey = db.Define(db.SQL{Name: "keys.update",
	SQLite: `UPDATE api_keys SET expires_at = $1, revoked_at = $2, last_used_at = $3, exposed_at = $4 WHERE client_id = $5 AND key_id = $6`})

var touchKeys = db.Define(db.SQL{Name: "keys.touch",
	SQLite: `UPDATE api_keys SET last_used_at = $1 WHERE client_id = $2 AND key_id = $3 AND coalesce(last_used_at, 0) < $4`})

func scanKey(r db.Row) (*till.Key, error) {
	k := &till.Key{}
	var scopes string
	var hash []byte
	err := r.Scan(db.ID(&k.ClientID), &k.ID, db.Text(&k.Name), &scopes, &hash, &k.CreatedAt,
		db.Int(&k.ExpiresAt), db.Int(&k.RevokedAt), db.Int(&k.LastUsedAt), db.Int(&k.ExposedAt), db.Text(&k.MadeBy), db.Text(&k.Replaces))
	copy(k.SecretHash[:], hash)
	for _, s := range strings.Fields(scopes) {
		k.Scopes = append(k.Scopes, till.Scope(s))
	}
	return k, err
}

// InsertKey writes a new key and its entry in the global lookup.
func InsertKey(ctx context.Context, tx *store.Tx, k *till.Key) error {
	scopes := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		scopes[i] = string(s)
	}
	if _, err := tx.DB().Exec(ctx, insertKey, k.ClientID[:], k.ID, db.OrNull(k.Name), strings.Join(scopes, " "), k.SecretHash[:], int64(k.CreatedAt), db.OrNull(k.ExpiresAt),
		db.OrNull(k.MadeBy), db.OrNull(k.Replaces)); err != nil {
		return err
	}
	_, err := tx.DB().Exec(ctx, insertKeyOwner, k.ID, k.ClientID[:])
	return err
}

// KeyOwner returns the client that a key id belongs to; false if none.
func KeyOwner(ctx context.Context, tx *store.Tx, keyID string) (till.ID, bool, error) {
	var id till.ID
	found, err := tx.DB().QueryRow(ctx, selectKeyOwner, []any{keyID}, db.ID(&id))
	return id, found, err
}

// Key returns one key of a client. It returns CodeKeyNotFound if there is none.
func Key(ctx context.Context, tx *store.Tx, client till.ID, keyID string) (*till.Key, error) {
	var k *till.Key
	err := tx.DB().Query(ctx, selectKey, []any{client[:], keyID},
		func(r db.Row) (err error) { k, err = scanKey(r); return err })
	if err == nil && k == nil {
		err = till.Errorf(till.CodeKeyNotFound, "there is no such key")
	}
	return k, err
}

// Keys returns up to limit keys of a client, newest first.
func Keys(ctx context.Context, tx *store.Tx, client till.ID, limit int) ([]*till.Key, error) {
	return keys(ctx, tx, selectKeys, client[:], limit)
}

func keys(ctx context.Context, tx *store.Tx, q *db.SQL, args ...any) (out []*till.Key, err error) {
	err = tx.DB().Query(ctx, q, args, func(r db.Row) error {
		k, err := scanKey(r)
		out = append(out, k)
		return err
	})
	return out, err
}

// Descendants returns the keys of a client that work at now and descend from one
// of its keys, oldest first. Keys between them may have ended. It returns all of
// them, or only those that were made with the key or with a key made so. Then keys
// that replaced it are left out.
func Descendants(ctx context.Context, tx *store.Tx, client till.ID, keyID string, all bool) ([]*till.Key, error) {
	q := selectMadeBy
	if all {
		q = selectDescendants
	}
	return keys(ctx, tx, q, client[:], int64(tx.Now()), keyID)
}

// Successors returns the keys that took the place of one and open something at
// now.
func Successors(ctx context.Context, tx *store.Tx, client till.ID, keyID string) ([]*till.Key, error) {
	return keys(ctx, tx, selectSuccessors, client[:], int64(tx.Now()), keyID)
}

// CountActiveKeys returns how many keys of a client open something at now.
func CountActiveKeys(ctx context.Context, tx *store.Tx, client till.ID) (n int, err error) {
	_, err = tx.DB().QueryRow(ctx, countActiveKeys,
		[]any{client[:], int64(tx.Now())}, &n)
	return n, err
}

// UpdateKey writes what may change of a key: its expiry, its revocation, and
// when it was last used or seen in a URL.
func UpdateKey(ctx context.Context, tx *store.Tx, k *till.Key) error {
	_, err := tx.DB().Exec(ctx, updateKey,
		db.OrNull(k.ExpiresAt), db.OrNull(k.RevokedAt), db.OrNull(k.LastUsedAt), db.OrNull(k.ExposedAt), k.ClientID[:], k.ID)
	return err
}

// TouchKeys records when keys were last used; a later time is kept.
func TouchKeys(ctx context.Context, tx *store.Tx, used map[string]till.Key) error {
	for _, k := range used {
		if _, err := tx.DB().Exec(ctx, touchKeys,
			int64(k.LastUsedAt), k.ClientID[:], k.ID, int64(k.LastUsedAt)); err != nil {
			return err
		}
	}
	return nil
}
