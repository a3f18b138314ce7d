package store

import (
	"context"
	"strconv"
	"strings"

	"till"
	"till/internal/db"
)

var selectPairs = db.Define(db.SQL{Name: "list.selectPairs",
	SQLite: `SELECT a, b, CAST(sum(within) AS BIGINT) FROM (
		SELECT a, b, n, 0 AS within FROM counters WHERE client_id = $1 AND noun = $2 AND width = $3 AND ($4 = '' OR a = $4) AND ($5 = '' OR b = $5)
		UNION ALL SELECT a, b, 0, n FROM counters WHERE client_id = $1 AND noun = $2 AND width = $6 AND bucket = $7 AND ($4 = '' OR a = $4) AND ($5 = '' OR b = $5)
		UNION ALL SELECT a, b, n, CASE WHEN hour = $7 THEN n ELSE 0 END FROM tallies WHERE client_id = $1 AND noun = $2 AND ($4 = '' OR a = $4) AND ($5 = '' OR b = $5)
		) AS parts GROUP BY a, b HAVING sum(n) > 0 ORDER BY a, b`})

// statement is the text of a read under construction, with its arguments. Each
// argument takes the next number, so that first appearances ascend. Only lists
// are put together while the program runs; a golden file has every kind of them.
type statement struct {
	text strings.Builder
	args []any
}

// add appends text.
func (s *statement) add(parts ...string) {
	for _, p := range parts {
		s.text.WriteString(p)
	}
}

// arg appends the placeholder of an argument.
func (s *statement) arg(v any) {
	s.args = append(s.args, v)
	s.add("$", strconv.Itoa(len(s.args)))
}

// sql returns the statement.
func (s *statement) sql(name string) *db.SQL { return &db.SQL{Name: name, SQLite: s.text.String()} }

// condition is a comparison of a list with one argument, which follows the text.
type condition struct {
	text string
	arg  any
}

// filterPair is a pair of values that counters are kept for, and how many rows
// of it an hour has.
type filterPair struct {
	a, b   string
	within int64
}

// pairsFor returns the pairs that a list reads if its filter names only one of the
// two values, such as a method in any status. An index has each pair in order:
// however rare a pair is, no row of another one is read.
func (tx *Tx) pairsFor(ctx context.Context, l *list, hour int64) (pairs []filterPair, err error) {
	if pairs, found := l.pairs[hour]; found {
		return pairs, nil
	}
	err = tx.db.Query(ctx, selectPairs,
		[]any{l.client[:], l.table, widthAll, l.a, l.b, widthHour, hour}, func(r db.Row) error {
			var p filterPair
			err := r.Scan(&p.a, &p.b, &p.within)
			pairs = append(pairs, p)
			return err
		})
	if l.pairs == nil {
		l.pairs = map[int64][]filterPair{}
	}
	l.pairs[hour] = pairs
	return pairs, err
}

// indexesByEnd reports whether the index of payments by pair has the status in
// which a payment ended, not its current status. With it, a payment's first
// transition changes no index.
func (s *Store) indexesByEnd() bool { return s.db.Dialect() != db.SQLite }

// whereB is the condition on the second value of a pair.
func (l *list) whereB(value string) condition {
	_, _, column := countTable(l.table)
	switch {
	case !l.indexedByEnd:
		return condition{"p." + column + " = ", value}
	case till.Status(value).Final():
		return condition{"p.ended = ", value}
	}
	return condition{"p.ended = '' AND p." + column + " = ", value} // the few open ones are distinguished by the row
}

// from appends which rows are meant: those of a list, or of one of its pairs,
// between two ids. Where an index finds a few rows, they are read first: a planner
// that knows little of the tables would walk all ids, or all of a status, instead.
func (s *statement) from(l *list, p *filterPair, lo, hi *till.ID) {
	table, column, _ := countTable(l.table)
	conds := l.conds
	if p != nil {
		conds = []condition{{"p." + column + " = ", p.a}, l.whereB(p.b)}
	}
	where := func(conds []condition) {
		for _, c := range conds {
			s.add(" AND ", c.text)
			s.arg(c.arg)
		}
	}
	between := func() {
		s.add("p.id BETWEEN ")
		s.arg(lo[:])
		s.add(" AND ")
		s.arg(hi[:])
	}
	if len(l.few) == 0 {
		s.add(" FROM ", table, " p WHERE p.client_id = ")
		s.arg(l.client[:])
		s.add(countWhich(l.table))
		where(conds)
		s.add(" AND ")
		between()
		return
	}
	s.add(" FROM (WITH few AS MATERIALIZED (SELECT ", l.fewColumns, " FROM ", table, " p WHERE p.client_id = ")
	s.arg(l.client[:])
	s.add(countWhich(l.table))
	where(l.few)
	s.add(") SELECT * FROM few) p WHERE ")
	between()
	where(conds)
}

// pageSQL is the statement that reads a page of a list; with pairs, of their
// rows. What is skipped lies in one hour, so no more is read of a pair than that
// hour has of it, and a page. The rows come in the page's direction.
func pageSQL(l *list, pairs []filterPair, r idRange) *statement {
	s := &statement{}
	if r.backwards {
		s.add("SELECT * FROM (")
	}
	if len(pairs) == 0 {
		s.add("SELECT ", l.columns)
		s.from(l, nil, &r.lo, &r.hi)
		s.add(" ORDER BY p.id ", r.order)
	}
	for i := range pairs {
		if i > 0 {
			s.add(" UNION ALL ")
		}
		skip := r.skip
		if r.hour >= 0 {
			skip = min(skip, pairs[i].within)
		}
		s.add("SELECT * FROM (SELECT ", l.columns)
		s.from(l, &pairs[i], &r.lo, &r.hi)
		s.add(" ORDER BY p.id ", r.order, " LIMIT ")
		s.arg(skip + r.limit)
		s.add(") AS pair", strconv.Itoa(i))
	}
	if len(pairs) > 0 {
		s.add(" ORDER BY id ", r.order)
	}
	s.add(" LIMIT ")
	s.arg(r.limit)
	s.add(" OFFSET ")
	s.arg(r.skip)
	if r.backwards {
		order := "ASC"
		if r.order == "ASC" {
			order = "DESC"
		}
		s.add(") AS page ORDER BY id ", order)
	}
	return s
}

// countSQL is the statement that counts the rows of a list between two ids;
// with pairs, those of each pair, numbered from 0.
func countSQL(l *list, pairs []filterPair, lo, hi till.ID) *statement {
	s := &statement{}
	if len(pairs) == 0 {
		s.add("SELECT 0, count(*)")
		s.from(l, nil, &lo, &hi)
	}
	for i := range pairs {
		if i > 0 {
			s.add(" UNION ALL ")
		}
		s.add("SELECT ", strconv.Itoa(i), ", count(*)")
		s.from(l, &pairs[i], &lo, &hi)
	}
	return s
}
