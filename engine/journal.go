package engine

import (
	"context"
	"errors"

	"till"
	"till/store"
)

// Journal keeps creates outside of the database, for the day on which that is lost.
type Journal interface {
	// Synchronous reports whether Committing has work to do.
	Synchronous() bool
	// Committing is called with new rows before their commit. If it returns an error, they
	// are not committed. It may be called again for the same calls, with other ids: then
	// the commit before has failed, or its outcome is unknown.
	Committing(kind till.SubjectKind, entries []JournalEntry) error
	// Committed is called with new rows after their commit, before they are answered. It
	// must not wait.
	Committed(kind till.SubjectKind, entries []JournalEntry)
}

// JournalEntry is a new row and its client.
type JournalEntry struct {
	Client *till.Client
	Row    store.Subject
}

// errJournal means that creates were refused because the journal could not be written.
var errJournal = errors.New("the journal is not written")

// journalCommitting writes the rows that are about to be committed to a synchronous
// journal. The database has them by then: a call whose key turned out to be taken would
// otherwise be journaled under an id that never was.
func (p *Processor[R]) journalCommitting(ctx context.Context, tx *store.Tx, calls []*CreateCall[R]) error {
	if p.c.Journal == nil || !p.c.Journal.Synchronous() {
		return nil
	}
	if err := tx.Flush(ctx); err != nil {
		return err
	}
	if err := p.c.Journal.Committing(p.table.Kind, journalEntries(calls)); err != nil {
		return errors.Join(errJournal, till.Errorf(till.CodeServiceUnavailable, "the journal of creates cannot be written; try again with the same key"), err)
	}
	return nil
}

func (p *Processor[R]) journalCommitted(calls []*CreateCall[R]) {
	if p.c.Journal != nil {
		p.c.Journal.Committed(p.table.Kind, journalEntries(calls))
	}
}

// journalEntries returns the rows that calls have made.
func journalEntries[R Subject](calls []*CreateCall[R]) []JournalEntry {
	out := make([]JournalEntry, 0, len(calls))
	for _, call := range calls {
		if call.made() {
			out = append(out, JournalEntry{call.Client.Client, call.Row.Subject()})
		}
	}
	return out
}
