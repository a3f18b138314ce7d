package postgres

import (
	"strings"

	"till/internal/db"
)

// minArrays is how many rows Citus must be sent to take them as arrays. That costs about as
// much as three statements of one row: it is planned longer.
const minArrays = 4

// part is what is sent of a statement at once: one row of arguments, or several as arrays.
type part struct {
	text string
	rows [][]any

	arrays  bool
	client  int     // the argument, from 1, that is one value instead of an array; 0: none is
	inserts bool    // an INSERT: each row must be inserted
	numbers []int64 // of the rows, from 1 on; nil: they are all rows of the statement
	row     int     // the number of the only row, from 0 on
}

// parts returns how a statement is sent in a dialect.
func parts(d db.Dialect, s *db.Statement) []part {
	q := s.SQL
	many := d == db.Citus && len(s.Rows) >= minArrays
	switch {
	case q.Arrays && d == db.Postgres, q.CitusArrays && many:
		return []part{{text: q.Text(db.Postgres), rows: s.Rows, arrays: true}}
	case q.OneClient != "" && many:
		return byClient(d, s)
	}
	out := make([]part, len(s.Rows))
	for i := range s.Rows {
		out[i] = single(d, s, i)
	}
	return out
}

func single(d db.Dialect, s *db.Statement, i int) part {
	return part{text: s.SQL.Text(d), rows: s.Rows[i : i+1], row: i}
}

// byClient sends the rows of each client together. Clients stay in their order: rows are locked
// in it.
func byClient(d db.Dialect, s *db.Statement) (out []part) {
	var clients []string
	of := map[string][]int{}
	for i, args := range s.Rows {
		client := string(args[s.SQL.Client-1].([]byte))
		if of[client] == nil {
			clients = append(clients, client)
		}
		of[client] = append(of[client], i)
	}
	for _, client := range clients {
		if len(of[client]) < minArrays {
			for _, i := range of[client] {
				out = append(out, single(d, s, i))
			}
			continue
		}
		p := part{text: s.SQL.OneClient, arrays: true, client: s.SQL.Client, inserts: strings.HasPrefix(s.SQL.OneClient, "INSERT")}
		for _, i := range of[client] {
			p.rows, p.numbers = append(p.rows, s.Rows[i]), append(p.numbers, int64(i)+1)
		}
		out = append(out, p)
	}
	return out
}

// args returns the arguments of a part. Behind arrays come the numbers of the rows, if the
// text names nth, and how many there are.
func (p *part) args() []any {
	if !p.arrays {
		return plain(p.rows[0])
	}
	n := len(p.rows[0])
	out := make([]any, n, n+2)
	for i := range out {
		out[i] = array{p.rows, i}
	}
	if p.client > 0 {
		out[p.client-1] = p.rows[0][p.client-1]
	}
	if strings.Contains(p.text, " AS nth") {
		if p.numbers != nil {
			out = append(out, p.numbers)
		} else {
			out = append(out, rowNumbers(len(p.rows)))
		}
	}
	return append(out, int64(len(p.rows)))
}

// plain turns booleans into integers, as the columns are.
func plain(args []any) []any {
	for i, a := range args {
		if b, ok := a.(bool); ok {
			args[i] = intOf(b)
		}
	}
	return args
}
