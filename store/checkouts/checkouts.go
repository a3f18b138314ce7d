package checkouts

import (
	"context"
	"strings"

	"till"
	"till/internal/db"
	"till/store"
)

// Level is the level from which on checkouts are made. An older program knows neither their
// events nor who may read them.
const Level = 5

// What an address leads to.
const (
	KindCheckout = "checkout"
	KindLink     = "link"
)

const rowColumns = store.CheckoutColumns + `, c.body_hash, c.body_version, c.asks, c.erased_at`

var insertCheckout = db.Define(db.SQL{Name: "checkouts.insert",
	SQLite: `INSERT INTO checkouts (client_id, id, idempotency_key, idempotency_key_sent, body_hash, body_version, token, state, amount, currency, reference, country, methods,
		phone, phone_fixed, return_url, language, document, asks, late, overpaid, created_at, updated_at, expires_at, link_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'open', $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 0, 0, 0, $18, $19, $20, $21)`})

var insertToken = db.Define(db.SQL{Name: "checkouts.insertToken",
	SQLite: `INSERT INTO pay_tokens (token, client_id, subject_id, kind) VALUES ($1, $2, $3, $4)`})

var insertCursor = db.Define(db.SQL{Name: "checkouts.insertCursor",
	SQLite: `INSERT INTO checkout_cursors (client_id, sequence) VALUES ($1, $2) ON CONFLICT (client_id) DO NOTHING`})

var saveCheckout = db.Define(db.SQL{Name: "checkouts.save",
	SQLite: `UPDATE checkouts SET state = $1, payment_id = $2, paid_at = $3, late = $4, overpaid = $5, updated_at = $6 WHERE client_id = $7 AND id = $8`})

var selectToken = db.Define(db.SQL{Name: "checkouts.selectToken",
	SQLite: `SELECT t.client_id, t.subject_id, t.kind, EXISTS (SELECT 1 FROM page_switches s WHERE s.client_id IN (t.client_id, $1))
		FROM pay_tokens t WHERE t.token = $2`})

var selectOfKey = db.Define(db.SQL{Name: "checkouts.selectOfKey",
	SQLite: `SELECT ` + rowColumns + ` FROM checkouts c WHERE c.client_id = $1 AND c.idempotency_key = $2`})

var selectCheckout = db.Define(db.SQL{Name: "checkouts.select",
	SQLite: `SELECT ` + rowColumns + ` FROM checkouts c WHERE c.client_id = $1 AND c.id = $2`})

const withLast = `SELECT ` + rowColumns + `, a.n, a.key, a.method, a.country, a.amount, a.phone, a.asked_at, a.refused
	FROM checkouts c LEFT JOIN checkout_asks a ON a.client_id = c.client_id AND a.checkout_id = c.id AND a.n = c.asks
	WHERE c.client_id = $1 AND c.id = $2`

var selectWithLast = db.Define(db.SQL{Name: "checkouts.selectWithLast",
	SQLite: withLast,
	Citus:  db.OfClient(withLast, "$1")})

var selectLevel = db.Define(db.SQL{Name: "checkouts.selectLevel",
	SQLite: `SELECT level FROM installation WHERE one = 1`})

// Row is a checkout with what only the service needs to know of it.
type Row struct {
	till.Checkout
	BodyHash    [32]byte
	BodyVersion int
	Asks        int       // how many there are
	ErasedAt    till.Time // when a person's data was first taken out; zero: never
}

// Ref names the row.
func (c *Row) Ref() store.Ref { return store.Ref{Client: c.ClientID, ID: c.ID} }

// Insert writes a new checkout with its address, and a cursor if it is the client's first. The
// caller has locked the client's head.
func Insert(ctx context.Context, tx *store.Tx, head *store.Head, c *Row) error {
	key, err := till.ParseID(c.IdempotencyKey)
	if err != nil {
		return err
	}
	sent := c.IdempotencyKey
	if strings.ToLower(sent) == sent {
		sent = ""
	}
	d := tx.DB()
	if _, err := d.Exec(ctx, insertCheckout, c.ClientID[:], c.ID[:], key[:], db.OrNull(sent), c.BodyHash[:], c.BodyVersion, c.Token, c.Amount.Minor, c.Amount.Currency,
		db.OrNull(c.Reference), db.OrNull(c.Country), db.OrNull(strings.Join(c.Methods, " ")), db.OrNull(c.Phone), c.PhoneFixed, db.OrNull(c.ReturnURL), db.OrNull(c.Language),
		c.Document, int64(c.CreatedAt), int64(c.UpdatedAt), int64(c.ExpiresAt), idOrNull(c.LinkID)); err != nil {
		return err
	}
	if _, err := d.Exec(ctx, insertCursor, c.ClientID[:], head.LastEvent); err != nil {
		return err
	}
	_, err = d.Exec(ctx, insertToken, c.Token, c.ClientID[:], c.ID[:], KindCheckout)
	return err
}

// Save writes what may change of a checkout.
func Save(ctx context.Context, tx *store.Tx, c *Row) error {
	_, err := tx.DB().Exec(ctx, saveCheckout, string(c.State), idOrNull(c.PaymentID), db.OrNull(c.PaidAt), c.Late, c.Overpaid, int64(c.UpdatedAt), c.ClientID[:], c.ID[:])
	return err
}

func idOrNull(id till.ID) any {
	if id.IsZero() {
		return nil
	}
	return id[:]
}

// Place is what is at an address.
type Place struct {
	Ref  store.Ref
	Kind string
	Off  bool // the client's pages are switched off
}

// ByToken returns what is at an address, in lower case; false if nothing is.
func ByToken(ctx context.Context, tx *store.Tx, token string) (p Place, found bool, err error) {
	found, err = tx.DB().QueryRow(ctx, selectToken, []any{store.EveryClient[:], token}, db.ID(&p.Ref.Client), db.ID(&p.Ref.ID), &p.Kind, &p.Off)
	return p, found, err
}

func scanRow(r db.Row, more ...any) (*Row, error) {
	c := &Row{}
	var hash []byte
	err := store.ScanCheckout(r, &c.Checkout, append([]any{&hash, &c.BodyVersion, &c.Asks, db.Int(&c.ErasedAt)}, more...)...)
	copy(c.BodyHash[:], hash)
	return c, err
}

// OfKey returns the checkout that an idempotency key made, nil if there is none.
func OfKey(ctx context.Context, tx *store.Tx, client, key till.ID) (c *Row, err error) {
	err = tx.DB().Query(ctx, selectOfKey, []any{client[:], key[:]}, func(r db.Row) error {
		c, err = scanRow(r)
		return err
	})
	return c, err
}

// Get returns a checkout. It returns CodeCheckoutNotFound if the client has no such.
func Get(ctx context.Context, tx *store.Tx, ref store.Ref) (c *Row, err error) {
	err = tx.DB().Query(ctx, selectCheckout, []any{ref.Client[:], ref.ID[:]}, func(r db.Row) error {
		c, err = scanRow(r)
		return err
	})
	return found(c, err)
}

// WithLast is Get with the row of the checkout's last ask, nil if there is none. Nothing is
// known of its payment.
func WithLast(ctx context.Context, tx *store.Tx, ref store.Ref) (c *Row, last *till.Ask, err error) {
	err = tx.DB().Query(ctx, selectWithLast, []any{ref.Client[:], ref.ID[:]}, func(r db.Row) error {
		a := &till.Ask{ClientID: ref.Client, CheckoutID: ref.ID}
		c, err = scanRow(r, db.Int(&a.N), db.ID(&a.Key), db.Text(&a.Method), db.Text(&a.Country), db.Int(&a.Amount.Minor), db.Text(&a.Phone), db.Int(&a.AskedAt), db.Text(&a.Refused))
		if a.Amount.Currency = c.Amount.Currency; a.N > 0 {
			last = a
		}
		return err
	})
	c, err = found(c, err)
	return c, last, err
}

func found(c *Row, err error) (*Row, error) {
	if err == nil && c == nil {
		err = till.Errorf(till.CodeCheckoutNotFound, "there is no such checkout")
	}
	return c, err
}

// MayWrite reports whether the installation's level allows checkouts.
func MayWrite(ctx context.Context, tx *store.Tx) (bool, error) {
	level := 1
	_, err := tx.DB().QueryRow(ctx, selectLevel, nil, &level)
	return level >= Level, err
}
