package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"filippo.io/age"
)

// TestAStrangersArchiveIsNotPutBack: an archive that somebody made with the public recipient
// is refused if it is called like one of ours, or says in its manifest that it is ours.
func TestAStrangersArchiveIsNotPutBack(t *testing.T) {
	t.Parallel()
	ours, theirs := newHouse(t), newHouse(t)
	mine, _ := ours.save(ours.identity.Recipient())
	m, archive := theirs.save(ours.identity.Recipient())
	name := NameOf(mine, true)

	r := ours.request(bytes.NewReader(archive))
	r.Name = &name
	if _, err := Restore(t.Context(), r); err == nil || !strings.Contains(err.Error(), "renamed") {
		t.Errorf("a renamed archive: %v", err)
	}
	ours.untouched(r)

	m.Installation, m.TakenAt = mine.Installation, mine.TakenAt // as if it were ours
	r = ours.request(bytes.NewReader(withManifest(t, archive, ours.identity, m)))
	r.Name, r.Installation = &name, mine.Installation
	if _, err := Restore(t.Context(), r); err == nil || !strings.Contains(err.Error(), "another installation's") {
		t.Errorf("an archive that says it is ours: %v", err)
	}
	ours.untouched(r)
}

// withManifest returns an archive with another manifest.
func withManifest(t *testing.T, archive []byte, identity *age.X25519Identity, m *Manifest) []byte {
	t.Helper()
	var out bytes.Buffer
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	plain, err := age.Decrypt(bytes.NewReader(archive), identity)
	must(err)
	unzipped, err := gzip.NewReader(plain)
	must(err)
	sealed, err := age.Encrypt(&out, identity.Recipient())
	must(err)
	zipped := gzip.NewWriter(sealed)
	from, to := tar.NewReader(unzipped), tar.NewWriter(zipped)
	for {
		h, err := from.Next()
		if err == io.EOF {
			break
		}
		must(err)
		text, err := io.ReadAll(from)
		must(err)
		if h.Name == manifestName {
			text, err = json.Marshal(m)
			must(err)
			h.Size = int64(len(text))
		}
		must(to.WriteHeader(h))
		_, err = to.Write(text)
		must(err)
	}
	must(to.Close())
	must(zipped.Close())
	must(sealed.Close())
	return out.Bytes()
}
