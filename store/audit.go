package store

import (
	"context"

	"till"
	"till/internal/db"
)

const auditColumns = `sequence, at, actor, action, subject_id, detail, cause, evidence`

var insertAudit = db.Define(db.SQL{Name: "audit.insert",
	SQLite: `INSERT INTO audit (client_id, sequence, at, actor, action, subject_id, detail, cause, evidence)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
	Postgres: `INSERT INTO audit (client_id, sequence, at, actor, action, subject_id, detail, cause, evidence)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7, u.a8, u.a9
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::text[]) AS a4,
			unnest($5::text[]) AS a5, unnest($6::bytea[]) AS a6, unnest($7::text[]) AS a7, unnest($8::text[]) AS a8, unnest($9::bytea[]) AS a9 LIMIT $10::bigint) AS u`,
	Arrays: true})

var selectAudit = db.Define(db.SQL{Name: "audit.select",
	SQLite: `SELECT ` + auditColumns + ` FROM audit WHERE client_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`})

var selectAuditOf = db.Define(db.SQL{Name: "audit.selectOf",
	SQLite: `SELECT ` + auditColumns + ` FROM audit WHERE client_id = $1 AND sequence > $2 AND sequence <= $3 AND subject_id = $4 ORDER BY sequence`})

var selectAuditTime = db.Define(db.SQL{Name: "audit.selectTime",
	SQLite: `SELECT at FROM audit WHERE client_id = $1 AND sequence = $2`})

// AuditRow says who did what. Every act of a person and every money decision
// has one, in the commit that did it.
type AuditRow struct {
	ClientID  till.ID
	Sequence  int64 // dense per client, from 1
	At        till.Time
	Actor     string // "person:<name>" (a bare name in old rows), "cli:<user>", "api:<key id>" or "engine"
	Action    string
	SubjectID till.ID // zero where there is none
	Detail    string  // never a secret, never a full phone number
	Cause     string  // what made the actor act: a request, a command, a call to an operator; "" in rows from before it was kept
	Evidence  []byte  // SHA-256 of what the act rests on; nil where there is nothing to show
}

// Size returns about how many bytes the row takes.
func (a *AuditRow) Size() int64 {
	const fixed = 256
	return fixed + int64(len(a.Actor)+len(a.Action)+len(a.Detail)+len(a.Cause)+len(a.Evidence))
}

type causeKey struct{}

// WithCause returns a context for acts that happen for one reason: audit rows
// that name no cause of their own are given this one. It is the one thing
// that rides in a context, because everybody between the request and the row
// would only hand it on.
func WithCause(ctx context.Context, cause string) context.Context {
	return context.WithValue(ctx, causeKey{}, cause)
}

// CauseOf returns what WithCause put into a context, for a row that is written
// later and in another; "" if there is none.
func CauseOf(ctx context.Context) string {
	cause, _ := ctx.Value(causeKey{}).(string)
	return cause
}

// InsertAudit appends to the clients' audit logs.
func (tx *Tx) InsertAudit(ctx context.Context, rows []*AuditRow) error {
	cause := CauseOf(ctx)
	args := make([][]any, len(rows))
	for i, a := range rows {
		if a.Cause == "" {
			a.Cause = cause
		}
		args[i] = []any{a.ClientID[:], a.Sequence, int64(a.At), a.Actor, a.Action, orNull(a.SubjectID), a.Detail, orNull(a.Cause), bytesOrNull(a.Evidence)}
	}
	return tx.db.Defer(insertAudit, args)
}

func scanAudit(r db.Row, client till.ID) (*AuditRow, error) {
	a := &AuditRow{ClientID: client}
	err := r.Scan(&a.Sequence, &a.At, &a.Actor, &a.Action, idDest(&a.SubjectID), &a.Detail, textDest(&a.Cause), &a.Evidence)
	return a, err
}

// Audit returns up to limit audit rows of a client beyond a sequence.
func (tx *Tx) Audit(ctx context.Context, client till.ID, after int64, limit int) ([]*AuditRow, error) {
	var out []*AuditRow
	err := tx.db.Query(ctx, selectAudit,
		[]any{client[:], after, limit}, func(r db.Row) error {
			a, err := scanAudit(r, client)
			out = append(out, a)
			return err
		})
	return out, err
}

// AuditOf returns the audit rows about a subject among those beyond one
// sequence and up to another. The log has no index by subject, which every
// commit would pay for: whoever asks goes through it in slices.
func (tx *Tx) AuditOf(ctx context.Context, ref Ref, after, until int64) ([]*AuditRow, error) {
	var out []*AuditRow
	err := tx.db.Query(ctx, selectAuditOf,
		[]any{ref.Client[:], after, until, ref.ID[:]}, func(r db.Row) error {
			a, err := scanAudit(r, ref.Client)
			out = append(out, a)
			return err
		})
	return out, err
}

// AuditBefore returns the sequence of a client's last audit row from before a
// moment, 0 if there is none. Times grow with the sequence, so it is found by
// halving.
func (tx *Tx) AuditBefore(ctx context.Context, client till.ID, at till.Time) (int64, error) {
	head, err := tx.Head(ctx, client)
	if err != nil || head == nil {
		return 0, err
	}
	low, high := int64(0), head.LastAudit // before at; not
	for low < high {
		mid := (low + high + 1) / 2
		var made till.Time
		if _, err := tx.db.QueryRow(ctx, selectAuditTime, []any{client[:], mid}, &made); err != nil {
			return 0, err
		}
		if made < at {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low, nil
}
