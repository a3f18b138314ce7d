package checkouts

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

const (
	listed   = ` FROM checkouts c WHERE c.client_id = $1 AND ($2 = '' OR c.state = $2) AND ($3 = '' OR c.reference = $3) AND c.id >= $4 AND c.id <= $5`
	ofLink   = listed + ` AND c.link_id = $6`
	inOrder  = ` ORDER BY c.id LIMIT $6 OFFSET $7`
	newFirst = ` ORDER BY c.id DESC LIMIT $6 OFFSET $7`
)

// By whether those of one link are wanted.
var countList = map[bool]*db.SQL{
	false: db.Define(db.SQL{Name: "checkouts.count", SQLite: `SELECT count(*)` + listed}),
	true:  db.Define(db.SQL{Name: "checkouts.countOfLink", SQLite: `SELECT count(*)` + ofLink}),
}

// listing is which statement lists.
type listing struct{ ascending, ofLink bool }

var selectList = map[listing]*db.SQL{
	{false, false}: db.Define(db.SQL{Name: "checkouts.list", SQLite: `SELECT ` + rowColumns + listed + newFirst}),
	{true, false}:  db.Define(db.SQL{Name: "checkouts.listAscending", SQLite: `SELECT ` + rowColumns + listed + inOrder}),
	{false, true}:  db.Define(db.SQL{Name: "checkouts.listOfLink", SQLite: `SELECT ` + rowColumns + ofLink + ` ORDER BY c.id DESC LIMIT $7 OFFSET $8`}),
	{true, true}:   db.Define(db.SQL{Name: "checkouts.listOfLinkAscending", SQLite: `SELECT ` + rowColumns + ofLink + ` ORDER BY c.id LIMIT $7 OFFSET $8`}),
}

// Filter says which checkouts are wanted. Zero fields do not filter.
type Filter struct {
	State     till.CheckoutState
	Reference string
	Link      till.ID   // the link that opened them
	From, To  till.Time // both inclusive
}

// List returns a page of a client's checkouts, and how many there are on all pages.
func List(ctx context.Context, tx *store.Tx, client till.ID, f Filter, page store.Page) (rows []*Row, total int64, err error) {
	from, to := idsBetween(f.From, f.To)
	args := []any{client[:], string(f.State), f.Reference, from[:], to[:]}
	one := !f.Link.IsZero()
	if one {
		args = append(args, f.Link[:])
	}
	if _, err = tx.DB().QueryRow(ctx, countList[one], args, &total); err != nil {
		return nil, 0, err
	}
	rows, err = db.ReadAll(ctx, tx.DB(), selectList[listing{page.Ascending, one}], append(args, page.Limit, page.Offset), func(r db.Row) (*Row, error) { return scanRow(r) })
	return rows, total, err
}

// idsBetween returns the bounds of the ids that were made between two times; a zero time is no
// bound.
func idsBetween(first, last till.Time) (from, to till.ID) {
	from, to = till.FirstID(first), till.LastID(last)
	if last.IsZero() {
		for i := range to {
			to[i] = 0xff
		}
	}
	return from, to
}
