package postgres

import (
	"fmt"
	"slices"
	"testing"

	"till/internal/db"
)

// Citus takes a client's rows together if they are many, and each other row by itself.
func TestRowsAreSentByClient(t *testing.T) {
	t.Parallel()
	q := db.SQL{Name: "test.parts", SQLite: `one`, Postgres: `all, unnest AS nth`, OneClient: `some, unnest AS nth`, Client: 2, Arrays: true}
	rows := func(clients string) (out [][]any) {
		for i, c := range clients {
			out = append(out, []any{int64(i), []byte(string(c)), i%2 == 0})
		}
		return out
	}
	sent := func(d db.Dialect, q db.SQL, clients string) (out []string) {
		s := db.Statement{SQL: &q, Rows: rows(clients)}
		for _, p := range parts(d, &s) {
			args := p.args()
			text := p.text + ":"
			if !p.arrays {
				out = append(out, fmt.Sprintf("%s %d %s %v", text, args[0], args[1], args[2]))
				continue
			}
			if p.client > 0 {
				text += fmt.Sprintf(" of %s", args[p.client-1])
			}
			if p.numbers != nil {
				text += fmt.Sprint(" ", args[3])
			}
			out = append(out, fmt.Sprint(text, " ", args[len(args)-1]))
		}
		return out
	}
	onCoordinator := q
	onCoordinator.OneClient, onCoordinator.Client, onCoordinator.CitusArrays = "", 0, true
	for _, c := range []struct {
		d       db.Dialect
		q       db.SQL
		clients string
		want    []string
	}{
		{db.Postgres, q, "ab", []string{"all, unnest AS nth: 2"}},
		{db.Citus, q, "aab", []string{"one: 0 a 1", "one: 1 a 0", "one: 2 b 1"}},
		{db.Citus, q, "abaacaba", []string{"some, unnest AS nth: of a [1 3 4 6 8] 5", "one: 1 b 0", "one: 6 b 1", "one: 4 c 1"}},
		{db.Citus, onCoordinator, "aab", []string{"one: 0 a 1", "one: 1 a 0", "one: 2 b 1"}},
		{db.Citus, onCoordinator, "abab", []string{"all, unnest AS nth: 4"}},
	} {
		if got := sent(c.d, c.q, c.clients); !slices.Equal(got, c.want) {
			t.Errorf("dialect %d, rows of %s:\n got %q\nwant %q", c.d, c.clients, got, c.want)
		}
	}
}

// An INSERT of many rows of one client must insert each of them, so they are counted; a row
// alone, and other statements, may change none.
func TestManyInsertedRowsAreCounted(t *testing.T) {
	t.Parallel()
	row := []any{int64(1), []byte("a")}
	rows := func(n int) (out [][]any) {
		for range n {
			out = append(out, row)
		}
		return out
	}
	for _, c := range []struct {
		text string
		rows int
		want bool
	}{{"INSERT INTO t", minArrays, true}, {"INSERT INTO t", minArrays - 1, false}, {"UPDATE t", minArrays, false}} {
		q := db.SQL{Name: "test.counted", SQLite: c.text, OneClient: c.text, Client: 2, Arrays: true}
		for _, p := range parts(db.Citus, &db.Statement{SQL: &q, Rows: rows(c.rows)}) {
			if p.inserts != c.want {
				t.Errorf("%d rows of %s are counted: %t, want %t", c.rows, c.text, p.inserts, c.want)
			}
		}
	}
}
