package api

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"till"
	"till/store"
)

// Limits of lists.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// checkQuery rejects parameters that the route does not know or that come more than once. A
// client that misspells a filter must not get all rows.
func (c *exchange) checkQuery() error {
	if c.r.URL.RawQuery == "" || c.route.AnyQuery {
		return nil
	}
	var p params
	if c.queryErr != nil {
		p.add("", "The query cannot be read.")
		return p.err()
	}
	for name, values := range c.query {
		switch {
		case !slices.Contains(c.route.Query, name):
			p.add(showable(name), "There is no such parameter here.")
		case len(values) > 1:
			p.add(name, "The parameter is given more than once.")
		}
	}
	slices.SortFunc(p.fields, func(a, b till.FieldError) int { return strings.Compare(a.Pointer, b.Pointer) })
	return p.err()
}

// showable returns the name of an unknown parameter if it looks like a name. Anything else
// may be a value in the wrong place, and values are never repeated.
func showable(name string) string {
	if len(name) > 32 {
		return ""
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && r != '_' {
			return ""
		}
	}
	return name
}

// params reads query parameters and collects their mistakes. A FieldError's pointer is the
// plain name of the parameter here.
type params struct {
	c      *exchange
	fields []till.FieldError
}

func (c *exchange) params() *params { return &params{c: c} }

func (p *params) add(name, detail string) {
	p.fields = append(p.fields, till.FieldError{Pointer: name, Code: till.FieldInvalidFormat, Detail: detail})
}

func (p *params) err() error {
	if p.fields == nil {
		return nil
	}
	return &till.Error{Code: till.CodeInvalidParameter, Fields: p.fields}
}

// get returns a parameter, and whether it is there.
func (p *params) get(name string) (string, bool) {
	values := p.c.query[name]
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

// text reads a text of 1 to longest characters, "" if absent.
func (p *params) text(name string, longest int) string {
	s, ok := p.get(name)
	if ok && (s == "" || !utf8.ValidString(s) || utf8.RuneCountInString(s) > longest || strings.ContainsRune(s, 0)) {
		p.add(name, "The value must be a text of reasonable length, not empty.")
		return ""
	}
	return s
}

// choice reads one of some values, "" if absent.
func (p *params) choice(name string, words ...string) string {
	s, ok := p.get(name)
	if ok && !slices.Contains(words, s) {
		p.add(name, "The value must be one of: "+strings.Join(words, ", ")+".")
		return ""
	}
	return s
}

// time reads a time, zero if absent.
func (p *params) time(name string) till.Time {
	s, ok := p.get(name)
	if !ok {
		return 0
	}
	t, ok := till.ParseTime(s)
	if !ok {
		p.add(name, "The value must be an RFC 3339 time in UTC, for example 2026-03-02T09:15:42.123456Z.")
	}
	return t
}

// id reads a UUID; the pointer is nil if absent.
func (p *params) id(name string) *till.ID {
	s, ok := p.get(name)
	if !ok {
		return nil
	}
	id, err := till.ParseID(s)
	if err != nil {
		p.add(name, "The value must be a UUID in canonical form.")
	}
	return &id
}

// number reads a whole number between two bounds.
func (p *params) number(name string, otherwise, least, most int64) int64 {
	s, ok := p.get(name)
	if !ok {
		return otherwise
	}
	n, ok := till.ParseMinor(s)
	if !ok || n < least || n > most {
		p.add(name, fmt.Sprintf("The value must be a whole number from %d to %d.", least, most))
	}
	return n
}

// count reads a whole number without an upper bound, 0 if absent.
func (p *params) count(name string) int64 {
	s, ok := p.get(name)
	if !ok {
		return 0
	}
	n, ok := till.ParseMinor(s)
	if !ok {
		p.add(name, "The value must be a whole number, 0 or more.")
	}
	return n
}

// page reads limit, offset and order. A limit that is too large is rejected, not lowered: a
// client that pages by its own limit would skip records.
func (p *params) page() store.Page {
	page := store.Page{Limit: int(p.number("limit", defaultLimit, 1, maxLimit))}
	page.Offset = int(p.count("offset"))
	page.Ascending = p.choice("order", "asc", "desc") == "asc"
	return page
}
