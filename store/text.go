package store

import (
	"strconv"
	"strings"
	"sync"

	"till/internal/db"
)

// texts keeps the statements that are made of texts which are not defined yet.
// These are constants, so it is bounded by the program's own length.
var texts sync.Map

// sqlOf returns a statement, which is defined or still a text with ? in it.
func sqlOf(query any) *db.SQL {
	if q, ok := query.(*db.SQL); ok {
		return q
	}
	text := query.(string)
	if q, ok := texts.Load(text); ok {
		return q.(*db.SQL)
	}
	q := &db.SQL{Name: "text", SQLite: numbered(text)}
	texts.Store(text, q)
	return q
}

// numbered turns each ? into $1, $2 and so on. No text has a literal ?.
func numbered(query string) string {
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
	return b.String()
}
