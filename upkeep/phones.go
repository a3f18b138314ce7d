package upkeep

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	"till"
	"till/internal/loop"
	"till/store"
)

// Limits of IndexPhones: rows in a commit, clients in a round, the interval of
// RunPhones, and how old an id is before it is taken. Ids of one client are made in
// order, but committed by several instances; after this time no commit is under way
// any more. What is younger is found by a scan.
const (
	phoneBatch    = 500
	phoneClients  = 1_000
	phoneInterval = time.Minute
	phoneAfter    = 5 * time.Minute
)

// IndexPhones adds payments and payouts that were made before a time to the index
// of phones, in small background commits, and returns how many there were.
func IndexPhones(ctx context.Context, s *store.Store, key store.PhoneKey, until till.Time) (total int, err error) {
	var after till.ID
	for {
		var clients []till.ID
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			clients, err = tx.ClientsToIndex(ctx, after, phoneClients)
			return err
		})
		if err != nil {
			return total, err
		}
		for _, id := range clients {
			for n := phoneBatch; n >= phoneBatch; total += n {
				if err := ctx.Err(); err != nil {
					return total, err
				}
				if n, err = indexPhones(ctx, s, key, id, until); err != nil {
					return total, fmt.Errorf("index the phones of client %s: %w", id, err)
				}
			}
			after = id
		}
		if len(clients) < phoneClients {
			return total, nil
		}
	}
}

// indexPhones adds up to a batch of a client's payments, and of its payouts. Two
// instances at once write the same rows.
func indexPhones(ctx context.Context, s *store.Store, key store.PhoneKey, client till.ID, until till.Time) (n int, err error) {
	err = s.UpdateBackground(ctx, func(tx *store.Tx) error {
		n = 0
		head, err := tx.Head(ctx, client)
		if err != nil || head == nil {
			return err
		}
		cursor, err := tx.PhoneCursor(ctx, client)
		if err != nil {
			return err
		}
		left := false
		for _, k := range []struct {
			payouts bool
			last    *till.ID
		}{{false, &cursor.Payment}, {true, &cursor.Payout}} {
			rows, err := tx.PhonesAfter(ctx, client, k.payouts, *k.last, till.FirstID(until), phoneBatch)
			if err != nil {
				return err
			}
			if len(rows) > 0 {
				*k.last = rows[len(rows)-1].ID
				n += len(rows)
				if err := tx.InsertPhones(client, key, k.payouts, rows); err != nil {
					return err
				}
			}
			younger, err := tx.PhonesAfter(ctx, client, k.payouts, *k.last, endOfIDs, 1)
			if err != nil {
				return err
			}
			left = left || len(younger) > 0
		}
		// Nobody comes back before the client's log has grown; so only if nothing is left,
		// and nothing can be under way.
		if !left && head.LastTime < until {
			cursor.LogEnd = head.LastEvent
		}
		return tx.SavePhoneCursor(ctx, client, cursor)
	})
	return n, err
}

// endOfIDs is beyond every id that is made.
var endOfIDs = till.ID(bytes.Repeat([]byte{0xff}, len(till.ID{})))

// RunPhones fills the index of phones until ctx ends, about once a minute.
func RunPhones(ctx context.Context, s *store.Store, key store.PhoneKey, log *slog.Logger) {
	loop.RunLogged(ctx, log, "index phones", phoneInterval, func(ctx context.Context) error {
		_, err := IndexPhones(ctx, s, key, s.Now().Add(-phoneAfter))
		return err
	})
}
