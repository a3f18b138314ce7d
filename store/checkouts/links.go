package checkouts

import (
	"context"
	"strconv"
	"strings"

	"till"
	"till/internal/db"
	"till/store"
)

const linkColumns = `l.client_id, l.id, l.idempotency_key, l.idempotency_key_sent, l.token, l.active, l.title, l.amount, l.currency, l.min_amount, l.max_amount, l.suggested,
	l.ask_label, l.ask_required, l.country, l.methods, l.return_url, l.language, l.document, l.created_at, l.updated_at, l.expires_at, l.body_hash, l.body_version`

var insertLink = db.Define(db.SQL{Name: "links.insert",
	SQLite: `INSERT INTO links (client_id, id, idempotency_key, idempotency_key_sent, body_hash, body_version, token, active, title, amount, currency, min_amount, max_amount,
		suggested, ask_label, ask_required, country, methods, return_url, language, document, created_at, updated_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24)`})

var saveLink = db.Define(db.SQL{Name: "links.save",
	SQLite: `UPDATE links SET active = $1, title = $2, expires_at = $3, updated_at = $4 WHERE client_id = $5 AND id = $6`})

var selectLink = db.Define(db.SQL{Name: "links.select",
	SQLite: `SELECT ` + linkColumns + ` FROM links l WHERE l.client_id = $1 AND l.id = $2`})

var selectLinkOfKey = db.Define(db.SQL{Name: "links.selectOfKey",
	SQLite: `SELECT ` + linkColumns + ` FROM links l WHERE l.client_id = $1 AND l.idempotency_key = $2`})

const listedLinks = ` FROM links l WHERE l.client_id = $1 AND l.id >= $2 AND l.id <= $3 AND l.active >= $4 AND l.active <= $5`

var countLinks = db.Define(db.SQL{Name: "links.count", SQLite: `SELECT count(*)` + listedLinks})

// By the order: oldest first or not.
var selectLinks = map[bool]*db.SQL{
	false: db.Define(db.SQL{Name: "links.list", SQLite: `SELECT ` + linkColumns + listedLinks + ` ORDER BY l.id DESC LIMIT $6 OFFSET $7`}),
	true:  db.Define(db.SQL{Name: "links.listAscending", SQLite: `SELECT ` + linkColumns + listedLinks + ` ORDER BY l.id LIMIT $6 OFFSET $7`}),
}

// LinkRow is a link with what only the service needs to know of it.
type LinkRow struct {
	till.Link
	BodyHash    [32]byte
	BodyVersion int
}

// Ref names the row.
func (l *LinkRow) Ref() store.Ref { return store.Ref{Client: l.ClientID, ID: l.ID} }

// InsertLink writes a new link with its address. The caller has locked the client's head.
func InsertLink(ctx context.Context, tx *store.Tx, l *LinkRow) error {
	key, err := till.ParseID(l.IdempotencyKey)
	if err != nil {
		return err
	}
	sent := l.IdempotencyKey
	if strings.ToLower(sent) == sent {
		sent = ""
	}
	d := tx.DB()
	if _, err := d.Exec(ctx, insertLink, l.ClientID[:], l.ID[:], key[:], db.OrNull(sent), l.BodyHash[:], l.BodyVersion, l.Token, l.Active, l.Title, db.OrNull(l.Amount.Minor),
		l.Amount.Currency, db.OrNull(l.Min), db.OrNull(l.Max), db.OrNull(joinAmounts(l.Suggested)), db.OrNull(l.AskLabel), l.AskRequired, db.OrNull(l.Country),
		db.OrNull(strings.Join(l.Methods, " ")), db.OrNull(l.ReturnURL), db.OrNull(l.Language), l.Document, int64(l.CreatedAt), int64(l.UpdatedAt), db.OrNull(int64(l.ExpiresAt))); err != nil {
		return err
	}
	_, err = d.Exec(ctx, insertToken, l.Token, l.ClientID[:], l.ID[:], KindLink)
	return err
}

// SaveLink writes what may change of a link. The caller has locked the client's head.
func SaveLink(ctx context.Context, tx *store.Tx, l *LinkRow) error {
	_, err := tx.DB().Exec(ctx, saveLink, l.Active, l.Title, db.OrNull(int64(l.ExpiresAt)), int64(l.UpdatedAt), l.ClientID[:], l.ID[:])
	return err
}

// GetLink returns a link. It returns CodeLinkNotFound if the client has no such.
func GetLink(ctx context.Context, tx *store.Tx, ref store.Ref) (l *LinkRow, err error) {
	if l, err = oneLink(ctx, tx, selectLink, ref.Client[:], ref.ID[:]); err == nil && l == nil {
		err = till.Errorf(till.CodeLinkNotFound, "there is no such link")
	}
	return l, err
}

// LinkOfKey returns the link that an idempotency key made, nil if there is none.
func LinkOfKey(ctx context.Context, tx *store.Tx, client, key till.ID) (*LinkRow, error) {
	return oneLink(ctx, tx, selectLinkOfKey, client[:], key[:])
}

func oneLink(ctx context.Context, tx *store.Tx, q *db.SQL, args ...any) (l *LinkRow, err error) {
	err = tx.DB().Query(ctx, q, args, func(r db.Row) error {
		l, err = scanLink(r)
		return err
	})
	return l, err
}

// LinkFilter says which links are wanted. Zero fields do not filter.
type LinkFilter struct {
	Active   *bool
	From, To till.Time // both inclusive
}

// ListLinks returns a page of a client's links, and how many there are on all pages.
func ListLinks(ctx context.Context, tx *store.Tx, client till.ID, f LinkFilter, page store.Page) (rows []*LinkRow, total int64, err error) {
	from, to := idsBetween(f.From, f.To)
	lowest, highest := f.Active != nil && *f.Active, f.Active == nil || *f.Active
	args := []any{client[:], from[:], to[:], lowest, highest}
	if _, err = tx.DB().QueryRow(ctx, countLinks, args, &total); err != nil {
		return nil, 0, err
	}
	rows, err = db.ReadAll(ctx, tx.DB(), selectLinks[page.Ascending], append(args, page.Limit, page.Offset), scanLink)
	return rows, total, err
}

func scanLink(r db.Row) (*LinkRow, error) {
	l := &LinkRow{}
	var key till.ID
	var sent, suggested, methods string
	var hash []byte
	err := r.Scan(db.ID(&l.ClientID), db.ID(&l.ID), db.ID(&key), db.Text(&sent), &l.Token, db.Bool(&l.Active), &l.Title, db.Int(&l.Amount.Minor), &l.Amount.Currency,
		db.Int(&l.Min), db.Int(&l.Max), db.Text(&suggested), db.Text(&l.AskLabel), db.Bool(&l.AskRequired), db.Text(&l.Country), db.Text(&methods), db.Text(&l.ReturnURL),
		db.Text(&l.Language), &l.Document, &l.CreatedAt, &l.UpdatedAt, db.Int(&l.ExpiresAt), &hash, &l.BodyVersion)
	copy(l.BodyHash[:], hash)
	if methods != "" {
		l.Methods = strings.Fields(methods)
	}
	if l.IdempotencyKey = sent; sent == "" {
		l.IdempotencyKey = key.String()
	}
	for _, n := range strings.Fields(suggested) {
		minor, wrong := strconv.ParseInt(n, 10, 64)
		if err == nil {
			err = wrong
		}
		l.Suggested = append(l.Suggested, minor)
	}
	return l, err
}

func joinAmounts(amounts []int64) string {
	texts := make([]string, len(amounts))
	for i, n := range amounts {
		texts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(texts, " ")
}
