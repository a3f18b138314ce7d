package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"till"
)

// pgSet is a statement about one row, turned into one about many: each argument
// becomes an array. The server checks, plans and begins a statement
// once, and reads the text of its table's checks once; for single rows that
// costs more than writing them.
type pgSet struct {
	text    string
	telling string // the same of a write, and it returns which rows were touched
	oids    []uint32
	insert  bool
}

// pgSets keeps the sets by the text of the single write. The texts are
// constants, so it is bounded by the program's own length.
var pgSets sync.Map

// setOf returns the set of a statement. The server says which types the arguments
// have.
func (ses *pgSession) setOf(ctx context.Context, query string) (*pgSet, error) {
	if s, ok := pgSets.Load(query); ok {
		return s.(*pgSet), nil
	}
	if err := ses.flush(ctx); err != nil {
		return nil, err
	}
	d, err := ses.conn.Prepare(ctx, "", numbered(query))
	if err != nil {
		return nil, ses.lost(err)
	}
	s, err := newSet(query, d.ParamOIDs)
	if err == nil {
		pgSets.Store(query, s)
	}
	return s, err
}

func newSet(query string, oids []uint32) (*pgSet, error) {
	s := &pgSet{oids: oids}
	var arrays []string
	for i, oid := range oids {
		kind := arrayTypes[oid]
		if kind == "" {
			return nil, fmt.Errorf("argument %d of %.60q has type %d", i+1, query, oid)
		}
		n := strconv.Itoa(i + 1)
		arrays = append(arrays, "unnest($"+n+"::"+kind+") AS a"+n)
	}
	query = byKey(named(query))
	verb, _, _ := strings.Cut(query, " ")
	if s.insert = verb == "INSERT"; !s.insert {
		arrays = append(arrays, "unnest($"+strconv.Itoa(len(arrays)+1)+"::bigint[]) AS nth")
	}
	// Arrays in the list of columns are walked side by side; as functions in the
	// FROM each would be stored away first. The planner takes a limit that it does
	// not know for one row, and so looks each row up by its key, whatever it
	// believes about the size of the table.
	from := " (SELECT " + strings.Join(arrays, ", ") + " LIMIT $" + strconv.Itoa(len(arrays)+1) + "::bigint) AS u"
	switch verb {
	case "SELECT":
		head, where := cutWhere(query)
		if rest, locks := strings.CutSuffix(where, " FOR UPDATE"); locks {
			// Of the table only: what is walked cannot be locked.
			where = rest + " FOR UPDATE OF " + head[strings.LastIndexByte(head, ' ')+1:]
		}
		s.text = strings.Replace(head, "SELECT ", "SELECT u.nth, ", 1) + "," + from + " WHERE " + where
	case "INSERT":
		head, rest, _ := strings.Cut(query, "VALUES (")
		end := closing(rest)
		s.text = head + "SELECT " + rest[:end] + " FROM" + from + rest[end+1:]
		s.telling = s.text + " RETURNING id"
	case "UPDATE":
		head, where, _ := strings.Cut(query, "WHERE ")
		s.text = head + "FROM" + from + " WHERE " + where
		s.telling = s.text + " RETURNING u.nth"
	case "DELETE":
		head, where, _ := strings.Cut(query, "WHERE ")
		s.text = head + "USING" + from + " WHERE " + where
		s.telling = s.text + " RETURNING u.nth"
	default:
		return nil, fmt.Errorf("%.60q is not about one row", query)
	}
	return s, nil
}

// named turns each ? into the name of its column in the set.
func named(query string) string {
	var b strings.Builder
	n := 0
	for i := range len(query) {
		if query[i] != '?' {
			b.WriteByte(query[i])
			continue
		}
		n++
		b.WriteString("u.a" + strconv.Itoa(n))
	}
	return b.String()
}

// clientKey is how a row is found by its client in a set, or joined to one.
var clientKey = regexp.MustCompile(`\bclient_id = (u\.a\d+|p\.client_id)\b`)

// byKey keeps the planner from walking a whole index in the order of its first
// column, to look each row up in the set: where it takes the table for empty,
// and the queue of steps often is, both ways cost the same to it, and it keeps
// the plan while the table grows. There is no such way to a member of an array.
func byKey(query string) string {
	return clientKey.ReplaceAllString(query, "client_id = ANY(ARRAY[$1])")
}

// cutWhere cuts a read at its own WHERE, not at one inside of parentheses.
func cutWhere(query string) (head, where string) {
	const word = " WHERE "
	open := 0
	for i := range len(query) {
		switch {
		case query[i] == '(':
			open++
		case query[i] == ')':
			open--
		case open == 0 && strings.HasPrefix(query[i:], word):
			return query[:i], query[i+len(word):]
		}
	}
	return query, ""
}

// closing returns where the parenthesis closes that was open before text.
func closing(text string) int {
	open := 1
	for i := range len(text) {
		switch text[i] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return i
			}
		}
	}
	return len(text) - 1
}

// tell reads which rows were touched. An insertion tells by id, which is the
// second column of whatever asks; there is no order among its answers.
func (s *pgSet) tell(r pgx.BatchResults, rows [][]any, out []bool) error {
	answers, err := r.Query()
	if err != nil {
		return err
	}
	defer answers.Close()
	var index map[till.ID]int
	if s.insert {
		index = make(map[till.ID]int, len(rows))
		for i, a := range rows {
			index[till.ID(a[1].([]byte))] = i
		}
	}
	var id []byte
	var nth int64
	for answers.Next() {
		if s.insert {
			err = answers.Scan(&id)
		} else {
			err = answers.Scan(&nth)
		}
		switch {
		case err != nil:
			return err
		case s.insert:
			out[index[till.ID(id)]] = true
		default:
			out[nth-1] = true
		}
	}
	return answers.Err()
}

// nthRow is a row of a read set without its first column, which says whose
// answer it is.
type nthRow struct{ pgx.Rows }

func (r nthRow) nth() int { return int(binary.BigEndian.Uint64(r.RawValues()[0])) - 1 }

// Scan implements row.
func (r nthRow) Scan(dest ...any) error { return r.Rows.Scan(append([]any{nil}, dest...)...) }

// columns turns rows of arguments into one array for each argument, the numbers of
// the rows where they are asked for, and how many there are.
func (s *pgSet) columns(rows [][]any) ([]any, error) {
	out := make([]any, len(s.oids), len(s.oids)+2)
	for i, oid := range s.oids {
		a, err := newArray(oid, rows, i)
		if err != nil {
			return nil, fmt.Errorf("%w: %.60s", err, s.text)
		}
		out[i] = a
	}
	if !s.insert {
		out = append(out, numbers(len(rows)))
	}
	return append(out, int64(len(rows))), nil
}

// countedTexts keeps the texts of countedText by those of their writes.
var countedTexts sync.Map

// countedText turns a write with so many arguments into one that fails unless it
// touches as many rows as one more argument says. The failure is that of a text
// that is no number, which nothing else in here can be.
func countedText(text string, arguments int) string {
	if t, ok := countedTexts.Load(text); ok {
		return t.(string)
	}
	counted := "WITH touched AS (" + text + " RETURNING 1) SELECT CAST(CASE count(*) WHEN $" + strconv.Itoa(arguments+1) +
		"::bigint THEN '1' ELSE 'only ' || count(*) || ' rows were there' END AS BIGINT) FROM touched"
	countedTexts.Store(text, counted)
	return counted
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

// numberedTexts keeps the translated texts; they are constants, so it is
// bounded by the program's own length.
var numberedTexts sync.Map

// numbered turns each ? into $1, $2 and so on. No text has a literal ?.
func numbered(query string) string {
	if t, ok := numberedTexts.Load(query); ok {
		return t.(string)
	}
	var b strings.Builder
	n := 0
	for i := range len(query) {
		if query[i] != '?' {
			b.WriteByte(query[i])
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	numberedTexts.Store(query, b.String())
	return b.String()
}
