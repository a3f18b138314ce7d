package books

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"till"
	"till/store"
)

// The bounds of one commit and of one round of Fold, and how often RunFold
// looks. Most payments have ended an hour after they began, so an hour is left
// alone for another one: what ends later is folded again.
const (
	foldBatch    = 500
	foldClients  = 1_000
	foldInterval = time.Minute
	foldAfter    = till.Hour
)

// Fold puts what was tallied in the hours before the one of a moment into the counters, in
// small commits that let requests go first. It returns how many tallies there
// were.
func Fold(ctx context.Context, s *store.Store, until till.Time) (int, error) {
	total := 0
	for {
		var clients []till.ID
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			clients, err = tx.UnfoldedClients(ctx, until, foldClients)
			return err
		})
		if err != nil {
			return total, err
		}
		before := total
		for _, id := range clients {
			n := 0
			err := s.UpdateBehind(ctx, func(tx *store.Tx) (err error) {
				n, err = tx.Fold(ctx, id, until, foldBatch)
				return err
			})
			if err != nil {
				return total, fmt.Errorf("fold the tallies of client %s: %w", id, err)
			}
			total += n
		}
		if total == before {
			return total, nil
		}
	}
}

// RunFold folds until ctx ends, about once a minute.
func RunFold(ctx context.Context, s *store.Store, log *slog.Logger) {
	behind(ctx, log, "fold tallies into counters", foldInterval, func(ctx context.Context) error {
		_, err := Fold(ctx, s, s.Now()-foldAfter)
		return err
	})
}
