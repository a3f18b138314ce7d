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

var selectFirstLink = db.Define(db.SQL{Name: "audit_chain.selectFirst",
	SQLite: `SELECT sequence, covers, hash FROM audit_seals WHERE client_id = $1 ORDER BY sequence ASC LIMIT 1`})

var selectLastLink = db.Define(db.SQL{Name: "audit_chain.selectLast",
	SQLite: `SELECT sequence, covers, hash FROM audit_seals WHERE client_id = $1 ORDER BY sequence DESC LIMIT 1`})

var selectLastUnkeyedLink = db.Define(db.SQL{Name: "audit_chain.selectLastUnkeyed",
	SQLite: `SELECT sequence, covers, hash FROM audit_chain WHERE client_id = $1 ORDER BY sequence DESC LIMIT 1`})

var selectLinks = db.Define(db.SQL{Name: "audit_chain.select",
	SQLite: `SELECT sequence, covers, hash FROM audit_seals WHERE client_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`})

var selectUnkeyedLinks = db.Define(db.SQL{Name: "audit_chain.selectUnkeyed",
	SQLite: `SELECT sequence, covers, hash FROM audit_chain WHERE client_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`})

var insertLink = db.Define(db.SQL{Name: "audit_chain.insert",
	SQLite: `INSERT INTO audit_seals (client_id, sequence, covers, hash) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`})

var selectClientsToChain = db.Define(db.SQL{Name: "audit_chain.selectClientsToChain",
	SQLite: `SELECT h.client_id FROM client_heads h
		WHERE h.last_audit > coalesce((SELECT max(c.sequence) FROM audit_seals c WHERE c.client_id = h.client_id), 0) LIMIT $1`})

// ChainLink is one link of a client's audit chain: it seals the row of its number
// and those before it, back to the link before or further. Its hash is that row's and the hash before
// it, whether or not that one is a link.
type ChainLink struct {
	Sequence int64
	Covers   int64 // how many rows, at least; 0 for the link by which a chain of plain links became one under the key
	Hash     [32]byte
}

// ChainKey is what links are made with, so that nobody who has only the
// database can make one.
type ChainKey []byte

// FirstLink returns the oldest link of a client's chain, LastLink the newest;
// the zero ChainLink if there is none.
func (tx *Tx) FirstLink(ctx context.Context, client till.ID) (ChainLink, error) {
	return tx.endLink(ctx, selectFirstLink, client)
}

func (tx *Tx) LastLink(ctx context.Context, client till.ID) (ChainLink, error) {
	return tx.endLink(ctx, selectLastLink, client)
}

// LastUnkeyedLink is LastLink of the links from before there was a key.
func (tx *Tx) LastUnkeyedLink(ctx context.Context, client till.ID) (ChainLink, error) {
	return tx.endLink(ctx, selectLastUnkeyedLink, client)
}

func (tx *Tx) endLink(ctx context.Context, q *db.SQL, client till.ID) (ChainLink, error) {
	var s ChainLink
	var hash []byte
	_, err := tx.db.QueryRow(ctx, q, []any{client[:]}, &s.Sequence, &s.Covers, &hash)
	copy(s.Hash[:], hash)
	return s, err
}

// ChainLinks returns up to limit links of a client's chain beyond a sequence.
func (tx *Tx) ChainLinks(ctx context.Context, client till.ID, after int64, limit int) ([]ChainLink, error) {
	return tx.readLinks(ctx, selectLinks, client, after, limit)
}

// UnkeyedLinks is ChainLinks of the links from before there was a key.
func (tx *Tx) UnkeyedLinks(ctx context.Context, client till.ID, after int64, limit int) ([]ChainLink, error) {
	return tx.readLinks(ctx, selectUnkeyedLinks, client, after, limit)
}

func (tx *Tx) readLinks(ctx context.Context, q *db.SQL, client till.ID, after int64, limit int) ([]ChainLink, error) {
	var out []ChainLink
	err := tx.db.Query(ctx, q, []any{client[:], after, limit}, func(r db.Row) error {
		var s ChainLink
		var hash []byte
		err := r.Scan(&s.Sequence, &s.Covers, &hash)
		copy(s.Hash[:], hash)
		out = append(out, s)
		return err
	})
	return out, err
}

// InsertLink appends a link to a client's chain, unless it is there.
func (tx *Tx) InsertLink(ctx context.Context, client till.ID, s ChainLink) error {
	_, err := tx.db.Exec(ctx, insertLink,
		client[:], s.Sequence, s.Covers, s.Hash[:])
	return err
}

// ClientsToChain returns up to limit clients whose audit log is ahead of
// its chain.
func (tx *Tx) ClientsToChain(ctx context.Context, limit int) ([]till.ID, error) {
	var out []till.ID
	err := tx.db.Query(ctx, selectClientsToChain,
		[]any{limit}, func(r db.Row) error {
			var id till.ID
			err := r.Scan(idDest(&id))
			out = append(out, id)
			return err
		})
	return out, err
}

// NextLink returns the link that seals a row, and what the one before has sealed.
// Each column goes in under its name and only if it has something in it, so that a
// column that a later release adds leaves the seals of older rows as they are.
func (k ChainKey) NextLink(before ChainLink, a *AuditRow) ChainLink {
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
	return ChainLink{Sequence: a.Sequence, Covers: before.Covers + 1, Hash: [32]byte(h.Sum(nil))}
}

func idText(id till.ID) string {
	if id.IsZero() {
		return ""
	}
	return string(id[:])
}

// LinkUnkeyed returns the link by which a chain of plain links goes on under the
// key.
func (k ChainKey) LinkUnkeyed(client till.ID, plain ChainLink) ChainLink {
	h := hmac.New(sha256.New, k)
	h.Write([]byte("plain"))
	h.Write(plain.Hash[:])
	h.Write(client[:])
	writeNumbers(h, plain.Sequence)
	return ChainLink{Sequence: plain.Sequence, Hash: [32]byte(h.Sum(nil))}
}

// NextUnkeyedLink is NextLink as it was before there was a key, by which old links
// are compared. A row without cause and evidence, as all were once, has the
// hash it had then.
func NextUnkeyedLink(before ChainLink, a *AuditRow) ChainLink {
	h := sha256.New()
	h.Write(before.Hash[:])
	h.Write(a.ClientID[:])
	writeNumbers(h, a.Sequence, int64(a.At))
	h.Write(a.SubjectID[:])
	writeTexts(h, a.Actor, a.Action, a.Detail)
	if a.Cause != "" || len(a.Evidence) > 0 {
		writeTexts(h, a.Cause, string(a.Evidence))
	}
	return ChainLink{Sequence: a.Sequence, Covers: before.Covers + 1, Hash: [32]byte(h.Sum(nil))}
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
