package server

import (
	"context"
	"errors"
	"path/filepath"

	"till/internal/system"
	"till/journal"
	"till/store"
	"till/store/admin"
)

// openJournal opens the journal of creates, if there is one and this instance creates. It
// warns if the disk that it is for would take it along.
func (s *Server) openJournal(ctx context.Context) error {
	if s.c.Journal == "" || !s.c.Role.serves() {
		return nil
	}
	var made *admin.Installation
	err := s.store.View(ctx, func(tx *store.Tx) (err error) {
		made, err = admin.ReadInstallation(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	if made == nil {
		return errors.New("the journal needs an installation, and there is none")
	}
	s.journal, err = journal.Open(journal.Config{Folder: s.c.Journal, Secret: s.secret, Installation: made.CreatedAt, Sync: s.c.JournalSync,
		Keep: s.c.JournalKeep, Max: s.c.JournalMax, Log: s.log, Count: s.meter.Journaled})
	if err != nil {
		return err
	}
	s.undo.push(s.journal.Close)
	s.meter.Gauge("journal_failing", func() float64 { return oneIf(s.journal.Failing()) })
	s.meterDisk(s.c.Journal, "journal")
	if !store.IsPostgres(s.c.Database) && system.OnOneDisk(s.c.Journal, filepath.Dir(s.c.Database)) {
		s.log.Warn("journal on the database's disk", "journal", s.c.Journal, "database", s.c.databaseName())
	}
	return nil
}
