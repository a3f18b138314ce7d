package upkeep

import (
	"context"
	"fmt"

	"till"
	"till/store"
)

// The bounds of one commit and of one read.
const (
	splitParts   = 1 // parts of a busy hour in one commit, for which the client's other commits wait
	splitClients = 1_000
)

// SplitHours counts the parts of the busy hours that have changed lately, in small
// commits that let requests go first.
func SplitHours(ctx context.Context, s *store.Store) error {
	var hours []store.BusyHour
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		hours, err = tx.HoursToSplit(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return splitHours(ctx, s, hours)
}

// SplitOldHours counts the parts of all busy hours that were never split: those that
// an earlier release, or a restore, has left.
func SplitOldHours(ctx context.Context, s *store.Store) error {
	var last till.ID
	for {
		var clients []*till.Client
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			clients, err = tx.Clients(ctx, last, splitClients)
			return err
		})
		if err != nil || len(clients) == 0 {
			return err
		}
		for _, c := range clients {
			if err := ctx.Err(); err != nil {
				return err
			}
			var hours []store.BusyHour
			err := s.View(ctx, func(tx *store.Tx) (err error) {
				hours, err = tx.HoursNeverSplit(ctx, c.ID)
				return err
			})
			if err == nil {
				err = splitHours(ctx, s, hours)
			}
			if err != nil {
				return err
			}
			last = c.ID
		}
	}
}

func splitHours(ctx context.Context, s *store.Store, hours []store.BusyHour) error {
	for _, h := range hours {
		if err := splitHour(ctx, s, h); err != nil {
			return fmt.Errorf("split hour %d of client %s: %w", h.Hour, h.Client, err)
		}
	}
	return nil
}

func splitHour(ctx context.Context, s *store.Store, h store.BusyHour) error {
	more, stale := true, false
	for more {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := s.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
			more, stale, err = tx.AddParts(ctx, h, splitParts)
			return err
		})
		if err != nil {
			return err
		}
	}
	after := till.Time(0)
	for stale {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := till.Time(0)
		err := s.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
			next, err = tx.RecountParts(ctx, h, after, splitParts)
			return err
		})
		if err != nil {
			return err
		}
		after, stale = next, next > 0
	}
	return nil
}
