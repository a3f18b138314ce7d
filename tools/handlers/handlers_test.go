package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/internal/testport"
)

// shop is a program that receives webhooks.
type shop struct {
	name    string
	needs   string // a command that tells whether it can run here; "" if it always can
	prepare []string
	run     []string
	env     []string
	observe string // how often a payment was acted on, and its amount
}

const (
	engines  = "../../sdk/typescript/engines"
	inTable  = `sqlite3 "$FOLDER/shop.db" "SELECT count(*), max(amount) FROM acted WHERE payment = '$TILL_PAYMENT_ID'"`
	inFile   = `touch "$FOLDER/acted"; awk -v p="$TILL_PAYMENT_ID" '$1 == p {n++; a = $2} END {print n + 0, a}' "$FOLDER/acted"`
	startsIn = 60 * time.Second // the machine may be busy
)

var (
	python  = env("PYTHON", "/usr/bin/python3")
	node    = env("TILL_NODE", "node")
	workers = []string{"PHP_CLI_SERVER_WORKERS=4"}
	onPath  = []string{"PYTHONPATH=../../sdk/python"}
)

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

var shops = []shop{
	{name: "net/http", run: []string{"$FOLDER/nethttp"}, prepare: []string{"go", "build", "-o", "$FOLDER/nethttp", "./nethttp"}, observe: inTable},
	{name: "Flask", needs: python + " -c 'import flask'", run: []string{python, "flask_shop.py"}, env: onPath, observe: inTable},
	{name: "Django", needs: python + " -c 'import django'", run: []string{python, "django_shop.py"}, env: onPath, observe: inTable},
	{name: "plain PHP", needs: "php -r 'exit(extension_loaded(\"pdo_sqlite\") ? 0 : 1);'", run: []string{"php", "-S", "127.0.0.1:$PORT", "plain_shop.php"}, env: workers, observe: inTable},
	{name: "Laravel", needs: "php -r 'exit(stream_resolve_include_path(\"Illuminate/Foundation/Application.php\") ? 0 : 1);'", prepare: []string{"php", "laravel_shop.php"},
		run: []string{"php", "-S", "127.0.0.1:$PORT", "laravel_shop.php"}, env: workers, observe: inTable},
	typescript("Express"), typescript("Fastify"), typescript("Hono"), typescript("Next"),
}

func typescript(framework string) shop {
	return shop{name: framework, needs: "test -d " + engines + "/node_modules/express && test -d ../../sdk/typescript/dist", run: []string{node, engines + "/shop.mjs", framework}, observe: inFile}
}

// Every handler that we ship passes every check, and every check sees what it is about. With
// TILL_EVERYTHING nothing may be missing on the machine.
func TestShippedHandlers(t *testing.T) {
	t.Parallel()
	till := os.Getenv("TILL_BINARY")
	if till == "" {
		till = filepath.Join(t.TempDir(), "till")
		build := exec.Command("go", "build", "-o", till, "./cmd/till")
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for _, s := range shops {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if s.needs != "" && exec.Command("sh", "-c", s.needs).Run() != nil {
				if os.Getenv("TILL_EVERYTHING") != "" {
					t.Fatalf("%s is not installed: make sdk installs it", s.name)
				}
				t.Skipf("%s is not installed, so its handler is not tested here: make sdk installs it", s.name)
			}
			r := newRun(t, s)
			r.start()
			r.check(till)
		})
	}
}

// run is a running shop.
type run struct {
	*testing.T
	shop
	folder, port string
	log          bytes.Buffer
}

const secret = "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="

func newRun(t *testing.T, s shop) *run {
	address, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	return &run{T: t, shop: s, folder: t.TempDir(), port: port}
}

// command makes a command of the shop in its surroundings.
func (r *run) command(words []string) *exec.Cmd {
	filled := make([]string, len(words))
	for i, w := range words {
		filled[i] = strings.NewReplacer("$FOLDER", r.folder, "$PORT", r.port).Replace(w)
	}
	cmd := exec.Command(filled[0], filled[1:]...)
	cmd.Env = append(append(os.Environ(), "FOLDER="+r.folder, "PORT="+r.port, "TILL_WEBHOOK_SECRET="+secret), r.env...)
	return cmd
}

// start starts the shop and waits until it listens.
func (r *run) start() {
	r.Helper()
	if r.prepare != nil {
		if out, err := r.command(r.prepare).CombinedOutput(); err != nil {
			r.Fatalf("%v: %s", err, out)
		}
	}
	cmd := r.command(r.run)
	cmd.Stdout, cmd.Stderr = &r.log, &r.log
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r.Cleanup(func() { killGroup(cmd); <-ended; ended <- nil })
	for deadline := time.Now().Add(startsIn); ; {
		conn, err := net.Dial("tcp", "127.0.0.1:"+r.port)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			r.Fatalf("it has ended: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			r.Fatal("it does not listen")
		}
	}
}

// check runs the command as its user would.
func (r *run) check(till string) {
	r.Helper()
	cmd := r.command([]string{till, "webhook", "check", "http://127.0.0.1:$PORT/till", "--observe", r.observe, "--json"})
	cmd.Args[len(cmd.Args)-2] = r.observe // its own $FOLDER is the environment's
	out, err := cmd.Output()
	var result struct {
		Checks []struct{ Name, Verdict, Status, Advice string }
		Passed int
	}
	if json.Unmarshal(out, &result) != nil {
		r.Fatalf("%s, %v", out, err)
	}
	for _, c := range result.Checks {
		if c.Verdict != "passed" {
			r.Errorf("%s: %s, %s: %s", c.Name, c.Verdict, c.Status, c.Advice)
		}
	}
	if result.Passed != 24 {
		r.Error(fmt.Sprintf("%d of 24", result.Passed))
	}
}
