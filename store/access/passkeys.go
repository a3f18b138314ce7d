package access

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var insertPasskey = db.Define(db.SQL{Name: "passkeys.insert",
	SQLite: `INSERT INTO passkeys (person_id, id, name, record, created_at) VALUES ($1, $2, $3, $4, $5)`})

var selectPasskeys = db.Define(db.SQL{Name: "passkeys.select",
	SQLite: `SELECT id, name, record, created_at, used_at FROM passkeys WHERE person_id = $1 ORDER BY created_at, id`})

var usePasskey = db.Define(db.SQL{Name: "passkeys.use",
	SQLite: `UPDATE passkeys SET record = $1, used_at = $2 WHERE person_id = $3 AND id = $4`})

var deletePasskey = db.Define(db.SQL{Name: "passkeys.delete",
	SQLite: `DELETE FROM passkeys WHERE person_id = $1 AND id = $2`})

var deletePasskeys = db.Define(db.SQL{Name: "passkeys.deleteAll",
	SQLite: `DELETE FROM passkeys WHERE person_id = $1`})

var insertRecoveryCode = db.Define(db.SQL{Name: "passkeys.insertRecoveryCode",
	SQLite: `INSERT INTO recovery_codes (person_id, hash) VALUES ($1, $2)`})

var deleteRecoveryCode = db.Define(db.SQL{Name: "passkeys.deleteRecoveryCode",
	SQLite: `DELETE FROM recovery_codes WHERE person_id = $1 AND hash = $2`})

var deleteRecoveryCodes = db.Define(db.SQL{Name: "passkeys.deleteRecoveryCodes",
	SQLite: `DELETE FROM recovery_codes WHERE person_id = $1`})

// Passkey is one passkey of a person.
type Passkey struct {
	Person    till.ID
	ID        till.ID
	Name      string
	Record    string // the whole credential record, as JSON
	CreatedAt till.Time
	UsedAt    till.Time
}

// InsertPasskey writes a new passkey.
func InsertPasskey(ctx context.Context, tx *store.Tx, k *Passkey) error {
	_, err := tx.DB().Exec(ctx, insertPasskey, k.Person[:], k.ID[:], k.Name, k.Record, int64(k.CreatedAt))
	return err
}

// Passkeys returns a person's passkeys, oldest first.
func Passkeys(ctx context.Context, tx *store.Tx, person till.ID) (out []*Passkey, err error) {
	err = tx.DB().Query(ctx, selectPasskeys, []any{person[:]}, func(r db.Row) error {
		k := &Passkey{Person: person}
		err := r.Scan(db.ID(&k.ID), &k.Name, &k.Record, &k.CreatedAt, db.Int(&k.UsedAt))
		out = append(out, k)
		return err
	})
	return out, err
}

// UsePasskey writes a passkey's record and when it was used, and reports
// whether it is still there.
func UsePasskey(ctx context.Context, tx *store.Tx, k *Passkey) (bool, error) {
	n, err := tx.DB().Exec(ctx, usePasskey, k.Record, int64(k.UsedAt), k.Person[:], k.ID[:])
	return n == 1, err
}

// DeletePasskey deletes one passkey and reports whether it was there.
func DeletePasskey(ctx context.Context, tx *store.Tx, person, id till.ID) (bool, error) {
	n, err := tx.DB().Exec(ctx, deletePasskey, person[:], id[:])
	return n == 1, err
}

// DeletePasskeys deletes all passkeys of a person.
func DeletePasskeys(ctx context.Context, tx *store.Tx, person till.ID) error {
	_, err := tx.DB().Exec(ctx, deletePasskeys, person[:])
	return err
}

// SetRecoveryCodes replaces a person's recovery codes, by their hashes.
func SetRecoveryCodes(ctx context.Context, tx *store.Tx, person till.ID, hashes [][32]byte) error {
	if _, err := tx.DB().Exec(ctx, deleteRecoveryCodes, person[:]); err != nil {
		return err
	}
	for _, h := range hashes {
		if _, err := tx.DB().Exec(ctx, insertRecoveryCode, person[:], h[:]); err != nil {
			return err
		}
	}
	return nil
}

// UseRecoveryCode deletes a recovery code and reports whether it was there.
func UseRecoveryCode(ctx context.Context, tx *store.Tx, person till.ID, hash [32]byte) (bool, error) {
	n, err := tx.DB().Exec(ctx, deleteRecoveryCode, person[:], hash[:])
	return n == 1, err
}
