package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"till"
	"till/doctor"
	"till/internal/logs"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// readBundle returns the files of a bundle.
func readBundle(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(b)
	}
}

// F61: nothing in a bundle is a key, a secret, a phone number, a name or a client's URL.
func TestABundleTellsNothingOfClients(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHostile(t) // a database with texts of strangers everywhere
	const (
		phone  = "242061234567"
		secret = "canary-secret-5f2a"
		name   = "Canary Ndala"
		client = "https://canary.example/hook?token=canary"
	)
	s, err := store.Open(t.Context(), store.Config{Path: h.database})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		err := admin.SaveBackupProblem(t.Context(), tx, admin.KindBackup, "place s3://"+secret+" refused "+phone)
		return errors.Join(err, admin.SaveStatement(t.Context(), tx, "mtn", 1, 2, []admin.StatementSum{{Class: admin.StatementLines, Count: 1}}))
	})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "till.toml")
	text := fmt.Sprintf("[[connection]]\nname = \"mtn\"\ncontact = %q\noperator = \"mtnmomo\"\napi_key = %q\ncallback_host = %q\n", name, secret, client)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bundle{path: filepath.Join(dir, "b.tar.gz"), database: h.database, config: config, verify: true, salt: []byte("salt")}
	b.plan(&doctor.Findings{All: []doctor.Finding{{Name: "secret", Verdict: doctor.Wrong, Detail: "the key till_live_canary0123456789 of " + phone}}})
	b.files = append(b.files, bundleFile{name: "log.txt", read: func(context.Context) ([]byte, error) {
		var w bytes.Buffer
		log := logs.New(logs.NewRing(&w), true, slog.LevelInfo)
		log.Warn("line", "phone", phone, "key", "till_test_canary0123456789", "secret", "whsec_canarycanarycanary")
		return w.Bytes(), nil
	}})
	if err := b.writeFile(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := readBundle(t, b.path)
	for _, want := range []string{"version.json", "findings.json", "config.json", "tables.json", "plans.json", "state.json", "verify.json", "log.txt"} {
		if files[want] == "" || strings.HasPrefix(files[want], "not read") {
			t.Errorf("%s is %q", want, files[want])
		}
	}
	if !strings.Contains(files["config.json"], `"operator": "mtnmomo"`) || !strings.Contains(files["config.json"], fmt.Sprintf("%d bytes, ", len(secret))) {
		t.Errorf("the configuration is %s", files["config.json"])
	}
	if state := files["state.json"]; !regexp.MustCompile(`"FailedAt": "20\d\d-`).MatchString(state) || regexp.MustCompile(`\[\s+\d+,\s+\d+,|: \d{15}`).MatchString(state) {
		t.Errorf("times or ids are not text: %s", state)
	}
	for file, text := range files {
		for _, canary := range []string{"canary", phone, name, "FORGED", h.open.String()} {
			if strings.Contains(strings.ToLower(text), strings.ToLower(canary)) {
				t.Errorf("%s holds %q:\n%.2000s", file, canary, text)
			}
		}
	}
}

// The list is printed first; a server that is not there costs its own parts only; a file
// that is there is never overwritten.
func TestABundleOfADoctor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	database, path := filepath.Join(dir, "till.db"), filepath.Join(dir, "b.tar.gz")
	storetest.Open(t, store.Config{Path: database, Now: func() till.Time { return 1 }})
	var out, errs bytes.Buffer
	args := []string{"doctor", "--database", database, "--bundle", path, "--admin-listen", "127.0.0.1:1", "--profiles"}
	if code := run(t.Context(), args, &out, &errs); code != 0 {
		t.Fatalf("%d %s %s", code, out.String(), errs.String())
	}
	files := readBundle(t, path)
	if len(files) != 9 || !strings.HasPrefix(files["metrics.txt"], "not read: the server does not answer") || !strings.Contains(files["findings.json"], `"schema"`) {
		t.Errorf("%d files: %v", len(files), files)
	}
	for name := range files {
		if !strings.Contains(errs.String(), name) {
			t.Errorf("%s was not announced: %s", name, errs.String())
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), args, &out, &errs); code != 2 {
		t.Errorf("the second time it ends with %d", code)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("it was overwritten: %v", err)
	}
}
