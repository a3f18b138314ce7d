package store

import (
	"context"

	"till"
	"till/internal/db"
)

var selectClientFees = db.Define(db.SQL{Name: "fees.selectClientFees",
	SQLite: `SELECT kind, method, currency, flat, basis_points FROM client_fees WHERE client_id = $1 ORDER BY kind, method, currency`})

var setClientFee = db.Define(db.SQL{Name: "fees.setClientFee",
	SQLite: `INSERT INTO client_fees (client_id, kind, method, currency, flat, basis_points) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (client_id, kind, method, currency) DO UPDATE SET flat = excluded.flat, basis_points = excluded.basis_points`})

var removeClientFee = db.Define(db.SQL{Name: "fees.removeClientFee",
	SQLite: `DELETE FROM client_fees WHERE client_id = $1 AND kind = $2 AND method = $3 AND currency = $4`})

// ClientFees returns a client's schedule of fees. There is one per kind,
// method and currency, so the list is short.
func (tx *Tx) ClientFees(ctx context.Context, client till.ID) ([]till.Fee, error) {
	var out []till.Fee
	err := tx.db.Query(ctx, selectClientFees, []any{client[:]},
		func(r db.Row) error {
			var f till.Fee
			err := r.Scan(&f.Kind, &f.Method, &f.Currency, &f.Flat, &f.BasisPoints)
			out = append(out, f)
			return err
		})
	return out, err
}

// SetClientFee sets what is taken from a client for a kind, method and
// currency.
func (tx *Tx) SetClientFee(ctx context.Context, client till.ID, f till.Fee) error {
	_, err := tx.db.Exec(ctx, setClientFee,
		client[:], string(f.Kind), f.Method, f.Currency, f.Flat, f.BasisPoints)
	return err
}

// RemoveClientFee takes a fee off the schedule, and reports whether it was on
// it.
func (tx *Tx) RemoveClientFee(ctx context.Context, client till.ID, f till.Fee) (bool, error) {
	n, err := tx.db.Exec(ctx, removeClientFee,
		client[:], string(f.Kind), f.Method, f.Currency)
	return n == 1, err
}
