package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till"
	"till/backup"
	"till/bench/seed"
	"till/cmd/till/internal/cli"
	"till/server"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// saved is an installation with some payments, a place for its backups and an
// identity that opens them.
type saved struct {
	t                                      *testing.T
	dir, database, place, identity, public string
}

// newSaved makes an installation with so many payments.
func newSaved(t *testing.T, rows int64) *saved {
	t.Helper()
	dir := t.TempDir()
	b := &saved{t: t, dir: dir, database: filepath.Join(dir, "data", "till.db"), place: filepath.Join(dir, "backups"), identity: filepath.Join(dir, "key.txt")}
	b.public = newIdentity(t, b.identity)
	srv, err := server.New(t.Context(), server.Config{Database: b.database, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), store.Config{Path: b.database})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client := storetest.NewClient(t, s, till.Test)
	now := till.TimeOf(time.Now())
	if err := seed.Payments(t.Context(), s, seed.Config{Client: client.ID, Rows: rows, From: now.Add(-90 * 24 * time.Hour), To: now, Books: true}); err != nil {
		t.Fatal(err)
	}
	return b
}

// till runs a command in this process and returns its exit code and what it said.
func (b *saved) till(args ...string) (int, string) {
	var out bytes.Buffer
	code := run(b.t.Context(), args, &out, &out)
	return code, out.String()
}

// verifyHere runs 'till verify' in this process; the books must be right.
func verifyHere(t *testing.T, database string) {
	t.Helper()
	var out bytes.Buffer
	if code := run(t.Context(), []string{"verify", "--database", database}, &out, &out); code != 0 {
		t.Errorf("till verify ends with %d: %s", code, &out)
	}
}

func (b *saved) must(want int, args ...string) string {
	b.t.Helper()
	code, out := b.till(args...)
	if code != want {
		b.t.Fatalf("till %s ends with %d: %s", strings.Join(args, " "), code, out)
	}
	return out
}

func (b *saved) backup() []string {
	return []string{"backup", "--database", b.database, "--to", b.place, "--recipient", b.public}
}

func (b *saved) restore(folder string) []string {
	return []string{"restore", b.place, "--identity", b.identity, "--database", filepath.Join(folder, "till.db")}
}

// files returns the names of all files below a folder.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return names
}

// killed runs a command and ends it without a word after a part of the time that it
// takes. It reports whether the command was faster.
func (b *saved) killed(takes time.Duration, args []string) (ended bool) {
	b.t.Helper()
	return killTill(b.t, takes, args...)
}

// killTill runs a command and ends it without a word, within a time. It reports whether the
// command was faster.
func killTill(t *testing.T, within time.Duration, args ...string) (ended bool) {
	t.Helper()
	cmd := exec.Command("till", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(rand.N(within), func() { cmd.Process.Kill() })
	defer late.Stop()
	cmd.Wait()
	return cmd.ProcessState.Exited()
}

// took runs a command of the program to its end and returns how long it takes.
func (b *saved) took(want int, args []string) time.Duration {
	b.t.Helper()
	path, err := exec.LookPath("till")
	if err != nil {
		b.t.Fatal(err)
	}
	begun := time.Now()
	out, err := exec.Command(path, args...).CombinedOutput()
	if code := exitOf(err); code != want {
		b.t.Fatalf("till %s ends with %d: %s", args[0], code, out)
	}
	return time.Since(begun)
}

func exitOf(err error) int {
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return 0
}

// A backup, a restore and a drill are killed at any moment. What is in the place is
// always whole; a folder holds a database that is marked as restored, or none; the
// next run cleans up and goes well. TILL_KILLS says how many times each.
func TestKilledBackups(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it starts and kills programs")
	}
	t.Parallel()
	b := newSaved(t, 3000)
	kills := asked("TILL_KILLS", 3)
	takes := b.took(0, b.backup())
	cut := 0
	for range kills {
		if !b.killed(takes, b.backup()) {
			cut++
		}
	}
	for _, name := range files(t, b.place) {
		if strings.HasSuffix(name, ".age") {
			b.must(0, "drill", filepath.Join(b.place, name), "--identity", b.identity)
		}
	}
	b.must(0, b.backup()...)
	for _, name := range files(t, b.place) {
		archive := strings.TrimSuffix(name, string(backup.Drilled))
		if !strings.HasSuffix(archive, ".tar.gz.age") || !cli.Exists(filepath.Join(b.place, archive)) {
			t.Errorf("a killed backup has left %s", name)
		}
	}

	folder := filepath.Join(b.dir, "new")
	takes = b.took(cli.ExitRefused, b.restore(folder))
	for range kills {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		if !b.killed(takes, b.restore(folder)) {
			cut++
		}
		database := filepath.Join(folder, "till.db")
		if !cli.Exists(database) {
			b.must(cli.ExitRefused, b.restore(folder)...)
		}
		if got := strings.Join(files(t, folder), " "); got != "till.db till.db.lock till.secret" {
			t.Errorf("after a restore there are %s", got)
		}
		err := cli.WithDatabase(t.Context(), database, func(s *store.Store) error {
			return s.View(t.Context(), func(tx *store.Tx) error {
				if marked, err := admin.Restoring(t.Context(), tx); err != nil || !marked {
					t.Errorf("the database is there and is not marked as restored (%v)", err)
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
	}
	verifyHere(t, filepath.Join(folder, "till.db"))

	work := filepath.Join(b.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	drill := []string{"drill", b.place, "--identity", b.identity, "--work", work, "--database", b.database}
	takes = b.took(0, drill)
	for range kills {
		if !b.killed(takes, drill) {
			cut++
		}
	}
	b.must(0, drill...)
	if left := files(t, work); len(left) > 0 {
		t.Errorf("drills have left %v", left)
	}
	if cut < kills {
		t.Errorf("only %d of %d runs were cut short: the test hits nothing", cut, 3*kills)
	}
	out := b.must(0, "doctor", "--database", b.database)
	for _, want := range []string{"backup ", "drill "} {
		if !strings.Contains(out, want) {
			t.Errorf("till doctor does not say %q:\n%s", want, out)
		}
	}
	verifyHere(t, b.database)
}

// The place, or the new folder, is full: nothing is left of the attempt, what was
// there before stays, and the command says what is wrong.
func backupOnAFullDisk(t *testing.T) {
	b := newSaved(t, 3000)
	if err := os.Mkdir(b.place, 0o700); err != nil {
		t.Fatal(err)
	}
	fill, free := mount(t, b.place, 2<<20)
	b.must(0, b.backup()...)
	before := files(t, b.place)
	fill()
	if code, out := b.till(b.backup()...); code != cli.ExitUnable || !strings.Contains(out, "no space left on device") || !strings.Contains(out, "earlier ones are as they were") {
		t.Errorf("on a full disk it ends with %d: %s", code, out)
	}
	if out := b.must(0, "doctor", "--database", b.database); !strings.Contains(out, "the last one failed") {
		t.Errorf("till doctor does not know of it:\n%s", out)
	}
	free()
	if got := files(t, b.place); strings.Join(got, " ") != strings.Join(before, " ") {
		t.Errorf("the place holds %v, and held %v", got, before)
	}
	small := filepath.Join(b.dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	mount(t, small, 1<<20)
	folder := filepath.Join(small, "data")
	for _, args := range [][]string{b.restore(folder), {"drill", b.place, "--identity", b.identity, "--work", small}} {
		if code, out := b.till(args...); code != cli.ExitUnable || !strings.Contains(out, "no space left on device") || strings.Contains(out, "damaged") {
			t.Errorf("%s on a full disk ends with %d: %s", args[0], code, out)
		}
	}
	if got := strings.Join(files(t, small), " "); got != "data/till.db.lock" {
		t.Errorf("a restore without space has left %s", got)
	}
}

// A backup is of one moment: beside a server that takes payments, its books are
// right, and it has every payment that was answered before it began.
func TestABackupBesideAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := &killing{t: t, dir: filepath.Join(dir, "data"), database: filepath.Join(dir, "data", "till.db"), book: filepath.Join(dir, "sandbox.db"), answered: map[string]string{}}
	b := &saved{t: t, dir: dir, database: k.database, place: filepath.Join(dir, "backups"), identity: filepath.Join(dir, "key.txt")}
	b.public = newIdentity(t, b.identity)
	k.start()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); k.load(ctx, 3, loadPause) }()
	var answered map[string]string
	for n := 0; n < 20; time.Sleep(10 * time.Millisecond) {
		k.mu.Lock()
		if n = len(k.answered); n >= 20 {
			answered = map[string]string{}
			for key, id := range k.answered {
				answered[key] = id
			}
		}
		k.mu.Unlock()
	}
	b.must(0, b.backup()...)
	// A restore in the place of the running server is refused.
	code, out := b.till("restore", b.place, "--identity", b.identity, "--database", b.database)
	if code != cli.ExitUnable || !strings.Contains(out, "another till server is using") {
		t.Errorf("a restore into the running server's folder ends with %d: %s", code, out)
	}
	stop()
	<-done
	folder := filepath.Join(dir, "new")
	b.must(cli.ExitRefused, b.restore(folder)...)
	verifyHere(t, filepath.Join(folder, "till.db"))
	for _, id := range answered {
		b.must(0, "payment", "show", id, "--database", filepath.Join(folder, "till.db"))
	}
	other := newSaved(t, 10)
	if code, out := other.till("drill", b.place, "--identity", b.identity, "--database", other.database); code != cli.ExitUnable || !strings.Contains(out, "no backup of the installation") {
		t.Errorf("a drill of another's backups ends with %d: %s", code, out)
	}
}

func TestABackupToStandardOutput(t *testing.T) {
	t.Parallel()
	b := newSaved(t, 10)
	file := filepath.Join(b.dir, "backup")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), []string{"backup", "--database", b.database, "--to", "-", "--recipient", b.public}, f, io.Discard); code != 0 {
		t.Errorf("it ends with %d", code)
	}
	f.Close()
	b.must(0, "drill", file, "--identity", b.identity)
}
