package main

import (
	"bufio"
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"till/books"
	"till/store"
	"till/store/storetest"
)

// TestADistributionThatIsKilledGoesOn kills 'till migrate --citus' at each of its commands:
// each run completes one command and is killed when it says the next. The last run comes to
// its end, nothing is lost, and no row stays on the coordinator. That the next command is
// found is also tried on PostgreSQL, by TestWhatIsLeftOfADistribution.
func TestADistributionThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	path := citusEngine(t).Empty(t).Path
	storetest.LoadFixture(t, path, "../../books/testdata/schema-0014")
	k := &killing{t: t}
	if code, out := k.run("", "migrate", "--database", path); code != 0 {
		t.Fatal(out)
	}
	args := []string{"migrate", "--database", path, "--citus", "--shards", "4"}
	kills, before := 0, ""
	for ; ; kills++ {
		last, ended := killAtSecondLine(t, args)
		if ended {
			break
		}
		if last == before || kills > 300 {
			t.Fatalf("after %d kills it still begins with %s", kills, last)
		}
		before = last
	}
	if kills < 60 {
		t.Errorf("only %d kills", kills)
	}
	for _, c := range []struct {
		shards, says string
		code         int
	}{{"4", "up to date", 0}, {"8", "divided into 4 parts", 2}} {
		if code, out := k.run("", append(args[:4:4], "--shards", c.shards)...); code != c.code || !strings.Contains(out, c.says) || strings.Contains(out, "truncate") {
			t.Errorf("%s shards, at the end: %d %s", c.shards, code, out)
		}
	}
	onStore(t, path, func(s *store.Store) error {
		r, err := books.Verify(t.Context(), s, books.Options{})
		for _, p := range r.Problems {
			t.Error(p)
		}
		if r.Clients != 3 || r.Payments != 38 || r.Payouts != 10 || r.Wallets != 24 {
			t.Errorf("it has %+v", r)
		}
		return err
	})
}

// killAtSecondLine runs a command until it prints a second line that is a command of SQL, and
// kills it there. It returns the line, or that the command has ended well before.
func killAtSecondLine(t *testing.T, args []string) (line string, ended bool) {
	t.Helper()
	path, err := exec.LookPath("till")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, said := bufio.NewScanner(out), 0
	for lines.Scan() {
		if line = lines.Text(); strings.HasPrefix(line, "SELECT ") || strings.HasPrefix(line, "ALTER ") || strings.HasPrefix(line, "DROP ") {
			said++
		}
		if said == 2 {
			cmd.Process.Kill()
			cmd.Wait()
			return line, false
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("after %s: %v\n%s", line, err, errs.String())
	}
	return line, true
}
