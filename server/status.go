package server

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"till/books"
	"till/certificates"
	"till/internal/system"
	"till/store"
)

// ReadStatus reads the status, with the disk of a SQLite file.
func ReadStatus(ctx context.Context, s *store.Store, database string) (*books.Status, error) {
	st, err := books.ReadStatus(ctx, s)
	if err == nil && !store.IsPostgres(database) {
		st.DiskSize, st.DiskFree, _ = system.DiskSpace(filepath.Dir(database))
	}
	return st, err
}

// statusTimeout is how long a read of the status may take.
const statusTimeout = 5 * time.Second

// readStatus reads the status for the admin address. About itself this instance reports what
// is so now: a full disk does not take its next pulse.
func (s *Server) readStatus() []byte {
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	st, err := ReadStatus(ctx, s.store, s.c.Database)
	if err != nil {
		s.log.Warn("status not read", "error", err)
		return nil
	}
	for _, i := range st.Instances {
		if i.ID == s.id {
			i.SeenAt, i.Troubles = st.At, s.troubles()
		}
	}
	b, err := json.Marshal(StatusOut(st))
	if err != nil {
		s.log.Error("status not written", "error", err)
	}
	return b
}

// serveStatus answers as 'till status --json' does.
func (s *Server) serveStatus(w http.ResponseWriter, _ *http.Request) {
	b := s.status.get()
	if b == nil {
		writeText(w, http.StatusServiceUnavailable, errNoDatabase.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(b)
}

// troubles returns the codes of what this instance alone knows to be wrong.
func (s *Server) troubles() string {
	var all []string
	if s.store.DiskFull() || s.fileDiskFull() {
		all = append(all, books.TellsDiskFull)
	}
	switch {
	case s.journal == nil || !s.journal.Failing():
	case s.c.JournalSync:
		all = append(all, books.TellsJournalStops)
	default:
		all = append(all, books.TellsJournal)
	}
	if s.certificates != nil {
		begins, ends := s.certificates.Validity()
		switch state, _ := certificates.Judge(begins, ends, time.Now()); state {
		case certificates.Bad:
			all = append(all, books.TellsCertificateEnded)
		case certificates.Ending:
			all = append(all, books.TellsCertificate)
		}
	}
	return strings.Join(all, ",")
}

func (s *Server) fileDiskFull() bool {
	if store.IsPostgres(s.c.Database) {
		return false
	}
	size, free, _ := system.DiskSpace(filepath.Dir(s.c.Database))
	return books.DiskFull(size, free)
}
