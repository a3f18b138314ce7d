package books

import (
	"context"
	"errors"
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
	rollUpBatch    = 500
	rollUpClients  = 1_000
	rollUpInterval = time.Minute
	rollUpAfter    = till.Hour
)

// RollUp puts what was tallied in the hours before the one of a moment into the counters, in
// small commits that let requests go first. It returns how many tallies there
// were. What comes meanwhile is left for the next time. A client whose counters are damaged, which Verify
// finds, does not keep the others from it.
func RollUp(ctx context.Context, s *store.Store, until till.Time) (int, error) {
	total, more := 0, true
	var failed error
	for more && failed == nil {
		var clients []till.ID
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			clients, err = tx.UnfoldedClients(ctx, until, rollUpClients)
			return err
		})
		if err != nil {
			return total, err
		}
		more = len(clients) == rollUpClients
		for _, id := range clients {
			for n := rollUpBatch; n == rollUpBatch; {
				if err := ctx.Err(); err != nil {
					return total, err
				}
				err := s.UpdateBehind(ctx, func(tx *store.Tx) (err error) {
					n, err = tx.Fold(ctx, id, until, rollUpBatch)
					return err
				})
				if err != nil {
					err = fmt.Errorf("fold the tallies of client %s: %w", id, err)
				}
				if errors.Is(err, store.ErrRefused) {
					failed = errors.Join(failed, err)
					break
				} else if err != nil { // a database that is away is away for all
					return total, errors.Join(failed, err)
				}
				total += n
			}
		}
	}
	return total, failed
}

// RunRollUp folds until ctx ends, about once a minute. It counts the parts of busy
// hours first: after the fold nothing says that an hour has changed.
func RunRollUp(ctx context.Context, s *store.Store, log *slog.Logger) {
	old := false // whether hours from before this process are done
	runInBackground(ctx, log, "fold tallies into counters", rollUpInterval, func(ctx context.Context) error {
		failed := SplitHours(ctx, s)
		if _, err := RollUp(ctx, s, s.Now()-rollUpAfter); err != nil {
			failed = errors.Join(failed, err)
		}
		if failed == nil && !old {
			failed = SplitOldHours(ctx, s)
			old = failed == nil
		}
		return failed
	})
}
