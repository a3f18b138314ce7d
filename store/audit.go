package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"till"
)

// AuditRow says who did what. Every act of a person and every money decision
// has one, in the commit that did it.
type AuditRow struct {
	ClientID  till.ID
	Sequence  int64 // dense per client, from 1
	At        till.Time
	Actor     string // a person, "api:<key id>" or "engine"
	Action    string
	SubjectID till.ID // zero where there is none
	Detail    string  // never a secret, never a full phone number
}

// InsertAudit appends to the clients' audit logs.
func (tx *Tx) InsertAudit(ctx context.Context, rows []*AuditRow) error {
	args := make([][]any, len(rows))
	for i, a := range rows {
		args[i] = []any{a.ClientID[:], a.Sequence, int64(a.At), a.Actor, a.Action, orNull(a.SubjectID), a.Detail}
	}
	return tx.set(ctx, `INSERT INTO audit (client_id, sequence, at, actor, action, subject_id, detail) VALUES (?, ?, ?, ?, ?, ?, ?)`, args)
}

// Audit returns up to limit audit rows of a client beyond a sequence.
func (tx *Tx) Audit(ctx context.Context, client till.ID, after int64, limit int) ([]*AuditRow, error) {
	var out []*AuditRow
	err := tx.rows(ctx, `SELECT sequence, at, actor, action, subject_id, detail FROM audit WHERE client_id = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
		[]any{client[:], after, limit}, func(r row) error {
			a := &AuditRow{ClientID: client}
			err := r.Scan(&a.Sequence, &a.At, &a.Actor, &a.Action, idDest(&a.SubjectID), &a.Detail)
			out = append(out, a)
			return err
		})
	return out, err
}

// Seal is one link of a client's audit chain.
type Seal struct {
	Sequence int64
	Hash     [32]byte
}

// LastSeal returns the newest link of a client's chain; the zero Seal if
// there is none.
func (tx *Tx) LastSeal(ctx context.Context, client till.ID) (Seal, error) {
	var s Seal
	var hash []byte
	_, err := tx.one(ctx, `SELECT sequence, hash FROM audit_chain WHERE client_id = ? ORDER BY sequence DESC LIMIT 1`, []any{client[:]}, &s.Sequence, &hash)
	copy(s.Hash[:], hash)
	return s, err
}

// Seals returns up to limit links of a client's chain beyond a sequence.
func (tx *Tx) Seals(ctx context.Context, client till.ID, after int64, limit int) ([]Seal, error) {
	var out []Seal
	err := tx.rows(ctx, `SELECT sequence, hash FROM audit_chain WHERE client_id = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
		[]any{client[:], after, limit}, func(r row) error {
			var s Seal
			var hash []byte
			err := r.Scan(&s.Sequence, &hash)
			copy(s.Hash[:], hash)
			out = append(out, s)
			return err
		})
	return out, err
}

// InsertSeals appends links to a client's chain.
func (tx *Tx) InsertSeals(ctx context.Context, client till.ID, seals []Seal) error {
	args := make([][]any, len(seals))
	for i := range seals {
		args[i] = []any{client[:], seals[i].Sequence, seals[i].Hash[:]}
	}
	return tx.set(ctx, `INSERT INTO audit_chain (client_id, sequence, hash) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`, args)
}

// UnsealedClients returns up to limit clients whose audit log is ahead of
// its chain.
func (tx *Tx) UnsealedClients(ctx context.Context, limit int) ([]till.ID, error) {
	var out []till.ID
	err := tx.rows(ctx, `SELECT h.client_id FROM client_heads h
		WHERE h.last_audit > coalesce((SELECT max(c.sequence) FROM audit_chain c WHERE c.client_id = h.client_id), 0) LIMIT ?`,
		[]any{limit}, func(r row) error {
			var id till.ID
			err := r.Scan(idDest(&id))
			out = append(out, id)
			return err
		})
	return out, err
}

// SealOf returns the link that seals a row after the link before it.
func SealOf(before Seal, a *AuditRow) Seal {
	h := sha256.New()
	h.Write(before.Hash[:])
	h.Write(a.ClientID[:])
	var n [16]byte
	binary.BigEndian.PutUint64(n[:8], uint64(a.Sequence))
	binary.BigEndian.PutUint64(n[8:], uint64(a.At))
	h.Write(n[:])
	h.Write(a.SubjectID[:])
	for _, text := range []string{a.Actor, a.Action, a.Detail} {
		binary.BigEndian.PutUint64(n[:8], uint64(len(text)))
		h.Write(n[:8])
		h.Write([]byte(text))
	}
	return Seal{Sequence: a.Sequence, Hash: [32]byte(h.Sum(nil))}
}
