package store_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

// F34: the power goes. What was flushed when a create was answered is on the
// disk, and nothing after it need be: the log ends there, or goes on with
// whatever the disk held. Every payment that was answered is there, and the
// books are right. (That the flush itself happened is the engine's word.)
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "till.db")
	s := storetest.Open(t, store.Config{Path: path})
	c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)

	type moment struct {
		database, log []byte
		answered      []till.ID
	}
	var moments []moment
	var answered []till.ID
	for range 12 {
		p := storetest.NewPayment(t, c, client, storetest.Body{})
		answered = append(answered, p.ID)
		storetest.Apply(t, c, s, p, storetest.Succeeded)
		moments = append(moments, moment{read(t, path), read(t, path+"-wal"), append([]till.ID(nil), answered...)})
	}
	last := moments[len(moments)-1].log
	garbage := make([]byte, 3*4096+77)
	rand.Read(garbage)
	for i, m := range moments {
		size := len(m.log)
		for name, tail := range map[string][]byte{
			"the log ends there":            nil,
			"garbage follows":               garbage,
			"a part of the next one":        last[size:min(len(last), size+5000)],
			"what follows is half in place": append(make([]byte, min(1000, len(last)-size)), last[min(len(last), size+1000):]...),
		} {
			t.Run(fmt.Sprintf("after %d payments %s", i+1, name), func(t *testing.T) {
				after := filepath.Join(t.TempDir(), "till.db")
				write(t, after, m.database)
				write(t, after+"-wal", append(append([]byte(nil), m.log...), tail...))
				lookAfterPowerLoss(t, after, client.ID, m.answered)
			})
		}
	}
}

func lookAfterPowerLoss(t *testing.T, path string, client till.ID, answered []till.ID) {
	var sound string
	if err := storetest.OpenRaw(t, path).QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&sound); err != nil || sound != "ok" {
		t.Errorf("the file is not sound: %s %v", sound, err)
	}
	s := storetest.Open(t, store.Config{Path: path})
	storetest.CheckInvariants(t, s)
	err := s.View(t.Context(), func(tx *store.Tx) error {
		for _, id := range answered {
			ref := store.Ref{Client: client, ID: id}
			rows, err := tx.Payments(t.Context(), []store.Ref{ref})
			if err != nil {
				return err
			}
			if p := rows[ref]; p == nil || p.Status != till.Success {
				t.Errorf("payment %s was answered and is %v", id, p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
