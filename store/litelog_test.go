package store_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

// A backup is put in the place of a database that has crashed, and the log of
// the crashed one still lies there. SQLite would replay it: the payments of
// after the backup come back, or the file is broken. It is not opened, and
// nothing is changed.
func TestALogOfAnotherDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	for name, backUp := range map[string]func(t *testing.T, path, to string){
		// The guide's way, while the server runs.
		"vacuum into": func(t *testing.T, path, to string) {
			storetest.Exec(t, storetest.OpenRaw(t, path), `VACUUM INTO '`+to+`'`)
		},
		// A copy of the file while nobody has it open.
		"copy": func(t *testing.T, path, to string) { write(t, to, read(t, path)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, backup := filepath.Join(dir, "till.db"), filepath.Join(dir, "backup.db")
			s, client, kept := payOnce(t, path, nil)
			if name == "vacuum into" {
				backUp(t, path, backup)
			}
			s.Close()
			if name == "copy" {
				backUp(t, path, backup)
			}
			s, _, _ = payOnce(t, path, client)
			s.Close()
			crash, _, lost := payOnce(t, path, client)
			defer crash.Close() // not before its files are copied: it crashes
			log, shared := read(t, path+"-wal"), read(t, path+"-shm")

			after := filepath.Join(t.TempDir(), "till.db")
			write(t, after, read(t, backup))
			write(t, after+"-wal", log)
			write(t, after+"-shm", shared)
			var foreign *store.ForeignLogError
			if s, err := store.Open(t.Context(), store.Config{Path: after}); !errors.As(err, &foreign) {
				if err == nil {
					s.Close()
				}
				t.Fatalf("opened beside the log of another database: %v", err)
			}
			if !bytes.Equal(read(t, after), read(t, backup)) || !bytes.Equal(read(t, after+"-wal"), log) {
				t.Error("the refusal has changed the files")
			}

			// Without the log the backup is what it was.
			alone := filepath.Join(t.TempDir(), "till.db")
			write(t, alone, read(t, backup))
			s = storetest.Open(t, store.Config{Path: alone})
			storetest.CheckInvariants(t, s)
			if !hasPayment(t, s, client, kept) || hasPayment(t, s, client, lost) {
				t.Error("the backup is not what was backed up")
			}

			// And the crashed database opens with its own log, in another place too.
			crashed := filepath.Join(t.TempDir(), "till.db")
			write(t, crashed, read(t, path))
			write(t, crashed+"-wal", log)
			if s := storetest.Open(t, store.Config{Path: crashed}); !hasPayment(t, s, client, lost) {
				t.Error("the crashed database has lost what was in its log")
			}
		})
	}
}

// An empty file beside a log is refused too: SQLite would delete the log.
func TestALogWithoutItsDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.db")
	s, _, _ := payOnce(t, path, nil)
	defer s.Close()
	after := filepath.Join(t.TempDir(), "till.db")
	write(t, after+"-wal", read(t, path+"-wal"))
	var foreign *store.ForeignLogError
	if _, err := store.Open(t.Context(), store.Config{Path: after}); !errors.As(err, &foreign) {
		t.Errorf("opened a file that is not there beside a log: %v", err)
	}
	write(t, after, nil)
	if _, err := store.Open(t.Context(), store.Config{Path: after}); !errors.As(err, &foreign) {
		t.Errorf("opened an empty file beside a log: %v", err)
	}
	if len(read(t, after+"-wal")) == 0 {
		t.Error("the log is gone")
	}
}

// What the database holds is nobody else's to read, whatever folder it is in.
func TestANewDatabaseIsReadableByItsOwnerOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "till.db")
	s, _, _ := payOnce(t, path, nil)
	defer s.Close()
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(name), mode)
		}
	}
}

// payOnce opens a database and makes a payment of a client, a new one if it
// is nil.
func payOnce(t *testing.T, path string, client *till.Client) (*store.Store, *till.Client, till.ID) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Path: path})
	if err == nil {
		_, err = s.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if client == nil {
		client = storetest.NewClient(t, s, till.Test)
	}
	p := storetest.NewPayment(t, storetest.NewCollector(t, s), client, storetest.Body{})
	return s, client, p.ID
}

func hasPayment(t *testing.T, s *store.Store, client *till.Client, id till.ID) (found bool) {
	t.Helper()
	err := s.View(t.Context(), func(tx *store.Tx) error {
		ref := store.Ref{Client: client.ID, ID: id}
		rows, err := tx.Payments(t.Context(), []store.Ref{ref})
		found = rows[ref] != nil
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
