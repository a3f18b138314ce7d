package doctor

import (
	"context"
	"fmt"
	"time"

	"till"
	"till/books"
	"till/internal/db/postgres"
	"till/store"
	"till/store/admin"
)

// examineBackups reports how old the last backup and the last drill are.
func (d *doctor) examineBackups(ctx context.Context, s *store.Store) error {
	if s.Shared() {
		return nil // see addArchive
	}
	return s.View(ctx, func(tx *store.Tx) error {
		i, err := admin.ReadInstallation(ctx, tx)
		if err != nil || i == nil {
			return err
		}
		for _, c := range []struct {
			kind admin.BackupKind
			most time.Duration
			do   string
		}{
			{admin.KindBackup, books.MaxBackupAge, "'till backup'"},
			{admin.KindDrill, books.MaxDrillAge, "'till drill --database'"},
		} {
			r, err := admin.ReadBackup(ctx, tx, c.kind)
			if err != nil {
				return err
			}
			d.addBackup(string(c.kind), r, i.CreatedAt, tx.Now(), c.most, c.do)
		}
		return nil
	})
}

// addBackup judges the last backup or drill. A new installation has some time until
// its first.
func (d *doctor) addBackup(name string, r *admin.BackupResult, created, now till.Time, most time.Duration, do string) {
	if r == nil {
		r = &admin.BackupResult{}
	}
	switch age := now.Sub(r.EndedAt); {
	case !r.FailedAt.IsZero():
		d.add(name, Risky, "the last one failed at %s: %s", r.FailedAt, r.Problem)
	case r.EndedAt.IsZero() && now.Sub(created) < most:
		d.add(name, Fine, "none yet; run %s", do)
	case r.EndedAt.IsZero():
		d.add(name, Risky, "there was never one: run %s", do)
	default:
		said := fmt.Sprintf("the last one is %s old: the state of %s, %s in %s", age.Round(time.Minute), r.TakenAt, megabytes(r.Bytes), time.Duration(r.TookMS)*time.Millisecond)
		d.addIf(name, age > most, Risky, said, said+"; run "+do)
	}
}

// addArchive judges the archive of PostgreSQL's log: by it a restore loses seconds,
// and not a day.
func (d *doctor) addArchive(h *postgres.Diagnosis, now time.Time) {
	switch {
	case !h.Archives:
		d.add("archive", Risky, "archive_mode is off: a restore loses everything since the last base backup; docs/guide/backup.md sets up pgBackRest")
	case !h.ArchiveFailed.IsZero() && h.ArchiveFailed.After(h.Archived):
		d.add("archive", Risky, "archiving has failed since %s: if the disk is lost, so is what came after", till.TimeOf(h.ArchiveFailed))
	case h.Archived.IsZero():
		d.add("archive", Risky, "no segment of the log was archived yet")
	default:
		age := now.Sub(h.Archived)
		said := fmt.Sprintf("the last segment was archived %s ago", age.Round(time.Second))
		d.addIf("archive", age > books.MaxArchiveAge, Risky, said, said+"; set archive_timeout, and look whether archive_command works")
	}
}
