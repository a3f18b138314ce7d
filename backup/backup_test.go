package backup

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"till"
	"till/store"
	"till/store/admin"
)

// house is an installation on a file, with the secret beside it.
type house struct {
	t        *testing.T
	s        *store.Store
	database string
	secret   []byte // the content of the file
	identity *age.X25519Identity
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, database: filepath.Join(t.TempDir(), "till.db")}
	raw := make([]byte, 32)
	rand.Read(raw)
	h.secret = []byte(hex.EncodeToString(raw) + "\n")
	var err error
	if h.identity, err = age.GenerateX25519Identity(); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if h.s, err = store.Open(ctx, store.Config{Path: h.database}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.s.Close() })
	if _, err := h.s.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	err = h.s.Update(ctx, func(tx *store.Tx) error {
		return admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: h.secret, CreatedAt: tx.Now()})
	})
	if err == nil {
		err = os.WriteFile(h.secretFile(), h.secret, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) secretFile() string { return filepath.Join(filepath.Dir(h.database), secretName) }

// save returns a backup.
func (h *house) save(recipients ...age.Recipient) (*Manifest, []byte) {
	h.t.Helper()
	src := &Source{Store: h.s, Secret: h.secret, Program: "test", Recipients: recipients, WithHeads: true}
	m, err := src.Prepare(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := src.Write(h.t.Context(), m, &b); err != nil {
		h.t.Fatal(err)
	}
	return m, b.Bytes()
}

// request is a restore of a backup into a new folder. The test's installations have
// the file itself as the proof of their secret.
func (h *house) request(archive io.Reader) RestoreRequest {
	return RestoreRequest{
		Archive: archive, Database: filepath.Join(h.t.TempDir(), "till.db"), By: "test", Identities: []age.Identity{h.identity},
		ReadSecret: os.ReadFile,
		CheckSecret: func(ctx context.Context, s *store.Store, path string) error {
			secret, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return s.View(ctx, func(tx *store.Tx) error {
				i, err := admin.ReadInstallation(ctx, tx)
				if err == nil && !bytes.Equal(i.SecretCheck, secret) {
					err = errors.New("it is another one")
				}
				return err
			})
		},
	}
}

// untouched checks that a refused restore has left nothing.
func (h *house) untouched(r RestoreRequest) {
	h.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(r.Database))
	if err != nil || len(entries) > 0 {
		h.t.Errorf("the folder holds %v, %v", entries, err)
	}
}

func TestABackupIsPutBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	m, archive := h.save(h.identity.Recipient())
	if bytes.Contains(archive, h.secret[:64]) {
		t.Error("the secret can be read in the archive")
	}
	r := h.request(bytes.NewReader(archive))
	r.Installation = m.Installation
	done, err := Restore(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if done.Marked.LostFrom != m.Taken() || done.Marked.KeysReviewedAt != 0 {
		t.Errorf("marked as %+v, taken at %s", done.Marked, m.TakenAt)
	}
	var names []string
	entries, _ := os.ReadDir(filepath.Dir(r.Database))
	for _, e := range entries {
		names = append(names, e.Name())
		if info, _ := e.Info(); info.Mode() != 0o600 {
			t.Errorf("%s has the mode %s", e.Name(), info.Mode())
		}
	}
	if got := strings.Join(names, " "); got != "till.db till.secret" {
		t.Errorf("the folder holds %s", got)
	}
	if b, err := os.ReadFile(filepath.Join(filepath.Dir(r.Database), secretName)); err != nil || !bytes.Equal(b, h.secret) {
		t.Errorf("the secret is %q, %v", b, err)
	}
	// It is not empty any more.
	r.Archive = bytes.NewReader(archive)
	if _, err := Restore(t.Context(), r); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a second restore: %v", err)
	}
}

// Without a recipient the secret is not in the backup, and has to be brought.
func TestABackupThatIsNotEncrypted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	m, archive := h.save()
	if m.HasSecret() {
		t.Error("the secret is in it")
	}
	r := h.request(bytes.NewReader(archive))
	if _, err := Restore(t.Context(), r); err == nil || !strings.Contains(err.Error(), "--secret-file") {
		t.Errorf("without the secret: %v", err)
	}
	h.untouched(r)
	r.Archive, r.SecretFile = bytes.NewReader(archive), newHouse(t).secretFile()
	if _, err := Restore(t.Context(), r); err == nil || !strings.Contains(err.Error(), "does not belong") {
		t.Errorf("with another's secret: %v", err)
	}
	h.untouched(r)
	r.Archive, r.SecretFile = bytes.NewReader(archive), h.secretFile()
	if _, err := Restore(t.Context(), r); err != nil {
		t.Error(err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	h, other := newHouse(t), newHouse(t)
	_, archive := h.save(h.identity.Recipient())
	for name, c := range map[string]struct {
		change func(r *RestoreRequest)
		want   string
	}{
		"no identity":            {func(r *RestoreRequest) { r.Identities = nil }, "--identity"},
		"a wrong identity":       {func(r *RestoreRequest) { r.Identities = []age.Identity{other.identity} }, "encrypted for others"},
		"another installation":   {func(r *RestoreRequest) { r.Installation = "0123456789ab" }, "another installation"},
		"an empty file":          {func(r *RestoreRequest) { r.Archive = strings.NewReader("") }, "empty"},
		"some other file":        {func(r *RestoreRequest) { r.Archive = strings.NewReader("SQLite format 3\x00 and so on") }, "no backup of Till"},
		"a file with one letter": {func(r *RestoreRequest) { r.Archive = strings.NewReader("x") }, "no backup of Till"},
	} {
		r := h.request(bytes.NewReader(archive))
		c.change(&r)
		if _, err := Restore(t.Context(), r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		h.untouched(r)
	}
	// A database's log that lies in the folder would be replayed into the backup.
	for _, name := range []string{"till.db", "till.db-wal", "till.db-shm", "sandbox.db"} {
		r := h.request(bytes.NewReader(archive))
		path := filepath.Join(filepath.Dir(r.Database), name)
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), r); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("beside %s: %v", name, err)
		}
		if b, err := os.ReadFile(path); string(b) != "mine" {
			t.Errorf("%s is now %q, %v", name, b, err)
		}
	}
	// What an interrupted restore leaves does no harm; another's secret does.
	r := h.request(bytes.NewReader(archive))
	dir := filepath.Dir(r.Database)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, stagingName), 0o700), os.WriteFile(filepath.Join(dir, stagingName, "till.db-wal"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(dir, secretName), other.secret, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), r); err == nil || !strings.Contains(err.Error(), "holds another secret") {
		t.Errorf("beside another's secret: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, secretName), h.secret, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Archive = bytes.NewReader(archive)
	if _, err := Restore(t.Context(), r); err != nil {
		t.Errorf("after an interrupted restore: %v", err)
	}
}

// An archive that is cut off or altered anywhere is refused, and nothing is left.
func TestADamagedBackupIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, recipients := range map[string][]age.Recipient{"encrypted": {h.identity.Recipient()}, "plain": nil} {
		_, archive := h.save(recipients...)
		try := func(what string, b []byte) {
			t.Helper()
			r := h.request(bytes.NewReader(b))
			r.SecretFile = h.secretFile()
			_, err := Restore(t.Context(), r)
			if err == nil || !errors.Is(err, errDamaged) && !strings.Contains(err.Error(), "for others") { // an altered header may look like another's
				t.Errorf("%s: %s: %v", name, what, err)
			}
			h.untouched(r)
		}
		for range 12 {
			try("cut off", archive[:mathrand.IntN(len(archive))])
		}
		r := h.request(bytes.NewReader(archive[:len(archive)*3/4]))
		r.SecretFile = h.secretFile()
		if _, err := Restore(t.Context(), r); err == nil || !strings.Contains(err.Error(), "it is cut off before its end") {
			t.Errorf("%s: an archive without its end: %v", name, err)
		}
		try("without its last byte", archive[:len(archive)-1])
		try("with more behind it", append(bytes.Clone(archive), make([]byte, 64<<10)...))
		for range 12 {
			b := bytes.Clone(archive)
			// The name, time and system in gzip's header mean nothing.
			at := 10 + mathrand.IntN(len(b)-10)
			b[at] ^= 1 << mathrand.IntN(8)
			if name == "plain" && bytes.Equal(inflate(b), inflate(archive)) {
				continue // a bit that fills up a byte
			}
			try("altered", b)
		}
	}
}

// inflate returns what is compressed, as far as it can be read.
func inflate(b []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	out, err := io.ReadAll(z)
	if err != nil {
		return nil
	}
	return out
}

func TestABackupThatStopsIsNotKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	src := &Source{Store: h.s, Program: "test"}
	m, err := src.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	src.Progress = func(n, all int64) {
		if n == all/2 {
			cancel()
		}
	}
	place := folder(t.TempDir())
	_, err = place.Put(ctx, NameOf(m, false).String(), func(w io.Writer) error { return src.Write(ctx, m, w) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	if entries, _ := os.ReadDir(string(place)); len(entries) > 0 {
		t.Errorf("the place holds %v", entries)
	}
}

func TestAFolderKeepsWholeFilesOnly(t *testing.T) {
	t.Parallel()
	ctx, place := t.Context(), folder(filepath.Join(t.TempDir(), "new"))
	name := "till-0123456789ab-20261117T133001.000Z.tar.gz"
	write := func(w io.Writer) error { _, err := io.WriteString(w, "all of it"); return err }
	// A killed backup has left a part. Another one is still being written.
	if err := os.Mkdir(string(place), 0o700); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(string(place), "till-0123456789ab-20261117T120000.000Z.tar.gz.123"+partialSuffix)
	if err := os.WriteFile(left, []byte("a part"), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := place.Put(ctx, name, func(w io.Writer) error {
		if _, err := place.Put(ctx, "till-0123456789ab-20261117T133002.000Z.tar.gz", write); err != nil {
			t.Error(err)
		}
		return write(w)
	})
	if err != nil || n != 9 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if _, err := place.Put(ctx, name, write); err == nil {
		t.Error("a backup of the same name was replaced")
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("a killed backup's part is still there")
	}
	newest, err := Newest(ctx, place, "")
	if names, _ := place.List(ctx); err != nil || len(names) != 2 || newest.Taken.Std().Second() != 2 {
		t.Errorf("%v, newest %s, %v", names, newest, err)
	}
	if _, err := place.Put(ctx, "till-aaaaaaaaaaaa-20261117T133002.000Z.tar.gz", write); err != nil {
		t.Fatal(err)
	}
	if _, err := Newest(ctx, place, ""); err == nil || !strings.Contains(err.Error(), "--installation") {
		t.Errorf("of two installations: %v", err)
	}
	good, _ := ParseName("till-0123456789ab-20261117T133002.000Z.tar.gz")
	if err := SetMark(ctx, place, good, Drilled, "good"); err != nil {
		t.Fatal(err)
	}
	got, err := (Keep{Days: 1}).Prune(ctx, place, "0123456789ab", Guard{Now: good.Taken.Add(minAge)})
	if err != nil || len(got.Removed) != 1 || got.Removed[0].String() != name {
		t.Errorf("pruned %v, %v", got, err)
	}
}
