package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"till/internal/db/pgtest"
	"till/provider/sandbox"
	"till/store"
)

// F33: the disk of the database is full. Writes are refused, with the word to
// try again; reads and health are answered; no operator hears of a payment
// that is not written down; and when there is space again, all goes on.
//
// A small file system is filled where one may be mounted: there this test runs
// a second time, in a mount namespace of its own, which leaves nothing behind.
// Where none may, a server is made to say what it says on a full disk.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs servers")
	}
	stories := map[string]func(*testing.T){"files that may not grow": sqliteInFilesThatMayNotGrow, "again with mounts": againWithMounts}
	if os.Getenv(mayMount) != "" {
		stories = map[string]func(*testing.T){"sqlite on a full disk": sqliteOnAFullDisk, "backup on a full disk": backupOnAFullDisk, "journal on a full disk": journalOnAFullDisk}
		if os.Getenv("TILL_TEST_POSTGRES_URL") != "" {
			stories["postgres on a full disk"] = postgresOnAFullDisk
		}
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { t.Parallel(); story(t) })
	}
}

// mayMount is set for the run that may mount file systems, and noMount is what
// it says if it may not after all.
const (
	mayMount = "TILL_TEST_MOUNTS"
	noMount  = "no file system can be mounted"
)

func againWithMounts(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), mayMount+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM), bytes.Contains(out, []byte(noMount)):
		t.Log(noMount)
		postgresThatSaysItsDiskIsFull(t)
	case err != nil:
		t.Errorf("%v\n%s", err, out)
	default:
		t.Logf("\n%s", out)
	}
}

// mount puts a small file system on a folder and returns how to fill and to
// free it.
func mount(t *testing.T, dir string, size int) (fill, free func()) {
	t.Helper()
	var owner syscall.Stat_t
	if err := syscall.Stat(dir, &owner); err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("size=%d,mode=0700,uid=%d,gid=%d", size, owner.Uid, owner.Gid)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatalf("%s: %v", noMount, err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	fill = func() {
		err := os.WriteFile(ballast, make([]byte, size), 0o600)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("filling the disk: %v", err)
		}
	}
	return fill, func() { os.Remove(ballast) }
}

func sqliteOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	fill, free := mount(t, dir, 8<<20)
	d := newFullDisk(t, filepath.Join(dir, "till.db"))
	d.run(fill, free)
}

func sqliteInFilesThatMayNotGrow(t *testing.T) {
	d := newFullDisk(t, filepath.Join(t.TempDir(), "till.db"))
	limit := func(size string) {
		t.Helper()
		pid := strconv.Itoa(d.server.cmd.Process.Pid)
		if out, err := exec.Command("prlimit", "--pid", pid, "--fsize="+size+":unlimited").CombinedOutput(); err != nil {
			t.Fatalf("prlimit: %v: %s", err, out)
		}
	}
	d.otherFault, d.alert = true, ""
	d.run(func() { limit("1000000") }, func() { limit("unlimited") })
}

// postgresOnAFullDisk fills the disk of the tables. A server whose log is full
// ends, and is a database that is unreachable until somebody starts it again.
func postgresOnAFullDisk(t *testing.T) {
	c, err := pgtest.NewInMemory(t.Context(), "shared_buffers = 16MB")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	dir, err := c.Folder("small")
	if err != nil {
		t.Fatal(err)
	}
	fill, free := mount(t, dir, 24<<20)
	execute(t, c.URL("postgres"), "CREATE TABLESPACE small LOCATION '"+dir+"'")
	execute(t, c.URL("postgres"), "CREATE DATABASE small TABLESPACE small")
	d := newFullDisk(t, c.URL("small"))
	d.run(fill, free)
}

func postgresThatSaysItsDiskIsFull(t *testing.T) {
	if os.Getenv("TILL_TEST_POSTGRES_URL") == "" {
		return // make test starts one
	}
	d := newFullDisk(t, newPostgresBackup(t).database)
	tables := []string{"payments", "steps", "events", "attempts", "transactions"}
	execute(t, d.database, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`)
	d.run(func() {
		for _, table := range tables {
			execute(t, d.database, "CREATE TRIGGER full_disk BEFORE INSERT ON "+table+" EXECUTE FUNCTION full_disk()")
		}
	}, func() {
		for _, table := range tables {
			execute(t, d.database, "DROP TRIGGER full_disk ON "+table)
		}
	})
}

// fullDisk is a service whose database has no space for a while, with an
// operator whose book is elsewhere.
type fullDisk struct {
	*failover
	reason     string // of not being ready, beside a full disk
	alert      string // that fires meanwhile; "" for none
	otherFault bool   // the database's disk is not full, but refuses writes or has nothing to do with it
}

func newFullDisk(t *testing.T, database string, args ...string) *fullDisk {
	t.Helper()
	dir := t.TempDir()
	d := &fullDisk{failover: &failover{bodies: map[string]string{}}, alert: "TillDiskFills"}
	d.killing = &killing{t: t, dir: dir, book: filepath.Join(dir, "operator.db"), database: database, answered: map[string]string{}, admin: keptAddr(t)}
	if !store.IsPostgres(database) {
		if err := os.WriteFile(database, nil, 0o600); err != nil { // migrate makes none
			t.Fatal(err)
		}
	}
	d.till(nil, "migrate", "--database", database)
	var made struct {
		Key string `json:"api_key"`
	}
	d.till(&made, "client", "create", "--name", "Demo", "--mode", "test", "--database", database, "--json")
	d.key = made.Key
	d.server = d.start(args...)
	return d
}

// till runs a command that must go well, and reads the JSON that it prints.
func (d *fullDisk) till(answer any, args ...string) {
	d.t.Helper()
	var out, errs bytes.Buffer
	if code := run(context.Background(), args, &out, &errs); code != 0 {
		d.t.Fatalf("till %s ends with %d: %s", args[0], code, errs.String())
	}
	if answer != nil {
		if err := json.Unmarshal(out.Bytes(), answer); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *fullDisk) run(fill, free func()) {
	t := d.t
	d.createMany(10)
	sound := d.scrape()
	fill()
	d.await("a create is refused", func() bool { d.create(t.Context()); return len(d.open) > 0 })
	for range 20 {
		d.create(t.Context())
	}
	before, refused := d.answers(), len(d.open)
	if d.alert != "" && !fires(t, d.alert, sound, d.scrape()) {
		t.Errorf("%s does not fire", d.alert)
	}
	d.isNamed()
	if refused < 15 {
		t.Errorf("on a full disk %d of 20 creates were refused", refused)
	}
	d.await("a customer has had the time to approve", d.atLeast(1300*time.Millisecond))
	d.reads()
	d.operatorKnowsNothingMore()

	free()
	n := d.answers()
	freed := time.Now()
	d.await("a create is answered", func() bool { d.create(t.Context()); return d.answers() > n })
	healed := time.Since(freed)
	if healed > mostHealing() {
		t.Errorf("the first answer came %s after there was space again, want at most %s", healed, mostHealing())
	}
	d.await("a customer has had the time to approve", d.atLeast(1300*time.Millisecond))
	d.operatorKnowsNothingMore()
	t.Logf("%d creates answered until the disk was full, %d refused; healed %s after there was space", before, refused, healed.Round(time.Millisecond))
	if d.alert != "" {
		d.await("the alert ends by itself", func() bool { first := d.scrape(); return !fires(t, d.alert, first, d.scrape()) })
	}
	d.finish()
}

// scrape reads what Prometheus would.
func (d *fullDisk) scrape() scrape {
	d.t.Helper()
	_, text := d.health("/metrics")
	return scrape{time.Now(), text}
}

// health asks the admin address.
func (d *fullDisk) health(path string) (status int, text string) {
	d.t.Helper()
	resp, err := http.Get("http://" + d.admin + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// isNotReady holds that no create can be taken, for a reason.
func (d *fullDisk) isNotReady(reason string) {
	d.t.Helper()
	if status, text := d.health("/readyz"); status != http.StatusServiceUnavailable || text != reason+"\n" {
		d.t.Errorf("on a full disk /readyz is answered with %d %s", status, text)
	}
}

// isNamed holds that a full disk is reported as one, at once, and not as something else. Files
// that may not grow are an error of the disk to SQLite, and not a full one.
func (d *fullDisk) isNamed() {
	d.t.Helper()
	if d.reason != "" {
		d.isNotReady(d.reason)
	}
	if d.otherFault {
		return
	}
	d.isNotReady("the disk of the database is full: payments are refused")
	_, page := d.health("/metrics")
	for _, want := range []string{`till_db_transactions_total{kind="first",result="unknown_commit"} 0`, `till_db_transactions_total{kind="first",result="unavailable"} 0`, "till_ready 0"} {
		if !strings.Contains(page, want+"\n") {
			d.t.Errorf("on a full disk, /metrics does not say %s", want)
		}
	}
	if strings.Contains(page, `till_db_transactions_total{kind="first",result="disk_full"} 0`+"\n") {
		d.t.Error("no create was counted as refused by a full disk")
	}
}

// atLeast answers true once so much time has passed.
func (d *fullDisk) atLeast(long time.Duration) func() bool {
	end := time.Now().Add(long)
	return func() bool { return time.Now().After(end) }
}

// reads reads what can be read, each more often than there are readers.
func (d *fullDisk) reads() {
	d.t.Helper()
	var id string
	for _, id = range d.answered {
		break
	}
	for range 8 {
		for _, path := range []string{"/payments", "/payments/" + id, "/wallets", "/transactions", "/payment-methods"} {
			if status := d.status(path); status != http.StatusOK {
				d.t.Errorf("on a full disk %s is answered with %d", path, status)
			}
		}
		if status, text := d.health("/healthz"); status != http.StatusOK {
			d.t.Errorf("on a full disk /healthz is answered with %d %s", status, text)
		}
	}
}

// operatorKnowsNothingMore holds the operator's debits against the payments:
// one that was refused must not have been sent.
func (d *fullDisk) operatorKnowsNothingMore() {
	d.t.Helper()
	ctx := context.Background()
	o, err := sandbox.Open(ctx, sandbox.Config{Path: d.book})
	if err != nil {
		d.t.Fatal(err)
	}
	defer o.Close()
	debits, err := o.Debits(ctx)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, debit := range debits {
		if status := d.status("/payments/" + debit.Payment.String()); status != http.StatusOK {
			d.t.Errorf("the operator debited payment %s, which is answered with %d", debit.Payment, status)
		}
	}
}
