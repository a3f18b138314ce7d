package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"till/cmd/till/internal/cli"
	"till/store"
	"till/store/admin"
	"till/store/storetest"
	"till/upkeep"
)

// TestRolling runs the release before and this program on one database, in either order
// and, on PostgreSQL, at once, under load; they are killed, stopped and replaced by each
// other (F37). At the end a higher level keeps both out. TILL_ROLLING says for how many
// seconds; 'make upgrade-test' runs it.
func TestRolling(t *testing.T) {
	seconds, err := strconv.Atoi(os.Getenv("TILL_ROLLING"))
	if err != nil {
		t.Skip("TILL_ROLLING is not a number of seconds; make upgrade-test says one")
	}
	before := releaseBefore(t)
	span := time.Duration(seconds) * time.Second
	t.Run("sqlite", func(t *testing.T) { rollOnOneFile(t, before, span) })
	t.Run("postgres", func(t *testing.T) {
		if os.Getenv("TILL_TEST_POSTGRES_URL") == "" {
			t.Fatal("TILL_TEST_POSTGRES_URL names no server; make upgrade-test starts one")
		}
		rollOnPostgres(t, before, span)
	})
}

// releaseBefore builds the release before from git, once per commit. The file that names
// it changes with each release.
func releaseBefore(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/release-before.txt")
	if err != nil {
		t.Fatal(err)
	}
	release := strings.TrimSpace(string(text))
	dir := filepath.Join(os.TempDir(), "till-release-"+release)
	program := filepath.Join(dir, "bin", "till")
	if cli.Exists(program) {
		return program
	}
	run := func(in string, script string) {
		t.Helper()
		c := exec.Command("bash", "-o", "pipefail", "-ec", script)
		c.Dir, c.Env = in, append(os.Environ(), "RELEASE="+release, "INTO="+dir)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("the release before, %s, cannot be built from git: %v\n%s", release, err, out)
		}
	}
	run("../..", `rm -rf "$INTO" && mkdir -p "$INTO/source" "$INTO/bin" && git archive "$RELEASE" | tar -x -C "$INTO/source"`)
	run(filepath.Join(dir, "source"), `go build -o "$INTO/bin/till.new" ./cmd/till && mv "$INTO/bin/till.new" "$INTO/bin/till" && rm -rf "$INTO/source"`)
	return program
}

// rollOnOneFile goes from one program to the other and back, by a kill or a stop.
func rollOnOneFile(t *testing.T, before string, span time.Duration) {
	k := newKilling(t)
	programs := []string{before, ""}
	var told *receiver
	turns := 0
	for end := time.Now().Add(span); time.Now().Before(end) || turns%2 == 1 || turns < 4; turns++ {
		k.program = programs[turns%2]
		s := k.start()
		if turns == 0 {
			told = k.receive()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(300+rand.IntN(700))*time.Millisecond)
		sig := syscall.SIGTERM
		if turns/2%2 == 0 {
			sig = syscall.SIGKILL
			context.AfterFunc(ctx, func() { s.cmd.Process.Kill() })
		}
		k.load(ctx, 3, loadPause)
		cancel()
		k.end(s, sig)
		if turns > 0 { // before, the database is that of the release before
			k.verify()
		}
	}
	k.program = ""
	s := k.start()
	k.retryAll()
	k.settle()
	back := newGivingBack(k)
	back.refusedBelowTheLevel(s)
	back.takenFromTheLevelOn(before)
	told.await(k)
	k.end(s, syscall.SIGTERM)
	k.verify()
	k.compareBooks()
	told.compare(k)
	k.keepOut(before)
	t.Logf("%d changes of the program, %d payments answered, %d creates tried again", turns-1, len(k.answered), k.retried)
}

// rollOnPostgres runs three instances and replaces one after the other, by either program.
func rollOnPostgres(t *testing.T, before string, span time.Duration) {
	url := storetest.Engines()[1].Empty(t).Path
	k := &killing{t: t, dir: t.TempDir(), database: url, book: url, answered: map[string]string{}}
	k.program = before
	servers := []*instance{k.start(), k.start(), k.start()}
	old := []bool{true, true, true}
	told := k.receive()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		k.load(ctx, 3, loadPause)
	}()
	counts := map[string]int{}
	replace := func(i int, by string, sig syscall.Signal) {
		k.end(servers[i], sig)
		k.program = by
		servers[i], old[i] = k.start(), by != ""
	}
	for n := 0; ctx.Err() == nil; n++ {
		pause(ctx, time.Duration(300+rand.IntN(700))*time.Millisecond)
		i, by, sig := rand.IntN(len(servers)), "", syscall.SIGKILL
		if n%2 == 1 {
			sig = syscall.SIGTERM
		}
		if n > 0 && !old[i] { // the first change is the upgrade's
			by = before
		}
		if by == "" {
			counts["to this program"]++
		} else {
			counts["back"]++
		}
		replace(i, by, sig)
	}
	<-loaded
	replace(0, before, syscall.SIGTERM)
	replace(1, "", syscall.SIGTERM)
	k.await("an instance of each is seen", func(l *upkeep.Levels) bool {
		older := len(l.Older(admin.Level))
		return older > 0 && older < len(l.Instances)
	})
	back := newGivingBack(k)
	for _, s := range servers {
		back.refusedBelowTheLevel(s)
	}
	for i := range servers {
		replace(i, "", syscall.SIGTERM)
	}
	k.retryAll()
	k.settle()
	back.takenFromTheLevelOn(before)
	told.await(k)
	for _, s := range servers {
		k.end(s, syscall.SIGTERM)
	}
	k.verify()
	k.compareBooks()
	told.compare(k)
	k.keepOut(before)
	t.Logf("%v in %s, %d payments answered, %d creates tried again", counts, span, len(k.answered), k.retried)
}

// refusedBelowTheLevel asks an instance of either release for refunds. Beside the release before,
// which does not know them, none is made.
func (b *givingBack) refusedBelowTheLevel(s *instance) {
	b.k.t.Helper()
	for _, id := range b.k.answered {
		body := fmt.Sprintf(`{"payment_id":"%s","idempotency_key":"%s"}`, id, newUUID())
		req, _ := http.NewRequest(http.MethodPost, s.base+"/refunds", strings.NewReader(body))
		req.Header.Set("X-Api-Key", b.key)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.k.t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusServiceUnavailable && resp.StatusCode != http.StatusNotFound {
			b.k.t.Errorf("a refund beside the release before: %d %s, %v", resp.StatusCode, text, err)
		}
		break
	}
	b.each(func(p *store.PayoutRow, _ int) { b.k.t.Errorf("refund %s was made", p.ID) })
}

// takenFromTheLevelOn raises the level. Then refunds are made, each is paid once, and the release
// before does not start any more.
func (b *givingBack) takenFromTheLevelOn(before string) {
	b.k.t.Helper()
	b.k.await("no instance of the release before is seen", func(l *upkeep.Levels) bool { return len(l.Older(admin.Level)) == 0 })
	b.k.withStore(func(s *store.Store) error {
		_, err := upkeep.RaiseLevel(b.k.t.Context(), s, admin.Level, "Awa")
		return err
	})
	ctx, cancel := context.WithTimeout(b.k.t.Context(), 2*time.Second)
	defer cancel()
	b.load(ctx, 3, loadPause)
	b.retryAll()
	b.settle()
	b.verify()
	if len(b.made) == 0 {
		b.k.t.Errorf("no refund was made: %v", b.refused)
	}
	if code, out := b.k.run(before, "migrate", "--database", b.k.database); code == 0 || !strings.Contains(out, "level") {
		b.k.t.Errorf("the release before starts on the level of refunds: %d %s", code, out)
	}
}

// await waits for a state of the instances.
func (k *killing) await(what string, done func(l *upkeep.Levels) bool) {
	k.t.Helper()
	k.withStore(func(s *store.Store) error {
		for end := time.Now().Add(2 * time.Minute); ; <-time.After(100 * time.Millisecond) {
			l, err := upkeep.ReadLevels(k.t.Context(), s)
			if err != nil || done(&l) {
				return err
			}
			if time.Now().After(end) {
				return fmt.Errorf("it never was that %s", what)
			}
		}
	})
}

// run runs a command of a program to its end.
func (k *killing) run(program string, args ...string) (int, string) {
	k.t.Helper()
	if program == "" {
		program = "till"
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		k.t.Fatalf("%v does not end: %s", args, out)
	}
	return exitOf(err), string(out)
}

// keepOut raises the level as a later release does: then neither program starts.
func (k *killing) keepOut(before string) {
	k.t.Helper()
	k.withStore(func(s *store.Store) error {
		return s.Update(k.t.Context(), func(tx *store.Tx) error { _, err := admin.RaiseLevel(k.t.Context(), tx, admin.Level+1); return err })
	})
	for _, program := range []string{before, ""} {
		if code, out := k.run(program, "migrate", "--database", k.database); code == 0 || !strings.Contains(out, "older than the database") {
			k.t.Errorf("%q does not refuse a higher level: %d %s", program, code, out)
		}
	}
}
