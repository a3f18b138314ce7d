package admin

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"till"
	"till/internal/db"
	"till/store"
)

var countOpenRefunds = db.Define(db.SQL{Name: "installation.countOpenRefunds",
	SQLite: `SELECT count(*) FROM payouts q JOIN payments p ON p.client_id = q.client_id AND p.id = q.payment_id
		WHERE q.payment_id IS NOT NULL AND q.final_event IS NULL AND p.connection = $1`})

// refundsSuffix ends the names under which connections keep by which way their payments are
// given back.
const refundsSuffix = " refunds"

// ConnectionRefunds is by which way the payments of a connection are given back.
type ConnectionRefunds struct {
	By        string    // "": it was never registered
	Before    string    // until ChangedAt; "" if it never changed
	ChangedAt till.Time // zero: never
}

// RefundsOfConnection returns by which way the payments of a connection are given back.
func RefundsOfConnection(ctx context.Context, tx *store.Tx, name string) (r ConnectionRefunds, err error) {
	kept, err := tx.ConnectionFingerprint(ctx, name+refundsSuffix)
	parts := strings.Split(kept, "\n")
	if r.By = parts[0]; err != nil || len(parts) != 3 {
		return r, err
	}
	at, err := strconv.ParseInt(parts[2], 10, 64)
	r.Before, r.ChangedAt = parts[1], till.Time(at)
	return r, err
}

// SetConnectionRefunds keeps by which way the payments of a connection are given back.
func SetConnectionRefunds(ctx context.Context, tx *store.Tx, name string, r ConnectionRefunds) error {
	text := r.By
	if !r.ChangedAt.IsZero() {
		text = fmt.Sprintf("%s\n%s\n%d", r.By, r.Before, int64(r.ChangedAt))
	}
	return SetConnectionFingerprint(ctx, tx, name+refundsSuffix, text)
}

// OpenRefundsOf counts the open refunds of payments on a connection.
func OpenRefundsOf(ctx context.Context, tx *store.Tx, name string) (n int, err error) {
	_, err = tx.DB().QueryRow(ctx, countOpenRefunds, []any{name}, &n)
	return n, err
}
