package auditlog

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var insertNote = db.Define(db.SQL{Name: "notes.insert",
	SQLite: `INSERT INTO notes (client_id, subject_id, id, actor, text, created_at) VALUES ($1, $2, $3, $4, $5, $6)`})

var selectNotes = db.Define(db.SQL{Name: "notes.select",
	SQLite: `SELECT id, actor, text, created_at FROM notes WHERE client_id = $1 AND subject_id = $2 ORDER BY created_at, id LIMIT $3`})

// Note is what a person wrote about a payment or a payout. The audit log has who wrote it and the
// text's SHA-256, not the text, which may hold a phone number.
type Note struct {
	Ref       store.Ref // of the payment or payout
	ID        till.ID   // chosen by the form: posted twice it is one note
	Actor     string
	Text      string
	CreatedAt till.Time
}

// InsertNote writes a note.
func InsertNote(ctx context.Context, tx *store.Tx, n *Note) error {
	_, err := tx.DB().Exec(ctx, insertNote, n.Ref.Client[:], n.Ref.ID[:], n.ID[:], n.Actor, n.Text, int64(n.CreatedAt))
	return err
}

// Notes returns up to limit notes on a payment or payout, the oldest first.
func Notes(ctx context.Context, tx *store.Tx, ref store.Ref, limit int) ([]*Note, error) {
	return db.ReadAll(ctx, tx.DB(), selectNotes, []any{ref.Client[:], ref.ID[:], limit}, func(r db.Row) (*Note, error) {
		n := &Note{Ref: ref}
		err := r.Scan(db.ID(&n.ID), &n.Actor, &n.Text, &n.CreatedAt)
		return n, err
	})
}
