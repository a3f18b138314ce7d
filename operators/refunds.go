package operators

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"till"
	"till/engine"
	"till/store"
	"till/store/admin"
)

// RegisterRefunds records by which way the payments of each connection are given back. It
// rejects another way than until now while refunds of a connection's payments are open: one
// that was lost with a database, and is made again, would take the other road, and the operator
// would not know it again.
func RegisterRefunds(ctx context.Context, s *store.Store, origins map[string]engine.Origin) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(origins)) {
		errs = append(errs, registerRefunds(ctx, s, name, origins[name].Refunds))
	}
	return errors.Join(errs...)
}

func registerRefunds(ctx context.Context, s *store.Store, name string, by engine.RefundBy) error {
	kept, err := keptRefunds(ctx, s, name)
	if err != nil || kept.By == string(by) {
		return err
	}
	return s.Update(ctx, func(tx *store.Tx) error {
		if kept.By == "" {
			return admin.SetConnectionRefunds(ctx, tx, name, admin.ConnectionRefunds{By: string(by)})
		}
		n, err := admin.OpenRefundsOf(ctx, tx, name)
		if err != nil {
			return err
		}
		if n > 0 {
			return fmt.Errorf("payments of the connection %s are given back in the way %q, and %s open: write refunds = %q into the connection until they have ended, and %q after that",
				name, kept.By, open(n), kept.By, by)
		}
		return admin.SetConnectionRefunds(ctx, tx, name, admin.ConnectionRefunds{By: string(by), Before: kept.By, ChangedAt: tx.Now()})
	})
}

func open(refunds int) string {
	if refunds == 1 {
		return "one of their refunds is"
	}
	return fmt.Sprintf("%d of their refunds are", refunds)
}

func keptRefunds(ctx context.Context, s *store.Store, name string) (kept admin.ConnectionRefunds, err error) {
	err = s.View(ctx, func(tx *store.Tx) (err error) {
		kept, err = admin.RefundsOfConnection(ctx, tx, name)
		return err
	})
	return kept, err
}

// CheckRefunds returns an error if payments of a connection are given back in another way than
// the servers do it.
func CheckRefunds(ctx context.Context, s *store.Store, origins map[string]engine.Origin) error {
	for _, name := range slices.Sorted(maps.Keys(origins)) {
		kept, err := keptRefunds(ctx, s, name)
		if err != nil {
			return err
		}
		if by := origins[name].Refunds; kept.By != "" && kept.By != string(by) {
			return fmt.Errorf("the servers give payments of the connection %s back in the way %q, and here it would be %q: use their configuration", name, kept.By, by)
		}
	}
	return nil
}

// changeShows is how long a change of the way is reported: so long may a backup be old that a
// lost refund is made again after.
const changeShows = 7 * 24 * time.Hour

// RecentChange returns the way in which payments of a connection were given back until lately,
// and when that changed; "" if it did not.
func RecentChange(ctx context.Context, s *store.Store, name string) (before engine.RefundBy, at till.Time, err error) {
	kept, err := keptRefunds(ctx, s, name)
	if err != nil || kept.ChangedAt.IsZero() || s.Now() >= kept.ChangedAt.Add(changeShows) {
		return "", 0, err
	}
	return engine.RefundBy(kept.Before), kept.ChangedAt, nil
}
