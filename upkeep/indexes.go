package upkeep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"till"
	"till/internal/loop"
	"till/store"
	"till/store/lookup"
	"till/store/proof"
)

// Limits of IndexPhones and IndexWords: rows in a commit, clients in a round, the interval of
// RunIndexes, and how old an id is before it is taken. Ids of one client are made in
// order, but committed by several instances; after this time no commit is under way
// any more. What is younger is found by a scan. On SQLite all others wait for a commit: one of
// 500 rows with their words takes 160 ms.
const (
	indexBatch    = 100
	indexClients  = 1_000
	indexInterval = time.Minute
	indexAfter    = 5 * time.Minute
)

// An index is filled behind the commits, client by client, in the order of ids.
type index struct {
	name    string
	clients func(ctx context.Context, tx *store.Tx, after till.ID, limit int) ([]till.ID, error)
	cursor  func(ctx context.Context, tx *store.Tx, client till.ID) (lookup.Cursor, error)
	save    func(ctx context.Context, tx *store.Tx, client till.ID, c lookup.Cursor) error
	// add adds up to a batch of rows between two ids, and returns the last and how many there were.
	add func(ctx context.Context, tx *store.Tx, client till.ID, payouts bool, after, before till.ID) (last till.ID, n int, err error)
}

func phones(key lookup.PhoneKey) index {
	return index{"phones", lookup.ClientsToIndex, lookup.ReadPhoneCursor, lookup.SavePhoneCursor,
		func(ctx context.Context, tx *store.Tx, client till.ID, payouts bool, after, before till.ID) (last till.ID, n int, err error) {
			rows, err := lookup.PhonesAfter(ctx, tx, client, payouts, after, before, indexBatch)
			if err != nil || len(rows) == 0 {
				return after, 0, err
			}
			return rows[len(rows)-1].ID, len(rows), lookup.InsertPhones(tx, client, key, payouts, rows)
		}}
}

func wordsIndex(key lookup.PhoneKey) index {
	locked := func(ctx context.Context, tx *store.Tx, client till.ID) (lookup.Cursor, error) {
		if err := lookup.LockWords(ctx, tx, client); err != nil {
			return lookup.Cursor{}, err
		}
		return lookup.ReadWordCursor(ctx, tx, client)
	}
	return index{"words", lookup.ClientsToWord, locked, lookup.SaveWordCursor,
		func(ctx context.Context, tx *store.Tx, client till.ID, payouts bool, after, before till.ID) (last till.ID, n int, err error) {
			rows, err := lookup.WordsAfter(ctx, tx, client, payouts, after, before, indexBatch)
			if err != nil || len(rows) == 0 {
				return after, 0, err
			}
			return rows[len(rows)-1].ID, len(rows), lookup.InsertWords(tx, key, payouts, rows)
		}}
}

// IndexPhones adds payments and payouts that were made before a time to the index
// of phones, in small background commits, and returns how many there were.
func IndexPhones(ctx context.Context, s *store.Store, key lookup.PhoneKey, until till.Time) (int, error) {
	return phones(key).fill(ctx, s, until)
}

// IndexWords is IndexPhones for the index of words.
func IndexWords(ctx context.Context, s *store.Store, key lookup.PhoneKey, until till.Time) (int, error) {
	return wordsIndex(key).fill(ctx, s, until)
}

func (x index) fill(ctx context.Context, s *store.Store, until till.Time) (total int, err error) {
	var after till.ID
	for {
		var clients []till.ID
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			clients, err = x.clients(ctx, tx, after, indexClients)
			return err
		})
		if err != nil {
			return total, err
		}
		for _, id := range clients {
			for n := indexBatch; n >= indexBatch; total += n {
				if err := ctx.Err(); err != nil {
					return total, err
				}
				if n, err = x.fillClient(ctx, s, id, until); err != nil {
					return total, fmt.Errorf("index the %s of client %s: %w", x.name, id, err)
				}
			}
			after = id
		}
		if len(clients) < indexClients {
			return total, nil
		}
	}
}

// fillClient adds up to a batch of a client's payments, and of its payouts. Two
// instances at once write the same rows.
func (x index) fillClient(ctx context.Context, s *store.Store, client till.ID, until till.Time) (n int, err error) {
	err = s.UpdateBackground(ctx, func(tx *store.Tx) error {
		n = 0
		head, err := proof.Head(ctx, tx, client)
		if err != nil || head == nil {
			return err
		}
		cursor, err := x.cursor(ctx, tx, client)
		if err != nil {
			return err
		}
		left := false
		for _, k := range []struct {
			payouts bool
			last    *till.ID
		}{{false, &cursor.Payment}, {true, &cursor.Payout}} {
			last, added, err := x.add(ctx, tx, client, k.payouts, *k.last, till.FirstID(until))
			if err != nil {
				return err
			}
			*k.last, n = last, n+added
			younger, err := lookup.PhonesAfter(ctx, tx, client, k.payouts, *k.last, endOfIDs, 1)
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
		return x.save(ctx, tx, client, cursor)
	})
	return n, err
}

// endOfIDs is beyond every id that is made.
var endOfIDs = till.ID(bytes.Repeat([]byte{0xff}, len(till.ID{})))

// RunIndexes fills the indexes of phones and words until ctx ends, about once a minute.
func RunIndexes(ctx context.Context, s *store.Store, key lookup.PhoneKey, log *slog.Logger) {
	loop.RunLogged(ctx, log, "index phones", indexInterval, func(ctx context.Context) error {
		until := s.Now().Add(-indexAfter)
		_, err := IndexPhones(ctx, s, key, until)
		_, other := IndexWords(ctx, s, key, until)
		return errors.Join(err, other)
	})
}
