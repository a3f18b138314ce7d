package checkouts

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var selectPayName = db.Define(db.SQL{Name: "pages.selectName",
	SQLite: `SELECT pay_name, pay_name_asked, pay_name_asked_at, pay_name_asked_by FROM client_profiles WHERE client_id = $1`})

var savePayName = db.Define(db.SQL{Name: "pages.saveName",
	SQLite: `INSERT INTO client_profiles (client_id, name, zone, country, language, receipt_head, receipt_foot, updated_at, pay_name, pay_name_asked, pay_name_asked_at, pay_name_asked_by)
		VALUES ($1, '', $2, '', '', '', '', $3, $4, $5, $6, $7)
		ON CONFLICT (client_id) DO UPDATE SET pay_name = excluded.pay_name, pay_name_asked = excluded.pay_name_asked,
		pay_name_asked_at = excluded.pay_name_asked_at, pay_name_asked_by = excluded.pay_name_asked_by`})

var selectPayNames = db.Define(db.SQL{Name: "pages.selectNames",
	SQLite: `SELECT client_id, pay_name FROM client_profiles WHERE pay_name <> '' AND client_id > $1 ORDER BY client_id LIMIT $2`})

var selectPayNamesAsked = db.Define(db.SQL{Name: "pages.selectNamesAsked",
	SQLite: `SELECT client_id, pay_name, pay_name_asked, pay_name_asked_at, pay_name_asked_by FROM client_profiles
		WHERE pay_name_asked <> '' ORDER BY pay_name_asked_at, client_id LIMIT $1`})

// PayName is the name that a client's pages show, and the one that it has asked for.
type PayName struct {
	Client  till.ID
	Shown   string // "": the client's own
	Asked   string // it waits for the house; "": none does
	AskedAt till.Time
	AskedBy string
}

// ReadPayName returns a client's.
func ReadPayName(ctx context.Context, tx *store.Tx, client till.ID) (n PayName, err error) {
	n.Client = client
	_, err = tx.DB().QueryRow(ctx, selectPayName, []any{client[:]}, &n.Shown, &n.Asked, db.Int(&n.AskedAt), db.Text(&n.AskedBy))
	return n, err
}

// SavePayName writes it. The caller has locked the client's head.
func SavePayName(ctx context.Context, tx *store.Tx, n PayName, at till.Time) error {
	_, err := tx.DB().Exec(ctx, savePayName, n.Client[:], till.DefaultZone, int64(at), n.Shown, n.Asked, db.OrNull(n.AskedAt), db.OrNull(n.AskedBy))
	return err
}

// PayNames returns the names that pages show, of clients after one of them.
func PayNames(ctx context.Context, tx *store.Tx, after till.ID, limit int) ([]PayName, error) {
	return db.ReadAll(ctx, tx.DB(), selectPayNames, []any{after[:], limit}, func(r db.Row) (n PayName, err error) {
		err = r.Scan(db.ID(&n.Client), &n.Shown)
		return n, err
	})
}

// PayNamesAsked returns the names that wait for the house, the one that has waited longest first.
func PayNamesAsked(ctx context.Context, tx *store.Tx, limit int) ([]PayName, error) {
	return db.ReadAll(ctx, tx.DB(), selectPayNamesAsked, []any{limit}, func(r db.Row) (n PayName, err error) {
		err = r.Scan(db.ID(&n.Client), &n.Shown, &n.Asked, &n.AskedAt, &n.AskedBy)
		return n, err
	})
}
