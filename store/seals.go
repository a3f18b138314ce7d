package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"till"
	"till/internal/db"
)

// A client may have two chains: the links made with the key, in audit_seals, and
// those from before there was one, in audit_chain, which stay as they are.

var selectFirstSeal = db.Define(db.SQL{Name: "seals.selectFirstSeal",
	SQLite: `SELECT sequence, covers, hash FROM audit_seals WHERE client_id = $1 ORDER BY sequence ASC LIMIT 1`})

var selectLastSeal = db.Define(db.SQL{Name: "seals.selectLastSeal",
	SQLite: `SELECT sequence, covers, hash FROM audit_seals WHERE client_id = $1 ORDER BY sequence DESC LIMIT 1`})

var selectLastPlainSeal = db.Define(db.SQL{Name: "seals.selectLastPlainSeal",
	SQLite: `SELECT sequence, covers, hash FROM audit_chain WHERE client_id = $1 ORDER BY sequence DESC LIMIT 1`})

var selectSeals = db.Define(db.SQL{Name: "seals.selectSeals",
	SQLite: `SELECT sequence, covers, hash FROM audit_seals WHERE client_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`})

var selectPlainSeals = db.Define(db.SQL{Name: "seals.selectPlainSeals",
	SQLite: `SELECT sequence, covers, hash FROM audit_chain WHERE client_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`})

var insertSeal = db.Define(db.SQL{Name: "seals.insert",
	SQLite: `INSERT INTO audit_seals (client_id, sequence, covers, hash) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`})

var selectUnsealedClients = db.Define(db.SQL{Name: "seals.selectUnsealedClients",
	SQLite: `SELECT h.client_id FROM client_heads h
		WHERE h.last_audit > coalesce((SELECT max(c.sequence) FROM audit_seals c WHERE c.client_id = h.client_id), 0) LIMIT $1`})

// Seal is one link of a client's audit chain: it seals the row of its number
// and those before it, back to the link before or further. Its hash is that row's and the hash before
// it, whether or not that one is a link.
type Seal struct {
	Sequence int64
	Covers   int64 // how many rows, at least; 0 for the link by which a chain of plain links became one under the key
	Hash     [32]byte
}

// SealKey is what links are made with, so that nobody who has only the
// database can make one.
type SealKey []byte

// FirstSeal returns the oldest link of a client's chain, LastSeal the newest;
// the zero Seal if there is none.
func (tx *Tx) FirstSeal(ctx context.Context, client till.ID) (Seal, error) {
	return tx.endSeal(ctx, selectFirstSeal, client)
}

func (tx *Tx) LastSeal(ctx context.Context, client till.ID) (Seal, error) {
	return tx.endSeal(ctx, selectLastSeal, client)
}

// LastPlainSeal is LastSeal of the links from before there was a key.
func (tx *Tx) LastPlainSeal(ctx context.Context, client till.ID) (Seal, error) {
	return tx.endSeal(ctx, selectLastPlainSeal, client)
}

func (tx *Tx) endSeal(ctx context.Context, q *db.SQL, client till.ID) (Seal, error) {
	var s Seal
	var hash []byte
	_, err := tx.db.QueryRow(ctx, q, []any{client[:]}, &s.Sequence, &s.Covers, &hash)
	copy(s.Hash[:], hash)
	return s, err
}

// Seals returns up to limit links of a client's chain beyond a sequence.
func (tx *Tx) Seals(ctx context.Context, client till.ID, after int64, limit int) ([]Seal, error) {
	return tx.seals(ctx, selectSeals, client, after, limit)
}

// PlainSeals is Seals of the links from before there was a key.
func (tx *Tx) PlainSeals(ctx context.Context, client till.ID, after int64, limit int) ([]Seal, error) {
	return tx.seals(ctx, selectPlainSeals, client, after, limit)
}

func (tx *Tx) seals(ctx context.Context, q *db.SQL, client till.ID, after int64, limit int) ([]Seal, error) {
	var out []Seal
	err := tx.db.Query(ctx, q, []any{client[:], after, limit}, func(r db.Row) error {
		var s Seal
		var hash []byte
		err := r.Scan(&s.Sequence, &s.Covers, &hash)
		copy(s.Hash[:], hash)
		out = append(out, s)
		return err
	})
	return out, err
}

// InsertSeal appends a link to a client's chain, unless it is there.
func (tx *Tx) InsertSeal(ctx context.Context, client till.ID, s Seal) error {
	_, err := tx.db.Exec(ctx, insertSeal,
		client[:], s.Sequence, s.Covers, s.Hash[:])
	return err
}

// UnsealedClients returns up to limit clients whose audit log is ahead of
// its chain.
func (tx *Tx) UnsealedClients(ctx context.Context, limit int) ([]till.ID, error) {
	var out []till.ID
	err := tx.db.Query(ctx, selectUnsealedClients,
		[]any{limit}, func(r db.Row) error {
			var id till.ID
			err := r.Scan(idDest(&id))
			out = append(out, id)
			return err
		})
	return out, err
}

// SealOf returns the link that seals a row, and what the one before has sealed.
// Each column goes in under its name and only if it has something in it, so that a
// column that a later release adds leaves the seals of older rows as they are.
func (k SealKey) SealOf(before Seal, a *AuditRow) Seal {
	h := hmac.New(sha256.New, k)
	h.Write(before.Hash[:])
	h.Write(a.ClientID[:])
	writeNumbers(h, a.Sequence, int64(a.At))
	for _, column := range []struct{ name, value string }{
		{"actor", a.Actor}, {"action", a.Action}, {"subject", idText(a.SubjectID)}, {"detail", a.Detail},
		{"cause", a.Cause}, {"evidence", string(a.Evidence)},
	} {
		if column.value != "" {
			writeTexts(h, column.name, column.value)
		}
	}
	return Seal{Sequence: a.Sequence, Covers: before.Covers + 1, Hash: [32]byte(h.Sum(nil))}
}

func idText(id till.ID) string {
	if id.IsZero() {
		return ""
	}
	return string(id[:])
}

// SealPlain returns the link by which a chain of plain links goes on under the
// key.
func (k SealKey) SealPlain(client till.ID, plain Seal) Seal {
	h := hmac.New(sha256.New, k)
	h.Write([]byte("plain"))
	h.Write(plain.Hash[:])
	h.Write(client[:])
	writeNumbers(h, plain.Sequence)
	return Seal{Sequence: plain.Sequence, Hash: [32]byte(h.Sum(nil))}
}

// PlainSealOf is SealOf as it was before there was a key, by which old links
// are compared. A row without cause and evidence, as all were once, has the
// hash it had then.
func PlainSealOf(before Seal, a *AuditRow) Seal {
	h := sha256.New()
	h.Write(before.Hash[:])
	h.Write(a.ClientID[:])
	writeNumbers(h, a.Sequence, int64(a.At))
	h.Write(a.SubjectID[:])
	writeTexts(h, a.Actor, a.Action, a.Detail)
	if a.Cause != "" || len(a.Evidence) > 0 {
		writeTexts(h, a.Cause, string(a.Evidence))
	}
	return Seal{Sequence: a.Sequence, Covers: before.Covers + 1, Hash: [32]byte(h.Sum(nil))}
}

func writeNumbers(h hash.Hash, numbers ...int64) {
	var b [8]byte
	for _, n := range numbers {
		binary.BigEndian.PutUint64(b[:], uint64(n))
		h.Write(b[:])
	}
}

// writeTexts writes texts so that one cannot be taken for a part of another.
func writeTexts(h hash.Hash, texts ...string) {
	for _, text := range texts {
		writeNumbers(h, int64(len(text)))
		h.Write([]byte(text))
	}
}
