package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// question is a statement of a read: for one of its arguments, or for all.
type question struct {
	text string
	args []any
	nth  int // of the argument; -1: each row says
	scan func(i int, r row) error
}

// each returns a statement for each argument.
func (rd *read) each() []question {
	out := make([]question, len(rd.args))
	for i, args := range rd.args {
		out[i] = question{text: numbered(rd.query), args: plain(args), nth: i, scan: rd.scan}
	}
	return out
}

// ask turns reads into statements.
func (ses *pgSession) ask(ctx context.Context, reads []read) ([]question, error) {
	out := make([]question, 0, len(reads))
	for _, rd := range reads {
		if len(rd.args) <= 1 || !ses.sets || rd.apart {
			out = append(out, rd.each()...)
			continue
		}
		s, err := ses.setOf(ctx, rd.query)
		if err != nil {
			return nil, err
		}
		args, err := s.columns(rd.args)
		if err != nil {
			return nil, err
		}
		out = append(out, question{text: s.text, args: args, nth: -1, scan: rd.scan})
	}
	return out, nil
}

func queueAll(b *pgx.Batch, qs []question) {
	for _, q := range qs {
		b.Queue(q.text, q.args...)
	}
}

func scanAll(r pgx.BatchResults, qs []question) error {
	for _, q := range qs {
		if err := q.read(r); err != nil {
			return err
		}
	}
	return nil
}

func (q *question) read(r pgx.BatchResults) error {
	rows, err := r.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if q.nth >= 0 {
			err = q.scan(q.nth, rows)
		} else {
			n := nthRow{rows}
			err = q.scan(n.nth(), n)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}
