package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"till/store"
	"till/store/storetest"
	"till/upkeep"
)

// rotation is a service whose secret is rotated, and all that was printed meanwhile.
type rotation struct {
	*killing
	mu   sync.Mutex
	said strings.Builder
}

// command runs a command on the database.
func (r *rotation) command(args ...string) (int, string) {
	code, out := r.run("", append(args, "--database", r.database)...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said.WriteString(out)
	return code, out
}

func (r *rotation) must(args ...string) string {
	r.t.Helper()
	code, out := r.command(args...)
	if code != 0 {
		r.t.Fatalf("till %s ends with %d: %s", strings.Join(args, " "), code, out)
	}
	return out
}

// killed runs a command and ends it without a word, maybe before it is done.
func (r *rotation) killed(args ...string) {
	r.t.Helper()
	killTill(r.t, 120*time.Millisecond, append(args, "--database", r.database)...)
}

// generations is what 'till secret list' says.
type generations struct {
	Used        int
	Generations []struct {
		Generation int
		State      upkeep.GenerationState
		Sealed     int64
	}
}

func (r *rotation) list() (g generations) {
	r.t.Helper()
	out := r.must("secret", "list", "--json")
	if err := json.Unmarshal([]byte(out), &g); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	return g
}

// copyFile copies a file of one data folder into another.
func (r *rotation) copyFile(name, from, to string) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(from, name))
	if err == nil {
		err = os.WriteFile(filepath.Join(to, name), text, 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// The secret is rotated on a loaded service, on PostgreSQL with two instances that have
// files of their own. Commands and an instance are killed in the middle. Nothing is lost, no
// webhook has a wrong signature, and no key is ever printed.
func TestTheSecretIsRotatedUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it starts and kills servers")
	}
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			k := newKilling(t)
			if e.Name != "sqlite" {
				k.database = e.Config(t).Path
				k.book = k.database
			}
			rotateUnderLoad(&rotation{killing: k})
		})
	}
}

func rotateUnderLoad(r *rotation) {
	t, secret := r.t, filepath.Join(r.dir, "till.secret")
	verbose := []string{"--log-level", "info"}
	servers, folders := []*instance{r.start(verbose...)}, []string{r.dir}
	if store.IsPostgres(r.database) {
		second := t.TempDir()
		r.copyFile("till.secret", r.dir, second)
		r.copyFile("demo-key.json", r.dir, second)
		folders = append(folders, second)
		servers = append(servers, r.start(append(verbose, "--data", second)...))
	}
	ended := []*instance{}
	told := r.receive()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		r.load(ctx, 1, loadPause)
	}()
	by := []string{"--by", "Anne"}
	r.must(append([]string{"level", "raise"}, by...)...)
	add := append([]string{"secret", "add", "--secret-file", secret}, by...)
	for range 2 {
		r.killed(add...)
	}
	number := regexp.MustCompile(`Generation (\d+) is in`).FindStringSubmatch(r.must(add...))[1]

	used := make(chan struct{})
	go func() { // it waits until the second instance has the file
		defer close(used)
		if code, out := r.command(append([]string{"secret", "use", number}, by...)...); code != 0 {
			t.Errorf("use: %s", out)
		}
	}()
	for _, folder := range folders[1:] {
		r.copyFile("till.secret", r.dir, folder)
	}
	<-used
	r.end(servers[0], syscall.SIGKILL)
	ended = append(ended, servers[0])
	for range 2 {
		r.killed("secret", "reseal", "--secret-file", secret)
	}
	servers[0] = r.start(verbose...)
	needed := func() (n int64) {
		for _, g := range r.list().Generations {
			if g.State != upkeep.GenerationInUse {
				n += g.Sealed
			}
		}
		return n
	}
	for end := time.Now().Add(2 * time.Minute); needed() > 0; <-time.After(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("values are not sealed anew")
		}
	}
	pause(ctx, 500*time.Millisecond)
	cancel()
	<-loaded
	r.retryAll()
	r.settle()
	told.await(r.killing)
	for _, s := range servers {
		r.end(s, syscall.SIGTERM)
	}
	r.verify()
	r.compareBooks()
	told.compare(r.killing)
	if _, out := r.command("doctor", "--secret-file", secret); !strings.Contains(out, number+" seals") {
		t.Errorf("the doctor does not say what seals: %s", out)
	}
	for _, s := range append(ended, servers...) {
		r.said.WriteString(s.log())
	}
	r.canary(secret)
	t.Logf("generation %s, %d payments answered", number, len(r.answered))
}

// canary checks that no key of a file was printed.
func (r *rotation) canary(secret string) {
	r.t.Helper()
	text, err := os.ReadFile(secret)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		if len(word) == 64 && strings.Contains(r.said.String(), word[:16]) {
			r.t.Error("a key was printed")
		}
	}
	if !strings.Contains(r.said.String(), "Generation ") || !strings.Contains(r.said.String(), "ready") {
		r.t.Error("nothing was looked through")
	}
}
