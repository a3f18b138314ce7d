package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"till"
	"till/internal/loop"
	"till/store"
)

// Limits of RollUp: tallies in a commit, clients in a round, and the interval of
// RunRollUp. Most payments end within an hour, so an hour is rolled up one hour
// later; what ends after that makes new tallies, which are rolled up again.
const (
	rollUpBatch    = 500
	rollUpClients  = 1_000
	rollUpInterval = time.Minute
	rollUpAfter    = time.Hour
)

// RollUp moves the tallies of the hours before a time into the counters, in
// small background commits, and returns how many there were. New tallies wait
// for the next call. A client whose counters are damaged does not stop the
// others; Verify finds it.
func RollUp(ctx context.Context, s *store.Store, until till.Time) (int, error) {
	total, more := 0, true
	var failed error
	for more && failed == nil {
		var clients []till.ID
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			clients, err = tx.ClientsToRollUp(ctx, until, rollUpClients)
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
				err := s.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
					n, err = tx.RollUp(ctx, id, until, rollUpBatch)
					return err
				})
				if err != nil {
					err = fmt.Errorf("fold the tallies of client %s: %w", id, err)
				}
				if errors.Is(err, store.ErrConstraint) {
					failed = errors.Join(failed, err)
					break
				} else if err != nil { // an unavailable database is so for all clients
					return total, errors.Join(failed, err)
				}
				total += n
			}
		}
	}
	return total, failed
}

// RunRollUp rolls tallies up until ctx ends, about once a minute. It counts the
// parts of busy hours first: after a roll-up nothing shows that an hour has
// changed.
func RunRollUp(ctx context.Context, s *store.Store, log *slog.Logger) {
	old, mixed := false, false // whether hours from before this process are done
	loop.RunLogged(ctx, log, "fold tallies into counters", rollUpInterval, func(ctx context.Context) error {
		failed := SplitHours(ctx, s)
		if !mixed {
			err := FillMixedHours(ctx, s)
			mixed, failed = err == nil, errors.Join(failed, err)
		}
		failed = errors.Join(failed, FillSums(ctx, s))
		if _, err := RollUp(ctx, s, s.Now().Add(-rollUpAfter)); err != nil {
			failed = errors.Join(failed, err)
		}
		if failed == nil && !old {
			failed = SplitOldHours(ctx, s)
			old = failed == nil
		}
		return failed
	})
}
