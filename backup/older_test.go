package backup

import (
	"bytes"
	"path/filepath"
	"testing"

	"till/books"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// A backup of an older release is migrated as it is put back. So a drill with the new program
// shows beforehand whether an upgrade goes well.
func TestABackupOfAnOlderReleaseIsMigrated(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.s.Close()
	h.database = filepath.Join(t.TempDir(), "till.db")
	storetest.LoadFixture(t, h.database, "../books/testdata/release-unreleased-0063-all")
	var err error
	if h.s, err = store.Open(t.Context(), store.Config{Path: h.database}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.s.Close() })
	err = h.s.View(t.Context(), func(tx *store.Tx) error {
		i, err := admin.ReadInstallation(t.Context(), tx)
		if err == nil {
			h.secret = i.SecretCheck // see request
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, archive := h.save(h.identity.Recipient())
	r := h.request(bytes.NewReader(archive))
	done, err := Restore(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Migrated) == 0 || done.Migrated[0] != "0064_generations" {
		t.Errorf("applied %v", done.Migrated)
	}
	s, err := store.Open(t.Context(), store.Config{Path: r.Database})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	is, err := books.Verify(t.Context(), s, books.Options{})
	if err != nil || !is.Clean() || is.Payments != 229 || is.Payouts != 67 {
		t.Errorf("%+v, %v", is, err)
	}
}
