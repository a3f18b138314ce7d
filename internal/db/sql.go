package db

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Dialect says which text of a statement an engine is sent.
type Dialect int

// The dialects.
const (
	SQLite Dialect = iota
	Postgres
	Citus
)

// SQL is one statement of the program, exactly as it is sent. Placeholders are
// $1, $2 and so on; their first appearances ascend, because SQLite numbers them
// by first appearance.
type SQL struct {
	Name     string // "wallets.save": for golden files, traces and slow-query logs
	SQLite   string // runs once for each row of arguments
	Postgres string // "" means the same text as SQLite
	Citus    string // "" means the same text as Postgres, or as SQLite if Arrays is set

	// Arrays says that the Postgres text takes one array for each argument and
	// runs once for all rows of arguments. After these come, if the text names
	// nth, an array with the numbers of the rows, 1 to n, and then n. A read
	// returns nth first. A write whose changes are reported returns nth, or the
	// id if it is an INSERT.
	//
	// The texts are written so that each row is looked up by its key, even by a
	// plan that was made while the table was empty:
	//   - Arrays in a list of columns are walked side by side. As functions in a
	//     FROM each would be stored first.
	//   - The planner takes a LIMIT that it does not know for one row, whatever it
	//     believes about the size of the table.
	//   - By client_id = u.a1 it might walk a whole index in the order of its first
	//     column, and compare each row with the arrays. By
	//     client_id = ANY(ARRAY[u.a1]) it cannot.
	//   - LATERAL (SELECT … OFFSET 0) is run for each row of the arrays: the planner
	//     cannot turn it around.
	//
	// Citus chooses a node by client_id = $n and cannot choose by an array: there
	// the text runs once for each row of arguments, as on SQLite, but for the
	// statements that say otherwise below.
	Arrays bool

	// CitusArrays says that Citus takes the Postgres text, too, for several rows,
	// because the table is on the coordinator.
	CitusArrays bool

	// OneClient is the text for Citus for several rows of one client. In it the
	// argument Client, counted from 1, is no array. An INSERT must insert them all.
	OneClient string
	Client    int
}

// Text returns the text for a dialect.
func (s *SQL) Text(d Dialect) string {
	switch {
	case d == Citus && s.Citus != "":
		return s.Citus
	case d == Postgres && s.Postgres != "", d == Citus && s.Postgres != "" && !s.Arrays:
		return s.Postgres
	}
	return s.SQLite
}

var defined = struct {
	sync.Mutex
	byName map[string]*SQL
}{byName: map[string]*SQL{}}

// Define records a statement and returns it. It is called where a package
// variable is declared, so a name that is taken and placeholders out of order
// panic at the start of the program.
func Define(s SQL) *SQL {
	defined.Lock()
	defer defined.Unlock()
	if s.Name == "" || s.SQLite == "" && s.Postgres == "" {
		panic("db: a statement needs a name and a text")
	}
	if !placeholdersAscend(s.SQLite) {
		panic(fmt.Sprintf("db: the placeholders of %s do not ascend: SQLite would number them otherwise", s.Name))
	}
	if (s.CitusArrays || s.OneClient != "") && !s.Arrays || (s.OneClient != "") != (s.Client > 0) {
		panic(fmt.Sprintf("db: %s says how Citus takes its arrays and has none, or no client", s.Name))
	}
	if defined.byName[s.Name] != nil {
		panic(fmt.Sprintf("db: two statements are called %s", s.Name))
	}
	defined.byName[s.Name] = &s
	return &s
}

// placeholdersAscend reports whether $1, $2 and so on first appear in this
// order, without a gap.
func placeholdersAscend(text string) bool {
	last := 0
	for _, part := range strings.Split(text, "$")[1:] {
		n := 0
		for _, r := range part {
			if r < '0' || r > '9' {
				break
			}
			n = 10*n + int(r-'0')
		}
		if n > last+1 {
			return false
		}
		last = max(last, n)
	}
	return true
}

// Placeholders returns n placeholders, from $first on, for a list in a text.
func Placeholders(first, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("$%d", first+i)
	}
	return strings.Join(all, ", ")
}

// Statements returns every statement that was defined, by name.
func Statements() []*SQL {
	defined.Lock()
	defer defined.Unlock()
	out := make([]*SQL, 0, len(defined.byName))
	for _, s := range defined.byName {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *SQL) int { return strings.Compare(a.Name, b.Name) })
	return out
}
