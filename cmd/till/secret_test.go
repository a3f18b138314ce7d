package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"till/cmd/till/internal/cli"
)

// A backup brings the generations of its time, one that is not encrypted needs them, and the
// newest file fits every backup.
func TestBackupsOfSeveralGenerations(t *testing.T) {
	t.Parallel()
	b := newSaved(t, 3)
	secret := filepath.Join(filepath.Dir(b.database), "till.secret")
	on := func(args ...string) []string { return append(args, "--database", b.database) }
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	root := read(secret)
	b.must(0, on("level", "raise", "--by", "Anne")...)
	b.must(0, on("secret", "add", "--by", "Anne")...)
	b.must(0, on("secret", "use", "2", "--by", "Anne")...)
	b.must(0, on("secret", "retire", "1", "--by", "Anne")...)
	second := read(secret)
	b.must(0, b.backup()...)
	plain := filepath.Join(b.dir, "plain")
	b.must(0, on("backup", "--to", plain)...)
	b.must(0, on("secret", "add", "--by", "Anne")...)
	both := read(secret)
	b.must(0, on("secret", "use", "3", "--by", "Anne")...)
	b.must(0, on("secret", "retire", "2", "--by", "Anne")...)
	if third := read(secret); strings.Contains(third, "\n2 ") || !strings.Contains(third, "\n3 ") || !strings.HasPrefix(third, root) {
		t.Error("the file does not have the root and the third generation alone")
	}

	folder := filepath.Join(b.dir, "restored")
	b.must(cli.ExitRefused, b.restore(folder)...) // the keys are to be reviewed
	if read(filepath.Join(folder, "till.secret")) != second {
		t.Error("the backup brought another file")
	}
	if out := b.must(0, "secret", "list", "--database", filepath.Join(folder, "till.db"), "--json"); !strings.Contains(out, `"used":2`) {
		t.Errorf("after the restore: %s", out)
	}
	b.must(0, "secret", "reseal", "--database", filepath.Join(folder, "till.db"))

	named := func(name, text string) string {
		t.Helper()
		path := filepath.Join(b.dir, name+".secret")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	from := func(place, name, file string) []string {
		return []string{"restore", place, "--identity", b.identity, "--database", filepath.Join(b.dir, name, "till.db"), "--secret-file", file}
	}
	if out := b.must(cli.ExitUnable, from(plain, "lacking", named("root", root))...); !strings.Contains(out, "generation 2 is missing") {
		t.Errorf("without its generation: %s", out)
	}
	if entries := files(t, filepath.Join(b.dir, "lacking")); len(entries) > 1 { // the lock
		t.Errorf("a refused restore left %v", entries)
	}
	newest := named("both", both)
	for name, place := range map[string]string{"plain-newest": plain, "sealed-newest": b.place} {
		b.must(cli.ExitRefused, from(place, name, newest)...)
		if read(filepath.Join(b.dir, name, "till.secret")) != both {
			t.Errorf("%s: the named file is not there", name)
		}
	}
}
