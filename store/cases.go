package store

import (
	"context"

	"till"
)

// Case is something that a person has to look at.
type Case struct {
	ClientID, ID, SubjectID till.ID
	Kind                    string
	Detail                  string
	OpenedAt                till.Time
	ClosedAt                till.Time // zero: open
	ClosedBy                string
	Reason                  string // what it ended with, in the words of whoever closed it
	Evidence                []byte // SHA-256 of what that rests on; nil where there is nothing

	// Again is for OpenCases: open it only if it was opened before and closed.
	Again bool
}

// OpenCases puts cases on the attention list. The same kind for the same
// subject is on it once; a closed one is opened again.
func (tx *Tx) OpenCases(ctx context.Context, cases []*Case) error {
	var first, again [][]any
	for _, c := range cases {
		if c.Again {
			again = append(again, []any{c.Detail, int64(c.OpenedAt), c.ClientID[:], c.SubjectID[:], c.Kind})
			continue
		}
		first = append(first, []any{c.ClientID[:], c.ID[:], c.SubjectID[:], c.Kind, c.Detail, int64(c.OpenedAt)})
	}
	// One by one: a batch may open the same case twice.
	if err := tx.later(ctx, `INSERT INTO cases (client_id, id, subject_id, kind, detail, opened_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (client_id, subject_id, kind) DO UPDATE SET closed_at = NULL, closed_by = NULL, reason = NULL, evidence = NULL,
		detail = excluded.detail, opened_at = excluded.opened_at WHERE cases.closed_at IS NOT NULL`, first); err != nil {
		return err
	}
	return tx.later(ctx, `UPDATE cases SET closed_at = NULL, closed_by = NULL, reason = NULL, evidence = NULL, detail = ?, opened_at = ?
		WHERE client_id = ? AND subject_id = ? AND kind = ? AND closed_at IS NOT NULL`, again)
}

// Closing takes the cases of a subject off the attention list.
type Closing struct {
	Ref      Ref
	By       string
	At       till.Time
	Kinds    []string // none means all
	Reason   string
	Evidence []byte
}

// CloseCases closes the open cases of subjects.
func (tx *Tx) CloseCases(ctx context.Context, closings []Closing) error {
	var named, all [][]any
	for i := range closings {
		c := &closings[i]
		args := []any{int64(c.At), c.By, orNull(c.Reason), bytesOrNull(c.Evidence), c.Ref.Client[:], c.Ref.ID[:]}
		if len(c.Kinds) == 0 {
			all = append(all, args)
		}
		for _, k := range c.Kinds {
			named = append(named, append(args[:len(args):len(args)], k))
		}
	}
	if err := tx.set(ctx, `UPDATE cases SET closed_at = ?, closed_by = ?, reason = ?, evidence = ?
		WHERE client_id = ? AND subject_id = ? AND kind = ? AND closed_at IS NULL`, named); err != nil {
		return err
	}
	return tx.set(ctx, `UPDATE cases SET closed_at = ?, closed_by = ?, reason = ?, evidence = ?
		WHERE client_id = ? AND subject_id = ? AND closed_at IS NULL`, all)
}

const caseColumns = `client_id, id, subject_id, kind, detail, opened_at, closed_at, closed_by, reason, evidence`

func scanCase(r row) (*Case, error) {
	c := &Case{}
	err := r.Scan(idDest(&c.ClientID), idDest(&c.ID), idDest(&c.SubjectID), &c.Kind, &c.Detail, &c.OpenedAt,
		intDest(&c.ClosedAt), textDest(&c.ClosedBy), textDest(&c.Reason), &c.Evidence)
	return c, err
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

// Cases returns a page of cases: the open ones by the time they were opened,
// the longest open first; with closed ones the newest first.
func (tx *Tx) Cases(ctx context.Context, f CaseFilter) ([]*Case, error) {
	query, args := `SELECT `+caseColumns+` FROM cases WHERE 1 = 1`, []any{}
	where := func(on bool, cond string, values ...any) {
		if on {
			query += cond
			args = append(args, values...)
		}
	}
	newest := f.Closed || f.All
	where(!f.All && !f.Closed, ` AND closed_at IS NULL`)
	where(f.Closed && !f.All, ` AND closed_at IS NOT NULL`)
	where(!f.Client.IsZero(), ` AND client_id = ?`, f.Client[:])
	where(!f.Subject.IsZero(), ` AND subject_id = ?`, f.Subject[:])
	where(f.Kind != "", ` AND kind = ?`, f.Kind)
	if a := f.After; a != nil {
		where(!newest, ` AND (opened_at > ? OR opened_at = ? AND id > ?)`, int64(a.OpenedAt), int64(a.OpenedAt), a.ID[:])
		where(newest, ` AND (opened_at < ? OR opened_at = ? AND id > ?)`, int64(a.OpenedAt), int64(a.OpenedAt), a.ID[:])
	}
	order := ` ORDER BY opened_at, id LIMIT ?`
	if newest {
		order = ` ORDER BY opened_at DESC, id LIMIT ?`
	}
	var out []*Case
	err := tx.rows(ctx, query+order, append(args, f.Limit), func(r row) error {
		c, err := scanCase(r)
		out = append(out, c)
		return err
	})
	return out, err
}

// Case returns the case with an id, whoever's it is; nil if there is none.
func (tx *Tx) Case(ctx context.Context, id till.ID) (*Case, error) {
	var c *Case
	err := tx.rows(ctx, `SELECT `+caseColumns+` FROM cases WHERE id = ?`, []any{id[:]}, func(r row) (err error) { c, err = scanCase(r); return err })
	return c, err
}
