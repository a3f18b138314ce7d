package auditlog

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"strings"
	"time"

	"till"
	"till/internal/db"
	"till/store"
)

const auditColumns = `sequence, at, actor, action, subject_id, detail, cause, evidence`

var selectAudit = db.Define(db.SQL{Name: "audit.select",
	SQLite: `SELECT ` + auditColumns + ` FROM audit WHERE client_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`})

var selectAuditOf = db.Define(db.SQL{Name: "audit.selectOf",
	SQLite: `SELECT ` + auditColumns + ` FROM audit WHERE client_id = $1 AND sequence > $2 AND sequence <= $3 AND subject_id = $4 ORDER BY sequence`})

// The index audit_by_subject leaves the engine's rows out. SQLite
// must be forced to use it: it would walk the client's whole log.
var selectActs = db.Define(db.SQL{Name: "audit.selectActs",
	SQLite: `SELECT ` + auditColumns + ` FROM audit INDEXED BY audit_by_subject WHERE client_id = $1 AND subject_id = $2 AND actor <> 'engine' AND subject_id IS NOT NULL
		ORDER BY sequence DESC LIMIT $3`,
	Postgres: `SELECT ` + auditColumns + ` FROM audit WHERE client_id = $1 AND subject_id = $2 AND actor <> 'engine' AND subject_id IS NOT NULL
		ORDER BY sequence DESC LIMIT $3`})

// Newest first, within so many rows: a search for one person among the engine's rows
// reads a bounded part of the log at a time.
var selectAuditDown = db.Define(db.SQL{Name: "audit.selectDown",
	SQLite: `SELECT ` + auditColumns + ` FROM audit WHERE client_id = $1 AND sequence < $2 AND sequence >= $3 AND at >= $4 AND actor <> $5
		AND lower(actor) LIKE $6 ESCAPE '!' AND action LIKE $7 ESCAPE '!' ORDER BY sequence DESC LIMIT $8`})

var selectAuditTime = db.Define(db.SQL{Name: "audit.selectTime",
	SQLite: `SELECT at FROM audit WHERE client_id = $1 AND sequence = $2`})

// maxDecisionRows is how far behind a moment in the log the rows of one decision are looked
// for. They follow each other, and are fewer.
const maxDecisionRows = 16

var selectDecisions = db.Define(db.SQL{Name: "audit.selectDecisions",
	SQLite: store.SearchBefore("audit", "at", "last_audit") + ` SELECT ` + auditColumns + ` FROM audit WHERE client_id = $1
		AND sequence > (SELECT max(low) FROM search) AND sequence <= (SELECT max(low) FROM search) + $3 AND at <= $4 AND subject_id = $5 AND actor = 'engine' ORDER BY sequence`})

var selectAuditBefore = db.Define(db.SQL{Name: "audit.selectBefore",
	SQLite: store.SearchBefore("audit", "at", "last_audit") + ` SELECT max(low) FROM search`})

// A client may have two chains. audit_seals has the links that were made with the
// key. audit_chain has the links from before there was a key; they never change.

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

func scanAudit(r db.Row, client till.ID) (*store.AuditRow, error) {
	a := &store.AuditRow{ClientID: client}
	err := r.Scan(&a.Sequence, &a.At, &a.Actor, &a.Action, db.ID(&a.SubjectID), &a.Detail, db.Text(&a.Cause), &a.Evidence)
	return a, err
}

// Read returns up to limit audit rows of a client beyond a sequence.
func Read(ctx context.Context, tx *store.Tx, client till.ID, after int64, limit int) ([]*store.AuditRow, error) {
	return db.ReadAll(ctx, tx.DB(), selectAudit, []any{client[:], after, limit}, func(r db.Row) (*store.AuditRow, error) {
		return scanAudit(r, client)
	})
}

// Of returns the audit rows about a subject among those beyond one sequence
// and up to another. The log has no index by subject, because every commit would
// pay for it. A caller reads the log in slices.
func Of(ctx context.Context, tx *store.Tx, ref store.Ref, after, until int64) ([]*store.AuditRow, error) {
	return db.ReadAll(ctx, tx.DB(), selectAuditOf, []any{ref.Client[:], after, until, ref.ID[:]}, func(r db.Row) (*store.AuditRow, error) {
		return scanAudit(r, ref.Client)
	})
}

// ActsOn returns what others than the engine did to a subject, newest first.
func ActsOn(ctx context.Context, tx *store.Tx, ref store.Ref, limit int) ([]*store.AuditRow, error) {
	var out []*store.AuditRow
	err := tx.DB().Query(ctx, selectActs, []any{ref.Client[:], ref.ID[:], limit}, func(r db.Row) error {
		a, err := scanAudit(r, ref.Client)
		out = append(out, a)
		return err
	})
	return out, err
}

// DecisionsAt returns the engine's rows about a subject that were written from one of the
// moments on until span later, oldest first.
func DecisionsAt(ctx context.Context, tx *store.Tx, ref store.Ref, moments []till.Time, span time.Duration) ([]*store.AuditRow, error) {
	args := make([][]any, len(moments))
	for i, at := range moments {
		args[i] = []any{ref.Client[:], int64(at), maxDecisionRows, int64(at.Add(span)), ref.ID[:]}
	}
	var out []*store.AuditRow
	err := tx.DB().QueryEach(ctx, selectDecisions, args, func(_ int, r db.Row) error {
		a, err := scanAudit(r, ref.Client)
		out = append(out, a)
		return err
	})
	slices.SortFunc(out, func(a, b *store.AuditRow) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return slices.CompactFunc(out, func(a, b *store.AuditRow) bool { return a.Sequence == b.Sequence }), err
}

// AuditSearch says which rows of a log are read, newest first. Zero fields do not
// filter.
type AuditSearch struct {
	Before   int64     // rows below this sequence
	Floor    int64     // and not below this one
	From     till.Time // not older
	NoEngine bool      // what people and keys did
	Actor    string    // a part of the actor, whatever its case
	Action   string    // what the action begins with
}

// Down returns up to limit rows of a client's log, newest first.
func Down(ctx context.Context, tx *store.Tx, client till.ID, f AuditSearch, limit int) ([]*store.AuditRow, error) {
	without := ""
	if f.NoEngine {
		without = "engine"
	}
	actor := "%"
	if f.Actor != "" {
		actor = "%" + escapeLike(strings.ToLower(f.Actor)) + "%"
	}
	return db.ReadAll(ctx, tx.DB(), selectAuditDown, []any{client[:], f.Before, f.Floor, int64(f.From), without, actor, escapeLike(f.Action) + "%", limit}, func(r db.Row) (*store.AuditRow, error) {
		return scanAudit(r, client)
	})
}

// escapeLike makes a text stand for itself in a pattern with ESCAPE '!'.
func escapeLike(s string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(s)
}

// CountBefore returns the sequence of a client's last audit row from before a
// moment, 0 if there is none.
func CountBefore(ctx context.Context, tx *store.Tx, client till.ID, at till.Time) (n int64, err error) {
	_, err = tx.DB().QueryRow(ctx, selectAuditBefore, []any{client[:], int64(at)}, &n)
	return n, err
}

// At returns when a row of a log was written, zero if there is none.
func At(ctx context.Context, tx *store.Tx, client till.ID, sequence int64) (at till.Time, err error) {
	_, err = tx.DB().QueryRow(ctx, selectAuditTime, []any{client[:], sequence}, &at)
	return at, err
}

// ChainLink is one link of a client's audit chain. It covers the audit row of its
// sequence and the rows before it, back to the previous link or further. Its hash
// is made from that row and from the hash before it, whether or not that one is a
// link.
type ChainLink struct {
	Sequence int64
	Covers   int64 // how many rows, at least; 0 for the link by which a chain of plain links became one under the key
	Hash     [32]byte
}

// ChainKey is the key that links are made with. Without it, an attacker who has
// the database cannot make a valid link.
type ChainKey []byte

// FirstLink returns the oldest link of a client's chain, LastLink the newest;
// the zero ChainLink if there is none.
func FirstLink(ctx context.Context, tx *store.Tx, client till.ID) (ChainLink, error) {
	return endLink(ctx, tx, selectFirstLink, client)
}

func LastLink(ctx context.Context, tx *store.Tx, client till.ID) (ChainLink, error) {
	return endLink(ctx, tx, selectLastLink, client)
}

// LastUnkeyedLink is LastLink of the links from before there was a key.
func LastUnkeyedLink(ctx context.Context, tx *store.Tx, client till.ID) (ChainLink, error) {
	return endLink(ctx, tx, selectLastUnkeyedLink, client)
}

func endLink(ctx context.Context, tx *store.Tx, q *db.SQL, client till.ID) (ChainLink, error) {
	var s ChainLink
	var hash []byte
	_, err := tx.DB().QueryRow(ctx, q, []any{client[:]}, &s.Sequence, &s.Covers, &hash)
	copy(s.Hash[:], hash)
	return s, err
}

// ChainLinks returns up to limit links of a client's chain beyond a sequence.
func ChainLinks(ctx context.Context, tx *store.Tx, client till.ID, after int64, limit int) ([]ChainLink, error) {
	return readLinks(ctx, tx, selectLinks, client, after, limit)
}

// UnkeyedLinks is ChainLinks of the links from before there was a key.
func UnkeyedLinks(ctx context.Context, tx *store.Tx, client till.ID, after int64, limit int) ([]ChainLink, error) {
	return readLinks(ctx, tx, selectUnkeyedLinks, client, after, limit)
}

func readLinks(ctx context.Context, tx *store.Tx, q *db.SQL, client till.ID, after int64, limit int) ([]ChainLink, error) {
	return db.ReadAll(ctx, tx.DB(), q, []any{client[:], after, limit}, func(r db.Row) (ChainLink, error) {
		var s ChainLink
		var hash []byte
		err := r.Scan(&s.Sequence, &s.Covers, &hash)
		copy(s.Hash[:], hash)
		return s, err
	})
}

// InsertLink appends a link to a client's chain, unless it is there.
func InsertLink(ctx context.Context, tx *store.Tx, client till.ID, s ChainLink) error {
	_, err := tx.DB().Exec(ctx, insertLink,
		client[:], s.Sequence, s.Covers, s.Hash[:])
	return err
}

// ClientsToChain returns up to limit clients whose audit log is ahead of
// its chain.
func ClientsToChain(ctx context.Context, tx *store.Tx, limit int) ([]till.ID, error) {
	return db.ReadAll(ctx, tx.DB(), selectClientsToChain, []any{limit}, func(r db.Row) (till.ID, error) {
		var id till.ID
		err := r.Scan(db.ID(&id))
		return id, err
	})
}

// NextLink returns the link that covers a row and everything that the link before
// it covers. A column is hashed under its name, and only if it is not empty. So a
// column that a later release adds does not change the hashes of older rows.
func (k ChainKey) NextLink(before ChainLink, a *store.AuditRow) ChainLink {
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
func NextUnkeyedLink(before ChainLink, a *store.AuditRow) ChainLink {
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
