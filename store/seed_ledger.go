package store

import (
	"context"

	"till"
	"till/internal/db"
)

var seedChunkEnd = db.Define(db.SQL{Name: "seed.seedChunkEnd",
	SQLite: `SELECT id FROM (SELECT id FROM payments WHERE client_id = $1 AND id > $2 AND id <= $3 ORDER BY id LIMIT $4) AS chunk ORDER BY id DESC LIMIT 1`})

var seedAttempts = db.Define(db.SQL{Name: "seed.seedAttempts",
	SQLite: `INSERT INTO attempts (client_id, subject_id, n, kind, connection, reference, outcome, started_at, ended_at, last_at, first_send)
		SELECT client_id, id, 1, 'submit', connection, idempotency_key, 'accepted', created_at, created_at, created_at, 1
		FROM payments WHERE client_id = $1 AND id > $2 AND id <= $3`})

var seedTransactions = db.Define(db.SQL{Name: "seed.seedTransactions",
	SQLite: `INSERT INTO transactions (client_id, id, wallet_id, sequence, type, direction, amount, currency, balance_after, payment_id, created_at, money_in)
		SELECT p.client_id, p.id, w.id, row_number() OVER (PARTITION BY p.currency ORDER BY p.id) + CAST($1 AS BIGINT), 'collection', 'credit',
			p.amount, p.currency, 0, p.id, p.created_at, 1
		FROM payments p JOIN wallets w ON w.client_id = p.client_id AND w.currency = p.currency
		WHERE p.client_id = $2 AND p.id > $3 AND p.id <= $4 AND p.status = 'success'`})

var seedPostings = db.Define(db.SQL{Name: "seed.seedPostings",
	SQLite: `INSERT INTO postings (client_id, entry_id, account, connection, currency, amount, kind, payment_id, created_at)
		SELECT client_id, id, 'operator', connection, currency, -amount, 'collection', id, created_at
		FROM payments WHERE client_id = $1 AND id > $2 AND id <= $3 AND status = 'success'`})

// SeedLedger gives seeded payments, made between two moments, what a comparison
// with an operator's statement reads: the reference of their first send, and for
// those that succeeded a line of their wallet with its other side. It must run
// once for the same client and times, and like Seed it is for measuring only.
func (s *Store) SeedLedger(ctx context.Context, client till.ID, from, to till.Time) error {
	after, last := till.LastID(from-1), till.LastID(to)
	for n := int64(0); ; n += seedChunk {
		var next till.ID
		err := s.Update(ctx, func(tx *Tx) error {
			next = till.ID{}
			if n == 0 {
				if err := tx.seedWallets(ctx, client, from); err != nil {
					return err
				}
			}
			_, err := tx.db.QueryRow(ctx, seedChunkEnd,
				[]any{client[:], after[:], last[:], seedChunk}, idDest(&next))
			if err != nil || next.IsZero() {
				return err
			}
			return tx.seedLedger(ctx, client, after, next, n)
		})
		if err != nil || next.IsZero() {
			return err
		}
		after = next
	}
}

func (tx *Tx) seedWallets(ctx context.Context, client till.ID, at till.Time) error {
	for _, currency := range []string{"XAF", "KES"} {
		if err := tx.EnsureWallet(ctx, client, currency, at); err != nil {
			return err
		}
	}
	return nil
}

// seedLedger writes the rows of the payments beyond one id and up to another.
func (tx *Tx) seedLedger(ctx context.Context, client, after, last till.ID, first int64) error {
	tx.db.WithoutTimeout()
	if _, err := tx.db.Exec(ctx, seedAttempts, client[:], after[:], last[:]); err != nil {
		return err
	}
	if _, err := tx.db.Exec(ctx, seedTransactions, first, client[:], after[:], last[:]); err != nil {
		return err
	}
	_, err := tx.db.Exec(ctx, seedPostings, client[:], after[:], last[:])
	return err
}
