package filestore_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	till "github.com/till-project/till/sdk/go"
	"github.com/till-project/till/sdk/go/filestore"
	"github.com/till-project/till/sdk/go/storetest"
)

func open(t *testing.T, folder string) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Env[*filestore.Tx] {
		folder := t.TempDir()
		s := open(t, folder)
		return storetest.Env[*filestore.Tx]{
			Store: s, Update: s.Update, Open: func() till.Store[*filestore.Tx] { return open(t, folder) },
			Set: func(_ context.Context, tx *filestore.Tx, value string) error { tx.Set("mine", value); return nil },
			Get: func(context.Context) (string, error) { return s.Get("mine") },
		}
	})
}

// A program that dies while it writes leaves a line without an end. The next one
// goes on as if it had not been.
func TestTornLine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := open(t, folder)
	set := func(s *filestore.Store, value string) {
		t.Helper()
		if err := s.Update(t.Context(), func(tx *filestore.Tx) error { tx.Set("a", value); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	set(s, "1")
	f, err := os.OpenFile(filepath.Join(folder, "till.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"notes":{"a":"2"`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	for _, s := range []*filestore.Store{s, open(t, folder)} {
		if v, err := s.Get("a"); v != "1" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	}
	set(s, "3")
	if v, err := open(t, folder).Get("a"); v != "3" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}
