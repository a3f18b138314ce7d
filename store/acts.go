package store

import (
	"context"

	"till"
	"till/internal/db"
)

var insertAudit = db.DefineByClient(1, db.SQL{Name: "audit.insert",
	SQLite: `INSERT INTO audit (client_id, sequence, at, actor, action, subject_id, detail, cause, evidence)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
	Postgres: `INSERT INTO audit (client_id, sequence, at, actor, action, subject_id, detail, cause, evidence)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7, u.a8, u.a9
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::text[]) AS a4,
			unnest($5::text[]) AS a5, unnest($6::bytea[]) AS a6, unnest($7::text[]) AS a7, unnest($8::text[]) AS a8, unnest($9::bytea[]) AS a9 LIMIT $10::bigint) AS u`,
	Arrays: true})

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
		args[i] = []any{a.ClientID[:], a.Sequence, int64(a.At), a.Actor, a.Action, db.OrNull(a.SubjectID), a.Detail, db.OrNull(a.Cause), db.BytesOrNull(a.Evidence)}
	}
	return tx.db.Defer(insertAudit, args)
}

// AuditClients adds one row to the audit logs of some clients.
func AuditClients(ctx context.Context, tx *Tx, clients []till.ID, by, action, detail string) error {
	heads, err := tx.LockLogs(ctx, clients)
	if err != nil {
		return err
	}
	rows := make([]*AuditRow, 0, len(heads))
	for _, h := range heads {
		rows = append(rows, &AuditRow{ClientID: h.ClientID, Sequence: h.NextAudit(), At: h.NextTime(), Actor: by, Action: action, Detail: detail})
	}
	if err := tx.InsertAudit(ctx, rows); err != nil {
		return err
	}
	return tx.SaveHeads(ctx, heads)
}
