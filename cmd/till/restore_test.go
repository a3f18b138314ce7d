package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/jackc/pgx/v5"

	"till"
	"till/cmd/till/internal/cli"
	"till/provider/sandbox"
	"till/store"
	"till/store/admin"
)

// F36: the database of some time ago is put back, and the operator remembers
// what came after. Whatever is sent again is sent under the same reference, so
// nobody is charged twice; what the operator holds is credited in the end;
// and the event logs say that they are not the ones they were.
func TestRestoreOfAnOldBackup(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs servers")
	}
	engines := backups()
	engines["sqlite by till backup"] = newArchive
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, dir := engine(t), t.TempDir()
			f := &failover{bodies: map[string]string{}}
			f.killing = &killing{t: t, dir: dir, book: filepath.Join(dir, "operator.db"), database: b.database, answered: map[string]string{}, window: 5 * time.Second}

			// In the backup: payments that have ended, and some that were not
			// sent yet, which is for long no longer true when it is put back.
			s := f.start()
			f.createMany(20)
			f.settle()
			f.end(s, syscall.SIGTERM)
			s = f.start("--role", "api")
			f.createMany(20)
			over := time.After(f.window)
			f.end(s, syscall.SIGTERM)
			b.take()
			lostFrom := till.TimeOf(time.Now())
			s = f.start()
			f.createMany(40) // these will be lost
			f.settle()
			f.end(s, syscall.SIGTERM)
			f.awaitCredits() // of late money too: the operator has nothing more to report

			b.putBack()
			before := f.logID()
			if told := f.restored(lostFrom); told == before || f.logID() != told {
				t.Errorf("the log was %s and is %s; 'till restored' said %s", before, f.logID(), told)
			}
			<-over // nothing of the backup may be sent any more
			f.server = f.start()
			f.createLostAgain()
			f.settle()
			f.awaitCredits()
			f.end(f.server, syscall.SIGTERM)
			f.verify()
			f.compareByReference()
		})
	}
}

// backups are the engines that a test can have a database put back on.
func backups() map[string]func(*testing.T) oldState {
	engines := map[string]func(*testing.T) oldState{"sqlite": newFileBackup}
	if os.Getenv("TILL_TEST_POSTGRES_URL") != "" {
		engines["postgres"] = newPostgresBackup
	}
	return engines
}

// oldState is a way to put an old state of a database back.
type oldState struct {
	database      string
	take, putBack func()
}

func newFileBackup(t *testing.T) oldState {
	dir := t.TempDir()
	database, old := filepath.Join(dir, "till.db"), filepath.Join(dir, "old.db")
	copyFile := func(from, to string) {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return oldState{
		database: database,
		take:     func() { copyFile(database, old) }, // nobody has it open, so the file is all of it
		putBack: func() {
			os.Remove(database + "-wal")
			os.Remove(database + "-shm")
			copyFile(old, database)
		},
	}
}

// newArchive saves and puts back by 'till backup' and 'till restore', encrypted.
func newArchive(t *testing.T) oldState {
	dir := t.TempDir()
	database, place, identity := filepath.Join(dir, "data", "till.db"), filepath.Join(dir, "backups"), filepath.Join(dir, "key.txt")
	recipient := newIdentity(t, identity)
	must := func(want int, args ...string) {
		t.Helper()
		var errs bytes.Buffer
		if code := run(t.Context(), args, io.Discard, &errs); code != want {
			t.Fatalf("till %s ends with %d: %s", args[0], code, &errs)
		}
	}
	if err := os.Mkdir(filepath.Dir(database), 0o700); err != nil {
		t.Fatal(err)
	}
	return oldState{
		database: database,
		take:     func() { must(0, "backup", "--database", database, "--to", place, "--recipient", recipient) },
		putBack: func() {
			if err := os.Rename(filepath.Dir(database), filepath.Join(dir, "before")); err != nil {
				t.Fatal(err)
			}
			must(cli.ExitRefused, "restore", place, "--identity", identity, "--database", database) // the keys are not reviewed
			must(0, "drill", place, "--identity", identity, "--database", database)
		},
	}
}

// newIdentity writes a new identity of age into a file and returns its public key.
func newIdentity(t *testing.T, path string) string {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err == nil {
		err = os.WriteFile(path, []byte(id.String()+"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id.Recipient().String()
}

func newPostgresBackup(t *testing.T) oldState {
	server := os.Getenv("TILL_TEST_POSTGRES_URL")
	name := "t_" + strings.ReplaceAll(newUUID().String(), "-", "")
	exec := func(query string) { t.Helper(); execute(t, server, query) }
	exec("CREATE DATABASE " + name)
	t.Cleanup(func() { exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)") })
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return oldState{
		database: u.String(),
		take:     func() { exec("CREATE DATABASE " + name + "_old TEMPLATE " + name) },
		putBack: func() {
			exec("DROP DATABASE " + name + " WITH (FORCE)")
			exec("ALTER DATABASE " + name + "_old RENAME TO " + name)
		},
	}
}

func execute(t *testing.T, database, query string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func (f *failover) createMany(n int) {
	for range n {
		f.create(context.Background())
	}
}

// logID returns the identity of the event logs.
func (f *failover) logID() (id till.ID) {
	f.t.Helper()
	f.view(func(tx *store.Tx, _ till.ID) error {
		i, err := admin.ReadInstallation(context.Background(), tx)
		if err == nil {
			id = i.LogID
		}
		return err
	})
	return id
}

// restored runs 'till restored' and returns the identity that it prints.
func (f *failover) restored(lostFrom till.Time) till.ID {
	f.t.Helper()
	var out, errs bytes.Buffer
	if code := run(f.t.Context(), []string{"restored", "--database", f.database, "--json"}, io.Discard, &errs); code == 0 || !strings.Contains(errs.String(), "--lost-from") {
		f.t.Errorf("without --lost-from it ends with %d: %s", code, &errs)
	}
	args := []string{"restored", "--database", f.database, "--lost-from", lostFrom.String(), "--keys-reviewed", "--json"}
	if store.IsPostgres(f.database) { // on a file it is beside it
		args = append(args, "--secret-file", filepath.Join(f.dir, "till.secret"))
	}
	if code := run(f.t.Context(), args, &out, &errs); code != 0 {
		f.t.Fatalf("till restored ends with %d: %s", code, &errs)
	}
	var told struct {
		LogID string `json:"log_id"`
	}
	if err := json.Unmarshal(out.Bytes(), &told); err != nil {
		f.t.Fatal(err)
	}
	id, err := till.ParseID(told.LogID)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// awaitCredits waits until there are as many credits here as debits at the
// operator: late money is found by a later read.
func (f *failover) awaitCredits() {
	f.t.Helper()
	ctx := context.Background()
	o, err := sandbox.Open(ctx, sandbox.Config{Path: f.book})
	if err != nil {
		f.t.Fatal(err)
	}
	defer o.Close()
	f.await("as many credits here as debits at the operator", func() bool {
		debits, err := o.Debits(ctx)
		if err != nil {
			f.t.Fatal(err)
		}
		var credits int64
		f.view(func(tx *store.Tx, client till.ID) (err error) {
			_, credits, err = tx.ListTransactions(ctx, client, store.TransactionFilter{}, store.Page{Limit: 1})
			return err
		})
		return credits == int64(len(debits))
	})
}

// A release of a restore asks while nobody has decided something, and says how much it is;
// who does not answer has released nothing.
func TestAReleaseAsksWhileMoneyIsUndecided(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newBooksOf(t, "awa", dir, filepath.Join(dir, "till.db"))
	b := &saved{t: t, database: h.database}
	lost := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	b.till("restored", "--database", b.database, "--lost-from", lost, "--keys-reviewed", "--secret-file", filepath.Join(dir, "till.secret"))
	release := []string{"restored", "--database", b.database, "--release", "--by", "Awa"}
	asks := b.must(cli.ExitRefused, release...)
	for _, want := range []string{"1 payment", "that nobody has decided? [y/N]", "700 XAF", "nothing was done"} {
		if !strings.Contains(asks, want) {
			t.Errorf("it asks without %q: %s", want, asks)
		}
	}
	if held := b.must(0, "payouts", "held", "--database", b.database); !strings.Contains(held, "restore") {
		t.Errorf("after no answer the payouts are held by: %s", held)
	}
	b.must(0, append(release, "--yes")...)
	if held := b.must(0, "payouts", "held", "--database", b.database); strings.Contains(held, "restore") {
		t.Errorf("after the release the payouts are held by: %s", held)
	}
}
