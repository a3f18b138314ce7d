package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"till"
	"till/internal/db"
)

const caseColumns = `client_id, id, subject_id, kind, detail, detail_code, detail_values, opened_at, closed_at, closed_by, reason, reason_code, reason_values, evidence,
	EXISTS (SELECT 1 FROM payouts WHERE payouts.client_id = cases.client_id AND payouts.id = cases.subject_id),
	EXISTS (SELECT 1 FROM payouts WHERE payouts.client_id = cases.client_id AND payouts.id = cases.subject_id AND payouts.payment_id IS NOT NULL)`

var openCases = db.Define(db.SQL{Name: "cases.open",
	SQLite: `INSERT INTO cases (client_id, id, subject_id, kind, detail, opened_at, detail_code, detail_values) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (client_id, subject_id, kind) DO UPDATE SET closed_at = NULL, closed_by = NULL, reason = NULL, evidence = NULL,
		detail = excluded.detail, opened_at = excluded.opened_at, detail_code = excluded.detail_code, detail_values = excluded.detail_values,
		reason_code = NULL, reason_values = NULL WHERE cases.closed_at IS NOT NULL`})

var reopenCases = db.Define(db.SQL{Name: "cases.reopen",
	SQLite: `UPDATE cases SET closed_at = NULL, closed_by = NULL, reason = NULL, evidence = NULL, detail = $1, opened_at = $2,
		detail_code = $3, detail_values = $4, reason_code = NULL, reason_values = NULL
		WHERE client_id = $5 AND subject_id = $6 AND kind = $7 AND closed_at IS NOT NULL`})

var openCasesAlone = db.Define(db.SQL{Name: "cases.openAlone",
	SQLite: `INSERT INTO cases (client_id, id, subject_id, kind, detail, opened_at, detail_code, detail_values) SELECT $1, $2, $3, $4, $5, $6, $7, $8
		WHERE NOT EXISTS (SELECT 1 FROM cases c WHERE c.client_id = $9 AND c.subject_id = $10 AND c.closed_at IS NULL)
		ON CONFLICT (client_id, subject_id, kind) DO NOTHING`,
	// Citus needs a table beside it to say which node reads.
	Citus: `INSERT INTO cases (client_id, id, subject_id, kind, detail, opened_at, detail_code, detail_values)
		SELECT h.client_id, $2::bytea, $3::bytea, $4::text, $5::text, $6::bigint, $7::text, $8::text FROM client_heads h
		WHERE h.client_id = $1 AND NOT EXISTS (SELECT 1 FROM cases c WHERE c.client_id = $9 AND c.subject_id = $10 AND c.closed_at IS NULL)
		ON CONFLICT (client_id, subject_id, kind) DO NOTHING`})

var closeCasesOfKind = db.DefineByClient(7, db.SQL{Name: "cases.closeOfKind",
	SQLite: `UPDATE cases SET closed_at = $1, closed_by = $2, reason = $3, evidence = $4, reason_code = $5, reason_values = $6
		WHERE client_id = $7 AND subject_id = $8 AND kind = $9 AND closed_at IS NULL`,
	Postgres: `UPDATE cases SET closed_at = u.a1, closed_by = u.a2, reason = u.a3, evidence = u.a4, reason_code = u.a5, reason_values = u.a6
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bytea[]) AS a4,
			unnest($5::text[]) AS a5, unnest($6::text[]) AS a6, unnest($7::bytea[]) AS a7, unnest($8::bytea[]) AS a8, unnest($9::text[]) AS a9 LIMIT $10::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a7]) AND subject_id = u.a8 AND kind = u.a9 AND closed_at IS NULL`,
	Arrays: true})

var closeCases = db.DefineByClient(7, db.SQL{Name: "cases.close",
	SQLite: `UPDATE cases SET closed_at = $1, closed_by = $2, reason = $3, evidence = $4, reason_code = $5, reason_values = $6
		WHERE client_id = $7 AND subject_id = $8 AND closed_at IS NULL`,
	Postgres: `UPDATE cases SET closed_at = u.a1, closed_by = u.a2, reason = u.a3, evidence = u.a4, reason_code = u.a5, reason_values = u.a6
		FROM (SELECT unnest($1::bigint[]) AS a1, unnest($2::text[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bytea[]) AS a4,
			unnest($5::text[]) AS a5, unnest($6::text[]) AS a6, unnest($7::bytea[]) AS a7, unnest($8::bytea[]) AS a8 LIMIT $9::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a7]) AND subject_id = u.a8 AND closed_at IS NULL`,
	Arrays: true})

var selectCase = db.Define(db.SQL{Name: "cases.select",
	SQLite: `SELECT ` + caseColumns + ` FROM cases WHERE id = $1`})

var countOpenKinds = db.Define(db.SQL{Name: "cases.countOpenKinds",
	SQLite: `SELECT c.mode, o.kind, count(*), min(o.opened_at) FROM (SELECT client_id, kind, opened_at FROM cases WHERE closed_at IS NULL ORDER BY opened_at LIMIT $1) AS o
		JOIN clients c ON c.client_id = o.client_id GROUP BY c.mode, o.kind ORDER BY c.mode, o.kind`})

// Case is something that a person has to check.
type Case struct {
	ClientID, ID, SubjectID till.ID
	Kind                    string
	Why                     till.Reason // why it was opened; zero where only Detail is known
	Detail                  string      // Why in English
	OpenedAt                till.Time
	ClosedAt                till.Time // zero: open
	ClosedBy                string
	ClosedWhy               till.Reason // why the program closed it
	Reason                  string      // ClosedWhy in English, or the words of the person who closed it
	Evidence                []byte      // SHA-256 of what that rests on; nil where there is nothing
	Payout                  bool        // the subject is a payout or a refund; set when it is read
	Refund                  bool        // it is a refund; set when it is read

	// Reopen is for OpenCases: open it only if it was opened before and closed, or
	// if nothing else about its subject is open.
	Reopen bool
}

// Noun is what clients call the subject of a case that was read.
func (c *Case) Noun() till.Noun {
	switch {
	case c.Refund:
		return till.NounRefund
	case c.Payout:
		return till.NounPayout
	}
	return till.NounPayment
}

// OpenCases puts cases on the attention list. The same kind for the same
// subject is on it once; a closed one is opened again.
func (tx *Tx) OpenCases(ctx context.Context, cases []*Case) error {
	var first, again, alone [][]any
	for _, c := range cases {
		detail := cmp.Or(c.Why.String(), c.Detail)
		code, values := reasonOrNull(c.Why)
		row := []any{c.ClientID[:], c.ID[:], c.SubjectID[:], c.Kind, detail, int64(c.OpenedAt), code, values}
		if c.Reopen {
			again = append(again, []any{detail, int64(c.OpenedAt), code, values, c.ClientID[:], c.SubjectID[:], c.Kind})
			alone = append(alone, append(row, c.ClientID[:], c.SubjectID[:]))
			continue
		}
		first = append(first, row)
	}
	// One by one: a batch may open the same case twice.
	if err := tx.db.Defer(openCases, first); err != nil {
		return err
	}
	if err := tx.db.Defer(reopenCases, again); err != nil {
		return err
	}
	// What was on the list for another reason, and was taken off it, is not
	// there for this one yet.
	return tx.db.Defer(openCasesAlone, alone)
}

// CaseClosure takes the cases of a subject off the attention list.
type CaseClosure struct {
	Ref      Ref
	By       string
	At       till.Time
	Kinds    []string // none means all
	Why      till.Reason
	Reason   string // a person's; of Why it is made
	Evidence []byte
}

// CloseCases closes the open cases of subjects.
func (tx *Tx) CloseCases(ctx context.Context, closings []CaseClosure) error {
	var named, all [][]any
	for i := range closings {
		c := &closings[i]
		code, values := reasonOrNull(c.Why)
		args := []any{int64(c.At), c.By, db.OrNull(cmp.Or(c.Why.String(), c.Reason)), db.BytesOrNull(c.Evidence), code, values, c.Ref.Client[:], c.Ref.ID[:]}
		if len(c.Kinds) == 0 {
			all = append(all, args)
		}
		for _, k := range c.Kinds {
			named = append(named, append(args[:len(args):len(args)], k))
		}
	}
	if err := tx.db.Defer(closeCasesOfKind, named); err != nil {
		return err
	}
	return tx.db.Defer(closeCases, all)
}

func scanCase(r db.Row) (*Case, error) {
	c := &Case{}
	var opened, closed storedReason
	err := r.Scan(db.ID(&c.ClientID), db.ID(&c.ID), db.ID(&c.SubjectID), &c.Kind, &c.Detail, db.Text(&opened.code), db.Text(&opened.values), &c.OpenedAt,
		db.Int(&c.ClosedAt), db.Text(&c.ClosedBy), db.Text(&c.Reason), db.Text(&closed.code), db.Text(&closed.values), &c.Evidence, &c.Payout, &c.Refund)
	c.Why, c.ClosedWhy = opened.of(c.Detail), closed.of(c.Reason)
	return c, err
}

// reasonOrNull returns the columns of a reason: its code, and its values one per line.
func reasonOrNull(r till.Reason) (code, values any) {
	return db.OrNull(string(r.Code)), db.OrNull(strings.Join(r.Values, "\n"))
}

// storedReason is a reason as it was read.
type storedReason struct{ code, values string }

// of returns the reason if the sentence stored beside it is its own. Otherwise a release
// from before the codes has written the sentence over that of the code.
func (s storedReason) of(sentence string) till.Reason {
	if s.code == "" {
		return till.Reason{}
	}
	r := till.Because(till.ReasonCode(s.code))
	if s.values != "" {
		r.Values = strings.Split(s.values, "\n")
	}
	if r.String() != sentence {
		return till.Reason{}
	}
	return r
}

// CaseFilter says which cases are wanted. Zero fields do not filter.
type CaseFilter struct {
	Client  till.ID
	Subject till.ID
	Kind    string
	Closed  bool // the closed ones, not the open ones
	All     bool // both

	After *Case // the last one of the page before
	Limit int
}

// caseList is what a page of cases is filtered by.
type caseList struct {
	which                        string
	client, subject, kind, after bool
}

// Which cases are listed.
const (
	openCasesOnly   = "open"
	closedCasesOnly = "closed"
	allCases        = "all"
)

// selectCases has a statement for every filter.
var selectCases = func() map[caseList]*db.SQL {
	out := map[caseList]*db.SQL{}
	either := []bool{false, true}
	for _, which := range []string{openCasesOnly, closedCasesOnly, allCases} {
		for _, client := range either {
			for _, subject := range either {
				for _, kind := range either {
					for _, after := range either {
						l := caseList{which, client, subject, kind, after}
						name, text := l.text()
						out[l] = db.Define(db.SQL{Name: name, SQLite: text})
					}
				}
			}
		}
	}
	return out
}()

// text returns the name and the text of the statement for a list.
func (l caseList) text() (name, text string) {
	name, text = "cases.list "+l.which, `SELECT `+caseColumns+` FROM cases WHERE 1 = 1`
	n := 0
	where := func(on bool, column string) {
		if on {
			n++
			name += " " + column
			text += fmt.Sprintf(` AND %s = $%d`, column, n)
		}
	}
	beyond, order := ">", ""
	switch l.which {
	case openCasesOnly:
		text += ` AND closed_at IS NULL`
	case closedCasesOnly:
		text += ` AND closed_at IS NOT NULL`
		fallthrough
	case allCases:
		beyond, order = "<", " DESC"
	}
	where(l.client, "client_id")
	where(l.subject, "subject_id")
	where(l.kind, "kind")
	if l.after {
		name += " after"
		text += fmt.Sprintf(` AND (opened_at %[1]s $%[2]d OR opened_at = $%[2]d AND id > $%[3]d)`, beyond, n+1, n+2)
		n += 2
	}
	return name, text + fmt.Sprintf(` ORDER BY opened_at%s, id LIMIT $%d`, order, n+1)
}

// Cases returns a page of cases: the open ones by the time they were opened,
// the longest open first; with closed ones the newest first.
func (tx *Tx) Cases(ctx context.Context, f CaseFilter) ([]*Case, error) {
	which := openCasesOnly
	switch {
	case f.All:
		which = allCases
	case f.Closed:
		which = closedCasesOnly
	}
	var args []any
	if !f.Client.IsZero() {
		args = append(args, f.Client[:])
	}
	if !f.Subject.IsZero() {
		args = append(args, f.Subject[:])
	}
	if f.Kind != "" {
		args = append(args, f.Kind)
	}
	if f.After != nil {
		args = append(args, int64(f.After.OpenedAt), f.After.ID[:])
	}
	q := selectCases[caseList{which, !f.Client.IsZero(), !f.Subject.IsZero(), f.Kind != "", f.After != nil}]
	var out []*Case
	err := tx.db.Query(ctx, q, append(args, f.Limit), func(r db.Row) error {
		c, err := scanCase(r)
		out = append(out, c)
		return err
	})
	return out, err
}

// Case returns the case with an id, of any client; nil if there is none.
func (tx *Tx) Case(ctx context.Context, id till.ID) (*Case, error) {
	var c *Case
	err := tx.db.Query(ctx, selectCase, []any{id[:]}, func(r db.Row) (err error) { c, err = scanCase(r); return err })
	return c, err
}

// OpenKind is how many cases of a kind are open, over all clients of a mode.
type OpenKind struct {
	Mode   till.Mode
	Kind   string
	Count  int64
	Oldest till.Time // when the longest open one was opened
}

// OpenKinds counts the open cases by kind, the longest open ones up to most.
func (tx *Tx) OpenKinds(ctx context.Context, most int) ([]OpenKind, error) {
	return db.ReadAll(ctx, tx.db, countOpenKinds, []any{most}, func(r db.Row) (OpenKind, error) {
		var k OpenKind
		err := r.Scan(&k.Mode, &k.Kind, &k.Count, &k.Oldest)
		return k, err
	})
}
