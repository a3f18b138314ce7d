package store

import (
	"context"

	"till"
	"till/internal/db"
)

var selectOperatorToken = db.Define(db.SQL{Name: "operator_tokens.select",
	SQLite: `SELECT version, sealed, expires_at, refresh_at, lease_until, lease_owner FROM operator_tokens WHERE connection = $1 AND name = $2`})

var insertOperatorToken = db.Define(db.SQL{Name: "operator_tokens.insert",
	SQLite: `INSERT INTO operator_tokens (connection, name, version, sealed, expires_at, refresh_at, lease_until, lease_owner)
		VALUES ($1, $2, 1, $3, $4, $5, $6, $7) ON CONFLICT (connection, name) DO NOTHING`})

var swapOperatorToken = db.Define(db.SQL{Name: "operator_tokens.swap",
	SQLite: `UPDATE operator_tokens SET version = version + 1, sealed = $1, expires_at = $2, refresh_at = $3, lease_until = $4, lease_owner = $5
		WHERE connection = $6 AND name = $7 AND version = $8`})

var deleteOperatorTokens = db.Define(db.SQL{Name: "operator_tokens.delete",
	SQLite: `DELETE FROM operator_tokens WHERE connection = $1 AND expires_at < $2 AND lease_until < $3`})

// OperatorToken is what an operator lets us in by, sealed.
type OperatorToken struct {
	Connection, Name string
	Version          int64  // 0: it was never written
	Sealed           []byte // empty: there is none
	ExpiresAt        till.Time
	RefreshAt        till.Time // from then on it is renewed, while it still works
	LeaseUntil       till.Time // nobody else asks for a new one before
	LeaseOwner       till.ID
}

// OperatorToken returns a token of a connection; one of version 0 if it was
// never written.
func (tx *Tx) OperatorToken(ctx context.Context, connection, name string) (*OperatorToken, error) {
	t := &OperatorToken{Connection: connection, Name: name}
	_, err := tx.db.QueryRow(ctx, selectOperatorToken,
		[]any{connection, name}, &t.Version, &t.Sealed, &t.ExpiresAt, &t.RefreshAt, &t.LeaseUntil, idDest(&t.LeaseOwner))
	return t, err
}

// SwapOperatorToken writes a token if its row is still of the version that was
// read, moves the version on, and reports whether it was.
func (tx *Tx) SwapOperatorToken(ctx context.Context, t *OperatorToken) (bool, error) {
	var n int64
	var err error
	if t.Sealed == nil {
		t.Sealed = []byte{}
	}
	if t.Version == 0 {
		n, err = tx.db.Exec(ctx, insertOperatorToken,
			t.Connection, t.Name, t.Sealed, int64(t.ExpiresAt), int64(t.RefreshAt), int64(t.LeaseUntil), t.LeaseOwner[:])
	} else {
		n, err = tx.db.Exec(ctx, swapOperatorToken,
			t.Sealed, int64(t.ExpiresAt), int64(t.RefreshAt), int64(t.LeaseUntil), t.LeaseOwner[:], t.Connection, t.Name, t.Version)
	}
	if n == 1 {
		t.Version++
	}
	return n == 1, err
}

// DeleteOperatorTokens deletes the tokens of a connection that ran out before a
// moment and that nobody is renewing: those of settings it had once.
func (tx *Tx) DeleteOperatorTokens(ctx context.Context, connection string, before till.Time) error {
	_, err := tx.db.Exec(ctx, deleteOperatorTokens, connection, int64(before), int64(before))
	return err
}
