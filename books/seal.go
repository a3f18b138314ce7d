package books

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"till"
	"till/internal/loop"
	"till/store"
)

// The bounds of one commit and of one round of Seal, and how often RunSeal
// looks.
const (
	sealBatch    = 500
	sealClients  = 1_000
	sealInterval = time.Second
)

// Seal builds the audit chains, in small commits that let requests go first. It returns how many rows it
// sealed; what comes meanwhile is left for the next time. It never seals over a
// gap: there the chain stops, and Verify says so.
func Seal(ctx context.Context, s *store.Store) (int, error) {
	total, more := 0, true
	for more {
		var clients []till.ID
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			clients, err = tx.UnsealedClients(ctx, sealClients)
			return err
		})
		if err != nil {
			return total, err
		}
		before := total
		for _, id := range clients {
			for n := sealBatch; n == sealBatch; total += n {
				if err := ctx.Err(); err != nil {
					return total, err
				}
				if n, err = sealClient(ctx, s, id); err != nil {
					return total, fmt.Errorf("seal the audit log of client %s: %w", id, err)
				}
			}
		}
		more = len(clients) == sealClients && total > before
	}
	return total, nil
}

// sealClient seals up to sealBatch rows of one log by one link. Two who seal at
// once may make two links that both go back to the same one: both are right.
func sealClient(ctx context.Context, s *store.Store, client till.ID) (n int, err error) {
	err = s.UpdateBehind(ctx, func(tx *store.Tx) error {
		n = 0
		link, err := tx.LastSeal(ctx, client)
		if err != nil {
			return err
		}
		rows, err := tx.Audit(ctx, client, link.Sequence, sealBatch)
		if err != nil {
			return err
		}
		link.Covers = 0
		for _, a := range rows {
			if a.Sequence != link.Sequence+1 {
				break
			}
			link = store.SealOf(link, a)
			n++
		}
		if n == 0 {
			return nil
		}
		return tx.InsertSeal(ctx, client, link)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// RunSeal seals until ctx ends, about once a second.
func RunSeal(ctx context.Context, s *store.Store, log *slog.Logger) {
	behind(ctx, log, "seal the audit logs", sealInterval, func(ctx context.Context) error {
		_, err := Seal(ctx, s)
		return err
	})
}

// behind does something again and again, behind the commits that made it due.
func behind(ctx context.Context, log *slog.Logger, what string, interval time.Duration, step func(context.Context) error) {
	loop.Run(ctx, loop.Options{
		Interval: interval,
		Jitter:   0.1,
		Step: func(ctx context.Context) time.Duration {
			if err := step(ctx); err != nil && ctx.Err() == nil {
				log.Error(what, "error", err)
			}
			return -1
		},
		OnPanic: func(v any) { log.Error(what, "panic", v, "stack", string(debug.Stack())) },
	})
}
