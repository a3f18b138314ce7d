package till

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"strconv"
)

// maxPage is the most that one page holds.
const maxPage = 200

// ErrNoProgress says that a list cannot be gone through: the service sent the
// same page again.
var ErrNoProgress = errors.New("till: the list does not go on")

// page is a page of a list that is paged.
type page[A any] struct {
	items []A
}

// all goes through a list by time, not by offset: the next page begins at the
// last moment that was seen, and drops what was given of that moment. Records
// that change or arrive meanwhile neither repeat nor hide others.
func all[A any](ctx context.Context, query url.Values, fetch func(context.Context, url.Values) (page[A], error), id func(*A) string, at func(*A) Timestamp) iter.Seq2[*A, error] {
	return func(yield func(*A, error) bool) {
		bound := "to_date"
		if query.Get("order") == "asc" {
			bound = "from_date"
		}
		var (
			given  = map[string]bool{} // ids at the last moment
			last   Timestamp
			offset int
		)
		query.Set("limit", strconv.Itoa(maxPage))
		for {
			query.Set("offset", strconv.Itoa(offset))
			p, err := fetch(ctx, query)
			if err != nil {
				yield(nil, err)
				return
			}
			fresh, start := 0, last
			for i := range p.items {
				item := &p.items[i]
				if at(item) == last && given[id(item)] {
					continue
				}
				if at(item) != last {
					last = at(item)
					clear(given)
				}
				given[id(item)] = true
				fresh++
				if !yield(item, nil) {
					return
				}
			}
			switch {
			case len(p.items) < maxPage:
				return
			case last != start:
				offset = 0
				query.Set(bound, string(last))
			case fresh > 0 || offset == 0:
				offset += len(p.items) // more than a page at one moment
			default:
				yield(nil, ErrNoProgress)
				return
			}
		}
	}
}

// set puts a value into a query unless it is empty.
func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}
