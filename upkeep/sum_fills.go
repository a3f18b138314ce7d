package upkeep

import (
	"context"
	"fmt"
	"time"

	"till"
	"till/store"
)

// Limits of FillSums: clients in a round, and for how long after the migration an
// instance of the release before may run, which settles without adding up.
const (
	fillClients  = 1_000
	mixedRelease = 7 * 24 * time.Hour
)

// FillSums brings the sums up to the wallets' lines where they are not all there
// yet: in a database that is older than sums. It reads one hour of a client, or
// one day of the installation, in a snapshot and adds what is missing in a small
// background commit, the newest first. An hour that was filled twice stays right.
func FillSums(ctx context.Context, s *store.Store) error {
	for {
		var fills []store.SumFill
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			fills, err = tx.SumFills(ctx, fillClients)
			return err
		})
		if err != nil || len(fills) == 0 {
			return err
		}
		for _, f := range fills {
			if err := fillClient(ctx, s, f); err != nil {
				return fmt.Errorf("fill in the sums of client %s: %w", f.Client, err)
			}
		}
	}
}

func fillClient(ctx context.Context, s *store.Store, f store.SumFill) error {
	for more := true; more; {
		var first int64
		var gap map[store.SumKey]store.Sum
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			first, gap, more, err = tx.NextSumGap(ctx, f)
			return err
		})
		if err == nil {
			err = s.UpdateBackground(ctx, func(tx *store.Tx) error {
				if !more {
					return tx.EndSumFill(ctx, f)
				}
				return tx.FillSums(ctx, f, first, gap)
			})
		}
		if err != nil {
			return err
		}
		f.Before = first
	}
	return nil
}

// FillMixedHours lets FillSums read again the hours since sums began. An
// instance calls it when it starts: where it replaces one of the release before,
// that one has settled without adding up. A week later nobody does any more, and
// nobody ever did where all clients are younger than the sums.
func FillMixedHours(ctx context.Context, s *store.Store) error {
	var since till.Time
	var oldest []*till.Client
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		if since, err = tx.SumsSince(ctx); err == nil {
			oldest, err = tx.Clients(ctx, till.ID{}, 1)
		}
		return err
	})
	if err != nil || s.Now().Sub(since) > mixedRelease || len(oldest) == 0 || oldest[0].CreatedAt >= since {
		return err
	}
	return s.UpdateBackground(ctx, func(tx *store.Tx) error { return tx.FillSumsAgain(ctx, since) })
}
