package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till"
	"till/backup"
	"till/cmd/till/internal/cli"
	"till/store/storetest"
)

// older puts a copy of a backup into the place, as one of a minute of an hour ninety days ago.
func (b *saved) older(name string, minute int) string {
	b.t.Helper()
	n, ok := backup.ParseName(name)
	text, err := os.ReadFile(filepath.Join(b.place, name))
	if err != nil || !ok {
		b.t.Fatalf("%s: %v", name, err)
	}
	n.Taken = till.TimeOf(n.Taken.Std().Truncate(time.Hour).Add(-90*24*time.Hour + time.Duration(minute)*time.Minute))
	if err := os.WriteFile(filepath.Join(b.place, n.String()), text, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return n.String()
}

// TestKeepDeletesNoGoodBackup plays the days on which a backup is needed: the books are
// found broken, or an older backup was put back. The next backup, with the guide's own
// line of what to keep, must delete none.
func TestKeepDeletesNoGoodBackup(t *testing.T) {
	t.Parallel()
	b := newSaved(t, 20)
	keep := append(b.backup(), "--keep", "24h,7d,5w,12m")
	b.must(0, keep...)
	first := files(t, b.place)[0]
	there := func(why string, names ...string) {
		t.Helper()
		for _, n := range names {
			if !cli.Exists(filepath.Join(b.place, n)) {
				t.Fatalf("%s: %s was deleted", why, n)
			}
		}
	}
	// The books are broken, and the runbook says: keep a backup as it is.
	storetest.Raw(t, b.database, `UPDATE wallets SET balance = balance + 1 WHERE last_sequence > 0`)
	b.must(0, keep...)
	there("the newer one has the damage, and nobody knows it yet", first)
	b.must(cli.ExitRefused, "verify", "--database", b.database)
	old := []string{b.older(first, 30), b.older(first, 10)}
	b.must(0, "drill", filepath.Join(b.place, first), "--identity", b.identity)
	out := b.must(0, keep...)
	there("the books are broken", append(old, first)...)
	if !strings.Contains(out, "No backup was deleted: the last 'till verify' found problems") {
		t.Errorf("it says %s", out)
	}
	storetest.Raw(t, b.database, `UPDATE wallets SET balance = balance - 1 WHERE last_sequence > 0`)
	b.must(0, "verify", "--database", b.database)
	out = b.must(0, append(keep, "--hold")...)
	there("one is held", append(old, first)...)
	if held := b.must(0, append(keep, "--json")...); !strings.Contains(out, ".held") || !strings.Contains(held, old[1]) || cli.Exists(filepath.Join(b.place, old[1])) {
		t.Errorf("a drilled backup is newer than %s, and it is not deleted: %s%s", old[1], out, held)
	}
	there("the newest of its hour", old[0], first)

	// An older backup is put back: those that are newer have what was lost.
	newer := files(t, b.place)
	folder := filepath.Join(b.dir, "new")
	out = b.must(cli.ExitRefused, "restore", filepath.Join(b.place, first), "--identity", b.identity, "--database", filepath.Join(folder, "till.db"))
	if name, _ := backup.ParseName(first); !strings.Contains(out, "The installation is "+name.Installation+":") {
		t.Errorf("the restore does not say whose backup it is: %s", out)
	}
	again := []string{"backup", "--database", filepath.Join(folder, "till.db"), "--to", b.place, "--recipient", b.public, "--keep", "1h"}
	if out := b.must(0, again...); !strings.Contains(out, "a restore is not released yet") {
		t.Errorf("after a restore it says %s", out)
	}
	there("an older one was put back", newer...)
}

// TestNoBackupGoesBesideTheDatabase: what destroys the database's folder destroys all in it.
func TestNoBackupGoesBesideTheDatabase(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	for folder, want := range map[string]bool{
		here: true, filepath.Join(here, "backups"): true, here + "/a/../b": true, here + "2": false, filepath.Dir(here): false, "s3://bucket/x": false, here + "/..backups": true,
	} {
		if got := within(folder, here); got != want {
			t.Errorf("%s is within %s: %t", folder, here, got)
		}
	}
}

// A backup beside the database, or below it, is refused, and nothing is written there.
func TestNoBackupIsMadeWhereTheDatabaseIs(t *testing.T) {
	t.Parallel()
	b := newSaved(t, 1)
	for _, place := range []string{filepath.Dir(b.database), filepath.Join(filepath.Dir(b.database), "backups")} {
		out := b.must(cli.ExitUnable, "backup", "--database", b.database, "--to", place, "--recipient", b.public)
		if found, err := filepath.Glob(filepath.Join(place, "*.age")); err != nil || len(found) > 0 || !strings.Contains(out, "in the folder of the database") {
			t.Errorf("to %s: it makes %v and says %s", place, found, out)
		}
	}
}
