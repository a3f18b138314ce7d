package main

import (
	"context"
	"io"
	"maps"
	"slices"

	"till/backup"
	"till/cmd/till/internal/cli"
	"till/store"
	"till/store/admin"
)

// afterwards marks a new backup as held, or deletes what need not be kept.
func (b *backupFlags) afterwards(ctx context.Context, s *store.Store, place backup.Place, name backup.Name, keep backup.Keep, current bool) (backup.Pruned, error) {
	if b.hold {
		return backup.Pruned{}, backup.SetMark(ctx, place, name, backup.Held, "kept by "+cli.Actor())
	}
	if keep == (backup.Keep{}) {
		return backup.Pruned{}, nil
	}
	g, err := pruneGuard(ctx, s, current)
	if err != nil {
		return backup.Pruned{}, err
	}
	return keep.Prune(ctx, place, name.Installation, g)
}

// pruneGuard reads what the database says against deleting a backup. The older ones may be
// the only good ones while something is wrong with it.
func pruneGuard(ctx context.Context, s *store.Store, current bool) (g backup.Guard, err error) {
	g.Now = s.Now()
	if !current {
		g.Stop = "the database has the schema of another release: start the service, or run 'till migrate'"
		return g, nil
	}
	err = s.View(ctx, func(tx *store.Tx) error {
		v, err := admin.LastVerification(ctx, tx)
		if err != nil {
			return err
		}
		restoring, err := admin.Restoring(ctx, tx)
		if err != nil {
			return err
		}
		switch {
		case v != nil && v.Problems > 0:
			g.Stop = "the last 'till verify' found problems, so an older backup may be the last good one"
		case restoring:
			g.Stop = "a restore is not released yet ('till restored --show')"
		}
		drill, err := admin.ReadBackup(ctx, tx, admin.KindDrill)
		if err != nil {
			return err
		}
		if drill != nil {
			g.Drilled = drill.TakenAt
		}
		lost, err := admin.LostTimes(ctx, tx)
		for _, r := range lost {
			g.Lost = append(g.Lost, backup.Span{From: r.LostFrom, To: r.At})
		}
		return err
	})
	return g, err
}

// printPruned says what was deleted, and what stayed that --keep would delete.
func printPruned(w io.Writer, p *backup.Pruned) {
	if len(p.Removed) > 0 {
		cli.Printf(w, "%s deleted.\n", cli.Count(len(p.Removed), "older backup was", "older backups were"))
	}
	if p.Stop != "" {
		cli.Printf(w, "No backup was deleted: %s.\n", p.Stop)
	}
	for _, why := range slices.Sorted(maps.Keys(p.Stayed)) {
		cli.Printf(w, "%s kept beyond --keep: %s.%s\n", cli.Count(p.Stayed[why], "backup was", "backups were"), why, stayedHints[why])
	}
}

// stayedHints say what to do where a person can do something.
var stayedHints = map[backup.Why]string{
	backup.WhyUndrilled: " Run 'till drill' to prove the newest.",
	backup.WhyHeld:      " Delete its .held file to let it go.",
	backup.WhyLost:      " Delete it by hand when you need it no more.",
}
