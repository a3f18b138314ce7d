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
}

// OpenCases puts cases on the attention list. The same kind for the same
// payment is on it once; a closed one is opened again.
func (tx *Tx) OpenCases(ctx context.Context, cases []*Case) error {
	args := make([][]any, len(cases))
	for i, c := range cases {
		args[i] = []any{c.ClientID[:], c.ID[:], c.SubjectID[:], c.Kind, c.Detail, int64(c.OpenedAt)}
	}
	// One by one: a batch may open the same case twice.
	return tx.later(ctx, `INSERT INTO cases (client_id, id, subject_id, kind, detail, opened_at) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (client_id, subject_id, kind) DO UPDATE SET closed_at = NULL, closed_by = NULL, detail = excluded.detail, opened_at = excluded.opened_at
		WHERE cases.closed_at IS NOT NULL`, args)
}

// Closing takes the cases of a payment off the attention list.
type Closing struct {
	Ref   Ref
	By    string
	At    till.Time
	Kinds []string // none means all
}

// CloseCases closes the open cases of payments.
func (tx *Tx) CloseCases(ctx context.Context, closings []Closing) error {
	var named, all [][]any
	for i := range closings {
		c := &closings[i]
		args := []any{int64(c.At), c.By, c.Ref.Client[:], c.Ref.ID[:]}
		if len(c.Kinds) == 0 {
			all = append(all, args)
		}
		for _, k := range c.Kinds {
			named = append(named, append(args[:4:4], k))
		}
	}
	if err := tx.set(ctx, `UPDATE cases SET closed_at = ?, closed_by = ? WHERE client_id = ? AND subject_id = ? AND kind = ? AND closed_at IS NULL`, named); err != nil {
		return err
	}
	return tx.set(ctx, `UPDATE cases SET closed_at = ?, closed_by = ? WHERE client_id = ? AND subject_id = ? AND closed_at IS NULL`, all)
}

// Cases returns up to limit cases, longest open first; only open ones unless
// all is set.
func (tx *Tx) Cases(ctx context.Context, all bool, limit int) ([]*Case, error) {
	query := `SELECT client_id, id, subject_id, kind, detail, opened_at, closed_at, closed_by FROM cases WHERE closed_at IS NULL ORDER BY opened_at, id LIMIT ?`
	if all {
		query = `SELECT client_id, id, subject_id, kind, detail, opened_at, closed_at, closed_by FROM cases ORDER BY opened_at DESC, id LIMIT ?`
	}
	var out []*Case
	err := tx.rows(ctx, query, []any{limit}, func(r row) error {
		c := &Case{}
		err := r.Scan(idDest(&c.ClientID), idDest(&c.ID), idDest(&c.SubjectID), &c.Kind, &c.Detail, &c.OpenedAt,
			intDest(&c.ClosedAt), textDest(&c.ClosedBy))
		out = append(out, c)
		return err
	})
	return out, err
}
