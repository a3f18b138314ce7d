package seed

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var selectChunkEnd = &db.SQL{Name: "seed.selectChunkEnd",
	SQLite: `SELECT id FROM (SELECT id FROM payments WHERE client_id = $1 AND id > $2 AND id <= $3 ORDER BY id LIMIT $4) AS chunk ORDER BY id DESC LIMIT 1`}

var insertAttempts = &db.SQL{Name: "seed.insertAttempts",
	SQLite: `INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, outcome, started_at, ended_at, last_at, first_send)
		SELECT client_id, id, 1, 'submit', connection, idempotency_key, 'accepted', created_at, created_at, created_at, 1
		FROM payments WHERE client_id = $1 AND id > $2 AND id <= $3`}

var insertTransactions = &db.SQL{Name: "seed.insertTransactions",
	SQLite: `INSERT INTO transactions (client_id, id, wallet_id, sequence, type, direction, amount, currency, balance_after, payment_id, created_at, money_in)
		SELECT p.client_id, p.id, w.id, row_number() OVER (PARTITION BY p.currency ORDER BY p.id) + CAST($1 AS BIGINT), 'collection', 'credit',
			p.amount, p.currency, 0, p.id, p.created_at, 1
		FROM payments p JOIN wallets w ON w.client_id = p.client_id AND w.currency = p.currency
		WHERE p.client_id = $2 AND p.id > $3 AND p.id <= $4 AND p.status = 'success'`}

var insertPostings = &db.SQL{Name: "seed.insertPostings",
	SQLite: `INSERT INTO postings (client_id, entry_id, account, connection, currency, amount, kind, payment_id, created_at)
		SELECT client_id, id, 'operator', connection, currency, -amount, 'collection', id, created_at
		FROM payments WHERE client_id = $1 AND id > $2 AND id <= $3 AND status = 'success'`}

// Ledger gives seeded payments, made between two moments, what a comparison with
// an operator's statement reads: the reference of their first send, and for those
// that succeeded a line of their wallet with its other side. It must run once for
// the same client and times.
func Ledger(ctx context.Context, s *store.Store, client till.ID, from, to till.Time) error {
	after, last := till.LastID(from-1), till.LastID(to)
	for n := int64(0); ; n += chunkRows {
		var next till.ID
		err := s.Update(ctx, func(tx *store.Tx) (err error) {
			if n == 0 {
				if err := ensureWallets(ctx, tx, client, from); err != nil {
					return err
				}
			}
			if next, err = endOfChunk(ctx, tx, client, after, last); err != nil || next.IsZero() {
				return err
			}
			return writeLedger(ctx, tx, client, after, next, n)
		})
		if err != nil || next.IsZero() {
			return err
		}
		after = next
	}
}

func ensureWallets(ctx context.Context, tx *store.Tx, client till.ID, at till.Time) error {
	for _, currency := range []string{"XAF", "KES"} {
		if err := tx.EnsureWallet(ctx, client, currency, at); err != nil {
			return err
		}
	}
	return nil
}

// endOfChunk returns the last id of the next chunk of payments; zero if none is
// left.
func endOfChunk(ctx context.Context, tx *store.Tx, client, after, last till.ID) (id till.ID, err error) {
	err = tx.DB().Query(ctx, selectChunkEnd, []any{client[:], after[:], last[:], chunkRows}, func(r db.Row) (err error) {
		id, err = scanID(r)
		return err
	})
	return id, err
}

// writeLedger writes the rows of the payments beyond one id and up to another.
func writeLedger(ctx context.Context, tx *store.Tx, client, after, last till.ID, first int64) error {
	tx.DB().WithoutTimeout()
	if _, err := tx.DB().Exec(ctx, insertAttempts, client[:], after[:], last[:]); err != nil {
		return err
	}
	if _, err := tx.DB().Exec(ctx, insertTransactions, first, client[:], after[:], last[:]); err != nil {
		return err
	}
	_, err := tx.DB().Exec(ctx, insertPostings, client[:], after[:], last[:])
	return err
}
