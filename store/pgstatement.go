package store

import (
	"encoding/binary"
	"strings"

	"github.com/jackc/pgx/v5"

	"till"
	"till/internal/db"
)

// pgStatement is what is sent for one row of arguments, or for all of them.
type pgStatement struct {
	text   string
	arrays bool
	args   []any
	rows   [][]any // of arguments
	first  int     // the number of the first of these

	scan func(i int, r row) error
}

// statements returns what is sent for rows of arguments: one statement if its
// text takes arrays, otherwise one for each row.
func (ses *pgSession) statements(q *db.SQL, rows [][]any) []pgStatement {
	text := q.Text(ses.dialect)
	if len(rows) == 0 {
		return nil
	}
	if q.Arrays && ses.sets {
		return []pgStatement{{text: text, arrays: true, args: columns(text, rows), rows: rows}}
	}
	out := make([]pgStatement, len(rows))
	for i, args := range rows {
		one := rows[i : i+1]
		if q.Arrays {
			args = columns(text, one)
		} else {
			args = plain(args)
		}
		out[i] = pgStatement{text: text, arrays: q.Arrays, args: args, rows: one, first: i}
	}
	return out
}

// columns returns the arguments of a text that takes arrays; see db.SQL.
func columns(text string, rows [][]any) []any {
	out := make([]any, 0, len(rows[0])+2)
	for i := range rows[0] {
		out = append(out, pgColumn{rows, i})
	}
	if numbersRows(text) {
		out = append(out, pgNumbers(len(rows)))
	}
	return append(out, int64(len(rows)))
}

// numbersRows reports whether a text takes the numbers of the rows.
func numbersRows(text string) bool { return strings.Contains(text, " AS nth") }

// ask turns reads into statements.
func (ses *pgSession) ask(reads []read) []pgStatement {
	out := make([]pgStatement, 0, len(reads))
	for _, rd := range reads {
		for _, st := range ses.statements(sqlOf(rd.query), rd.args) {
			st.scan = rd.scan
			out = append(out, st)
		}
	}
	return out
}

func queueAll(b *pgx.Batch, all []pgStatement) {
	for _, st := range all {
		b.Queue(st.text, st.args...)
	}
}

func scanAll(r pgx.BatchResults, all []pgStatement) error {
	for _, st := range all {
		if err := st.read(r); err != nil {
			return err
		}
	}
	return nil
}

// read hands the rows of the answer to scan.
func (st *pgStatement) read(r pgx.BatchResults) error {
	rows, err := r.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	nth := numbersRows(st.text)
	for rows.Next() {
		if nth {
			n := nthRow{rows}
			err = st.scan(st.first+n.nth(), n)
		} else {
			err = st.scan(st.first, rows)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// nthRow is a row without its first column, which says whose answer it is.
type nthRow struct{ pgx.Rows }

func (r nthRow) nth() int { return int(binary.BigEndian.Uint64(r.RawValues()[0])) - 1 }

// Scan implements row.
func (r nthRow) Scan(dest ...any) error { return r.Rows.Scan(append([]any{nil}, dest...)...) }

// touched reads which rows of arguments touched one. Over arrays an insertion
// returns the ids, which are its second argument, and any other write nth.
func (st *pgStatement) touched(r pgx.BatchResults, out []bool) error {
	if !st.arrays {
		tag, err := r.Exec()
		out[st.first] = tag.RowsAffected() == 1
		return err
	}
	answers, err := r.Query()
	if err != nil {
		return err
	}
	defer answers.Close()
	byNumber := numbersRows(st.text)
	var index map[till.ID]int
	if !byNumber {
		index = make(map[till.ID]int, len(st.rows))
		for i, a := range st.rows {
			index[till.ID(a[1].([]byte))] = i
		}
	}
	var id []byte
	var nth int64
	for answers.Next() {
		if byNumber {
			err = answers.Scan(&nth)
			nth--
		} else {
			err = answers.Scan(&id)
			nth = int64(index[till.ID(id)])
		}
		if err != nil {
			return err
		}
		out[st.first+int(nth)] = true
	}
	return answers.Err()
}

// plain turns what PostgreSQL has no implicit cast for into what it has.
func plain(args []any) []any {
	for i, a := range args {
		if b, ok := a.(bool); ok {
			n := int64(0)
			if b {
				n = 1
			}
			args[i] = n
		}
	}
	return args
}
