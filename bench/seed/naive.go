package seed

import (
	"context"
	"strconv"
	"strings"

	"till"
	"till/internal/db"
	"till/store"
)

// ListNaively lists payments as one would write it at first: count all that
// match, then skip to the page. It filters by method, status and time. It runs
// without a time limit.
func ListNaively(ctx context.Context, tx *store.Tx, client till.ID, f store.PaymentFilter, page store.Page) (ids []till.ID, total int64, err error) {
	tx.DB().WithoutTimeout()
	where, args := naiveFilter(tx.DB().Dialect(), client, f)
	count := &db.SQL{Name: "seed.naiveCount", SQLite: `SELECT count(*)` + where}
	if _, err := tx.DB().QueryRow(ctx, count, args, &total); err != nil {
		return nil, 0, err
	}
	order := " DESC"
	if page.Ascending {
		order = " ASC"
	}
	read := &db.SQL{Name: "seed.naivePage", SQLite: `SELECT p.id` + where + ` ORDER BY p.id` + order +
		` LIMIT $` + strconv.Itoa(len(args)+1) + ` OFFSET $` + strconv.Itoa(len(args)+2)}
	err = tx.DB().Query(ctx, read, append(args, page.Limit, page.Offset), func(r db.Row) error {
		id, err := scanID(r)
		ids = append(ids, id)
		return err
	})
	return ids, total, err
}

// naiveFilter returns the FROM and WHERE of a list with its arguments.
// PostgreSQL's index has the status in which a payment ended.
func naiveFilter(d db.Dialect, client till.ID, f store.PaymentFilter) (string, []any) {
	var text strings.Builder
	var args []any
	add := func(condition string, arg any) {
		args = append(args, arg)
		text.WriteString(condition + `$` + strconv.Itoa(len(args)))
	}
	add(` FROM payments p WHERE p.client_id = `, client[:])
	if f.Method != "" {
		add(` AND p.method = `, f.Method)
	}
	switch {
	case f.Status == "":
	case d == db.SQLite:
		add(` AND p.status = `, string(f.Status))
	case f.Status.Final():
		add(` AND p.ended = `, string(f.Status))
	default:
		add(` AND p.ended = '' AND p.status = `, string(f.Status))
	}
	lo, hi := till.ID{}, till.LastID(1<<47*1000-1)
	if !f.From.IsZero() {
		lo = till.FirstID(f.From)
	}
	if !f.To.IsZero() {
		hi = till.LastID(f.To)
	}
	add(` AND p.id BETWEEN `, lo[:])
	add(` AND `, hi[:])
	return text.String(), args
}

// scanID reads a row of one id.
func scanID(r db.Row) (id till.ID, err error) {
	var b []byte
	err = r.Scan(&b)
	copy(id[:], b)
	return id, err
}
