package store

import (
	"context"

	"till"
	"till/internal/db"
)

const attemptColumns = `n, kind, connection, reference, outcome, code, detail, detail_code, detail_values, started_at, ended_at, repeats, last_at`

var selectLastAttempts = db.DefineByClient(1, db.SQL{Name: "attempts.selectLastAttempts",
	SQLite: `SELECT ` + attemptColumns + ` FROM attempts WHERE client_id = $1 AND subject_id = $2
		AND n = (SELECT max(l.n) FROM attempts l WHERE l.client_id = attempts.client_id AND l.subject_id = attempts.subject_id)`,
	Postgres: `SELECT u.nth, ` + attemptColumns + ` FROM attempts,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS nth LIMIT $4::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1]) AND subject_id = u.a2
			AND n = (SELECT max(l.n) FROM attempts l WHERE l.client_id = attempts.client_id AND l.subject_id = attempts.subject_id)`,
	Citus:  `SELECT ` + attemptColumns + ` FROM attempts WHERE client_id = $1 AND subject_id = $2 ORDER BY n DESC LIMIT 1`,
	Arrays: true})

var insertSubmits = db.DefineByClient(1, db.SQL{Name: "attempts.insertSubmits",
	SQLite: `INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, started_at, first_send) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
	Postgres: `INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, started_at, first_send)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7, u.a8
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::text[]) AS a4,
			unnest($5::text[]) AS a5, unnest($6::bytea[]) AS a6, unnest($7::bigint[]) AS a7, unnest($8::bigint[]) AS a8 LIMIT $9::bigint) AS u`,
	Arrays: true})

var endSends = db.DefineByClient(8, db.SQL{Name: "attempts.endSends",
	SQLite: `UPDATE attempts SET outcome = $1, code = $2, detail = $3, ended_at = $4, last_at = $5, detail_code = $6, detail_values = $7
		WHERE client_id = $8 AND subject_id = $9 AND kind = 'submit' AND started_at = $10 AND outcome IS NULL`,
	Postgres: `UPDATE attempts SET outcome = u.a1, code = u.a2, detail = u.a3, ended_at = u.a4, last_at = u.a5, detail_code = u.a6, detail_values = u.a7
		FROM (SELECT unnest($1::text[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bigint[]) AS a4,
			unnest($5::bigint[]) AS a5, unnest($6::text[]) AS a6, unnest($7::text[]) AS a7, unnest($8::bytea[]) AS a8, unnest($9::bytea[]) AS a9,
			unnest($10::bigint[]) AS a10 LIMIT $11::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a8]) AND subject_id = u.a9 AND kind = 'submit' AND started_at = u.a10 AND outcome IS NULL`,
	Arrays: true})

var repeatAttempts = db.Define(db.SQL{Name: "attempts.repeat",
	SQLite: `UPDATE attempts SET repeats = repeats + 1, last_at = $1 WHERE client_id = $2 AND subject_id = $3 AND n = $4`})

var selectAttempts = db.Define(db.SQL{Name: "attempts.select",
	SQLite: `SELECT ` + attemptColumns + ` FROM (SELECT * FROM attempts WHERE client_id = $1 AND subject_id = $2 ORDER BY n DESC LIMIT $3) AS newest ORDER BY n`})

// Attempt is one call to an operator, or several in a row that had the same
// answer.
type Attempt struct {
	ClientID, SubjectID till.ID
	N                   int
	Kind                string // submit, check or resolve
	Connection          string
	Reference           till.ID     // what we sent to the operator
	Outcome             string      // "" while it is under way, or if the instance died before it was recorded
	Why                 till.Reason // what came of it, where Detail is ours
	Code, Detail        string      // the operator's words, redacted
	StartedAt, EndedAt  till.Time
	Repeats             int       // how often the same answer came, the first included
	LastAt              till.Time // when the last of them ended
	First               bool      // the first send of its payment

	// LookupKind is what callbacks that repeat the reference are to find it as: the
	// kind of its subject. "" where they need not find it. Only a send has it,
	// and it is not kept.
	LookupKind till.SubjectKind
}

// The kinds of attempts.
const (
	AttemptSubmit  = "submit"
	AttemptCheck   = "check"
	AttemptResolve = "resolve"
)

// lastAttempts returns the newest attempt of each payment that has any.
func (tx *Tx) lastAttempts(ctx context.Context, refs []Ref) (map[Ref]*Attempt, error) {
	refs = SortedRefs(refs)
	out := make(map[Ref]*Attempt, len(refs))
	return out, tx.db.SendAll(ctx, readLastAttempts(refs, out))
}

func readLastAttempts(refs []Ref, out map[Ref]*Attempt) db.Statement {
	return db.Statement{SQL: selectLastAttempts, Rows: RefArgs(refs),
		Scan: func(i int, r db.Row) (err error) { out[refs[i]], err = scanAttempt(r, refs[i]); return err }}
}

func scanAttempt(r db.Row, ref Ref) (*Attempt, error) {
	a := &Attempt{ClientID: ref.Client, SubjectID: ref.ID}
	var why storedReason
	err := r.Scan(&a.N, &a.Kind, &a.Connection, db.ID(&a.Reference), db.Text(&a.Outcome), db.Text(&a.Code), db.Text(&a.Detail), db.Text(&why.code), db.Text(&why.values),
		&a.StartedAt, db.Int(&a.EndedAt), &a.Repeats, db.Int(&a.LastAt))
	a.Why = why.of(a.Detail)
	return a, err
}

// InsertSends writes down that sends are about to begin, before their first
// bytes. The database refuses a reference that another payment of the client
// has used on the connection.
func (tx *Tx) InsertSends(ctx context.Context, attempts []*Attempt) error {
	var again []Ref
	for _, a := range attempts {
		if a.N == 0 {
			again = append(again, Ref{a.ClientID, a.SubjectID})
		}
	}
	last, err := tx.lastAttempts(ctx, again)
	if err != nil {
		return err
	}
	args := make([][]any, len(attempts))
	var names [][]any
	for i, a := range attempts {
		var first any
		if a.First {
			first = 1
		}
		if a.First && a.LookupKind != "" {
			names = append(names, []any{a.Connection, ReferenceName(a.Reference), a.ClientID[:], a.SubjectID[:], string(a.LookupKind)})
		}
		if a.N == 0 {
			a.N = 1
			if l := last[Ref{a.ClientID, a.SubjectID}]; l != nil {
				a.N = l.N + 1
			}
		}
		args[i] = []any{a.ClientID[:], a.SubjectID[:], a.N, AttemptSubmit, a.Connection, a.Reference[:], int64(a.StartedAt), first}
	}
	if err := tx.insertReferences(ctx, names); err != nil {
		return err
	}
	return tx.db.Defer(insertSubmits, args)
}

// recordKnownCalls records the answers that LockSubjects was given. An answer to a
// send completes the row that InsertSends wrote. Any other answer is the second
// attempt of its subject.
func recordKnownCalls(calls []*Attempt) (sends, seconds db.Statement) {
	for _, a := range calls {
		if a.Kind == AttemptSubmit {
			code, values := reasonOrNull(a.Why)
			sends.Rows = append(sends.Rows, []any{a.Outcome, db.OrNull(a.Code), db.OrNull(a.Detail), int64(a.EndedAt), int64(a.EndedAt),
				code, values, a.ClientID[:], a.SubjectID[:], int64(a.StartedAt)})
		} else {
			a.N = 2
			seconds.Rows = append(seconds.Rows, a.ended())
		}
	}
	sends.SQL = endSends
	seconds.SQL = insertEnded
	return sends, seconds
}

var insertEnded = db.DefineByClient(1, db.SQL{Name: "attempts.insertEnded",
	SQLite: `INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, outcome, code, detail, started_at, ended_at, last_at, detail_code, detail_values)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
	Postgres: `INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, outcome, code, detail, started_at, ended_at, last_at, detail_code, detail_values)
		SELECT u.a1, u.a2, u.a3, u.a4, u.a5, u.a6, u.a7, u.a8, u.a9, u.a10, u.a11, u.a12, u.a13, u.a14
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::bigint[]) AS a3, unnest($4::text[]) AS a4,
			unnest($5::text[]) AS a5, unnest($6::bytea[]) AS a6, unnest($7::text[]) AS a7, unnest($8::text[]) AS a8, unnest($9::text[]) AS a9,
			unnest($10::bigint[]) AS a10, unnest($11::bigint[]) AS a11, unnest($12::bigint[]) AS a12,
			unnest($13::text[]) AS a13, unnest($14::text[]) AS a14 LIMIT $15::bigint) AS u`,
	Arrays: true})

// ended returns the arguments of insertEnded.
func (a *Attempt) ended() []any {
	code, values := reasonOrNull(a.Why)
	return []any{a.ClientID[:], a.SubjectID[:], a.N, a.Kind, a.Connection, a.Reference[:], a.Outcome, db.OrNull(a.Code), db.OrNull(a.Detail),
		int64(a.StartedAt), int64(a.EndedAt), int64(a.EndedAt), code, values}
}

// RecordAttempts records the answers that LockSubjects was not given. An answer
// that equals the one before it adds to that row's count, so that endless polling
// does not fill the disk. last is what LockSubjects read.
func (tx *Tx) RecordAttempts(ctx context.Context, attempts []*Attempt, last map[Ref]*Attempt) error {
	var repeated, added [][]any
	for _, a := range attempts {
		ref := Ref{a.ClientID, a.SubjectID}
		l := last[ref]
		if l != nil && a.Kind == AttemptCheck && l.Kind == a.Kind && l.Outcome == a.Outcome && l.Code == a.Code && l.Detail == a.Detail {
			repeated = append(repeated, []any{int64(a.EndedAt), a.ClientID[:], a.SubjectID[:], l.N})
			continue
		}
		if a.N = 1; l != nil {
			a.N = l.N + 1
		}
		last[ref] = a
		added = append(added, a.ended())
	}
	if err := tx.db.Defer(insertEnded, added); err != nil {
		return err
	}
	// One by one: a batch may hold several answers about one payment.
	return tx.db.Defer(repeatAttempts, repeated)
}

// maxAttempts is how many rows the list of attempts shows, the newest first
// kept: equal answers share a row, so a payment rarely has ten.
const maxAttempts = 200

// Attempts returns the newest attempts of a payment, oldest first.
func (tx *Tx) Attempts(ctx context.Context, ref Ref) ([]*Attempt, error) {
	return db.ReadAll(ctx, tx.db, selectAttempts, []any{ref.Client[:], ref.ID[:], maxAttempts}, func(r db.Row) (*Attempt, error) {
		return scanAttempt(r, ref)
	})
}
