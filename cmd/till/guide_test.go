package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"till/store/storetest"
)

// TestGuides does what README.md and the pages in docs/guide and docs/pages/en tell their reader
// to do, block by block. A page runs in one shell, in a folder of its own, so what
// one block sets the next one has. Where a page says /var/lib/till, /etc/till,
// or /backup, a folder inside that is meant; each 127.0.0.1:PORT is a free port; and
// postgres://till@db.internal/till?sslmode=verify-full is a real PostgreSQL.
//
// For writers of pages: the language of a block says what is done with it.
//
//	```sh        is run by bash; the first command that fails fails the test
//	```console   lines that begin with "$ " are run, the lines below are their output
//	```http      a request, "POST /payments" and below an empty line the body: it is sent with $KEY and must be answered 2xx
//	```toml      is read as a file of connections and routes, as 'till serve --config' would
//	```json      must be JSON
//
// Every other block, and each of these that is something else, says what it is in
// a comment above it that no reader sees:
//
//	<!-- test: output -->          what the block before it printed: "…" stands for anything; JSON may leave members out
//	<!-- test: file NAME -->       the content of a file, which later blocks use
//	<!-- test: sample TestName --> a program that this test runs
//	<!-- test: not run: REASON --> it cannot be run here; also to be counted in the table below
//	<!-- test: start -->           it one command that starts a server, which runs until the page ends
//	<!-- test: exit 1 -->          it ends with this exit code, or is answered with this HTTP status
//	<!-- test: setup: SHELL -->    to be run before it: what the reader would have. testdata/guide/prelude.sh has words for this
//	<!-- test: after: SHELL -->    to be run after it: what the reader would copy from the output; and any check
func TestGuides(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it runs every command of the guides")
	}
	t.Parallel()
	for _, page := range guidePages(t) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			blocks := readBlocks(t, page)
			for _, b := range blocks {
				if why := b.unclassed(); why != "" {
					t.Errorf("%s: %s", b, why)
				}
				if b.sample != "" && !testExists(t, b.sample) {
					t.Errorf("%s: there is no test %s", b, b.sample)
				}
			}
			if !t.Failed() {
				newGuide(t, blocks).run()
			}
		})
	}
}

// guideNotRun counts the blocks of each page that cannot be run here. Who
// raises a number has tried the block by hand.
var guideNotRun = map[string]int{
	"README.md":                   1,
	"docs/guide/backup.md":        2,
	"docs/guide/clients.md":       1,
	"docs/guide/growing.md":       5,
	"docs/guide/hardening.md":     2,
	"docs/guide/integrating.md":   1,
	"docs/guide/local-tools.md":   2,
	"docs/guide/metrics.md":       3,
	"docs/guide/operators-mtn.md": 1,
	"docs/guide/production.md":    4,
	"docs/guide/sdk-php.md":       1,
	"docs/guide/webhooks.md":      1,
}

func TestGuidesLeaveOutNoMoreThanTheySay(t *testing.T) {
	t.Parallel()
	for _, page := range guidePages(t) {
		n := 0
		for _, b := range readBlocks(t, page) {
			if b.notRun != "" {
				n++
				t.Logf("%s is not run: %s", b, b.notRun)
			}
		}
		if n != guideNotRun[page] {
			t.Errorf("%s: %d blocks are marked as not run; the table of this test allows %d", page, n, guideNotRun[page])
		}
	}
}

// guidePrograms are what pages call that not every machine has.
var guidePrograms = regexp.MustCompile(`\b(node|npm|php|composer|python3|sqlite3|age-keygen)\b`)

// guideTimeout bounds a page.
const guideTimeout = 3 * time.Minute

// guide is a page that is being run.
type guide struct {
	t      *testing.T
	blocks []*block
	dir    string            // of the page's shell
	root   string            // where the machine's folders are
	out    string            // what the blocks print
	ports  map[string]string // of the page, and the free one for each
	script strings.Builder
}

func newGuide(t *testing.T, blocks []*block) *guide {
	base := t.TempDir()
	g := &guide{t: t, blocks: blocks, dir: filepath.Join(base, "work"), root: filepath.Join(base, "machine"), out: filepath.Join(base, "out"), ports: map[string]string{}}
	for _, d := range []string{g.dir, g.out, g.root + "/var/lib", g.root + "/etc/till", g.root + "/backup"} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

const guidePostgres = "postgres://till@db.internal/till?sslmode=verify-full"

var (
	guideFolder  = regexp.MustCompile(`(^|[^\w/])(/var/lib/till|/etc/till|/backup)\b`)
	guideAddress = regexp.MustCompile(`\b(127\.0\.0\.1|localhost):(\d+)`)
)

// here puts the addresses and folders of this test into a text of the page.
func (g *guide) here(text string) string {
	text = strings.ReplaceAll(text, "go run ./cmd/till", "till")
	text = guideFolder.ReplaceAllString(text, "${1}"+g.root+"${2}")
	text = guideAddress.ReplaceAllStringFunc(text, func(a string) string {
		host, port, _ := strings.Cut(a, ":")
		return host + ":" + g.port(port)
	})
	if strings.Contains(text, guidePostgres) {
		text = strings.ReplaceAll(text, guidePostgres, g.postgres())
	}
	return text
}

func (g *guide) port(of string) string {
	if g.ports[of] == "" {
		_, g.ports[of], _ = net.SplitHostPort(keptAddr(g.t))
	}
	return g.ports[of]
}

// postgres is the URL of an empty database, the same all over the page.
func (g *guide) postgres() string {
	if g.ports[guidePostgres] == "" {
		engines := storetest.Engines()
		if len(engines) < 2 {
			g.t.Skip("TILL_TEST_POSTGRES_URL names no server; make test starts one")
		}
		g.ports[guidePostgres] = engines[1].Config(g.t).Path
	}
	return g.ports[guidePostgres]
}

// run writes the page as one script and runs it; then it compares what was
// printed with what the page shows.
func (g *guide) run() {
	prelude, err := filepath.Abs("testdata/guide/prelude.sh")
	if err != nil {
		g.t.Fatal(err)
	}
	g.say("ADDRESS=127.0.0.1:%s BASE=http://127.0.0.1:%[1]s/v1 KEY= SERVER= OUT=%s MACHINE=%s", g.port("8080"), g.out, g.root)
	g.say("export TILL_LISTEN=127.0.0.1:%s TILL_ADMIN_LISTEN=\n. %s", g.port("8080"), prelude)
	steps := 0
	for i, b := range g.blocks {
		g.say("echo '%s' >\"$OUT/at\"", b)
		if b.setup != "" {
			g.say("{\n%s} >\"$OUT/last\" 2>\"$OUT/err\"", g.here(b.setup))
		}
		switch {
		case b.file != "":
			g.write(b.file, b.text)
		case b.runs():
			steps++
			g.add(i, b)
		case b.lang == "toml" && b.notRun == "":
			g.load(b)
		case b.lang == "json" && b.notRun == "" && !json.Valid([]byte(b.text)):
			g.t.Errorf("%s is not JSON", b)
		}
		if b.output {
			g.say("cp \"$OUT/last\" \"$OUT/%d\"", i)
		}
		if b.after != "" {
			g.say("{\n%s} >\"$OUT/after\" 2>\"$OUT/err\"", g.here(b.after))
		}
	}
	if steps+strings.Count(g.script.String(), "$OUT/last") == 0 {
		return
	}
	for _, program := range append(guidePrograms.FindAllString(g.script.String(), -1), "bash", "curl") {
		storetest.Program(g.t, program)
	}
	g.bash()
	for i, b := range g.blocks {
		if b.output {
			g.compare(b, b.text, strconv.Itoa(i))
		}
		if b.runs() && b.lang == "console" {
			for j, s := range consoleSteps(b.text) {
				g.compare(b, s[1], fmt.Sprintf("%d.%d", i, j))
			}
		}
	}
}

func (g *guide) say(format string, args ...any) { fmt.Fprintf(&g.script, format+"\n", args...) }

// add puts a block into the script.
func (g *guide) add(i int, b *block) {
	switch b.lang {
	case "sh":
		g.command(b, b.text, strconv.Itoa(i))
	case "console":
		for j, s := range consoleSteps(b.text) {
			g.command(b, s[0], fmt.Sprintf("%d.%d", i, j))
		}
	case "http":
		g.request(b, strconv.Itoa(i))
	}
}

func (g *guide) command(b *block, text, out string) {
	text = g.here(text)
	switch {
	case b.start:
		g.say("{ exec %s} >\"$OUT/%s\" 2>\"$OUT/%s.err\" &\nSERVER=$!", text, out, out)
		ready := "Stop with Ctrl-C" // the last words of dev and simulate
		if strings.Contains(text, "till serve") {
			ready = "base_url="
		}
		g.say("ready $SERVER '%s' \"$OUT/%s\" \"$OUT/%[2]s.err\"", ready, out)
	case b.exit != 0:
		g.say("code=0\n( set -e\n%s) >\"$OUT/%s\" 2>\"$OUT/err\" || code=$?", text, out)
		g.say("[ $code = %d ] || { cat \"$OUT/%s\" \"$OUT/err\" >&2; fail \"it ended with $code, not with %[1]d\"; }", b.exit, out)
	default:
		g.say("{\n%s} >\"$OUT/%s\" 2>\"$OUT/err\"", text, out)
	}
	g.say("cp \"$OUT/%s\" \"$OUT/last\"", out)
}

// request sends an http block.
func (g *guide) request(b *block, out string) {
	head, body, _ := strings.Cut(b.text, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	verb, path, ok := strings.Cut(lines[0], " ")
	if !ok {
		g.t.Fatalf("%s does not begin with a request line", b)
	}
	args := ""
	for _, h := range lines[1:] {
		args += " -H \"" + h + "\""
	}
	if strings.TrimSpace(body) != "" {
		g.write(out+".body", body)
		args += fmt.Sprintf(" -H 'Content-Type: application/json' --data-binary @%s.body", out)
	}
	g.say(`status=$(curl -sS -o "$OUT/%s" -w '%%{http_code}' -X %s "$BASE%s" -H "X-Api-Key: $KEY"%s)`, out, verb, g.here(path), args)
	want := "2??"
	if b.exit != 0 {
		want = strconv.Itoa(b.exit)
	}
	g.say(`case $status in %s) ;; *) cat "$OUT/%s" >&2; fail "it was answered $status" ;; esac`, want, out)
	g.say("cp \"$OUT/%s\" \"$OUT/last\"", out)
}

// write keeps a file of the page.
func (g *guide) write(name, text string) {
	path := filepath.Join(g.dir, name)
	if strings.HasPrefix(name, "/") {
		path = g.here(name)
	}
	if err := os.WriteFile(path, []byte(g.here(text)), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// bash runs the script.
func (g *guide) bash() {
	ctx, cancel := context.WithTimeout(g.t.Context(), guideTimeout)
	defer cancel()
	script := filepath.Join(g.out, "script.sh")
	if err := os.WriteFile(script, []byte(g.script.String()), 0o600); err != nil {
		g.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "bash", script)
	cmd.Dir = g.dir
	if strings.Contains(g.script.String(), "GOPROXY=") { // what it fetches is this service's, and not what was fetched before
		cmd.Env = append(os.Environ(), "GOMODCACHE="+filepath.Join(g.out, "mod"), "GOFLAGS="+os.Getenv("GOFLAGS")+" -modcacherw")
	}
	told, err := os.Create(filepath.Join(g.out, "told")) // a file: servers that the page leaves running hold it open
	if err != nil {
		g.t.Fatal(err)
	}
	defer told.Close()
	cmd.Stdout, cmd.Stderr = told, told
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with every server that it starts
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = end
	if err = cmd.Start(); err == nil {
		defer end()
		err = cmd.Wait()
	}
	if err != nil {
		at, _ := os.ReadFile(filepath.Join(g.out, "at"))
		said, _ := os.ReadFile(filepath.Join(g.out, "err"))
		text, _ := os.ReadFile(told.Name())
		g.t.Fatalf("%s%v\n%s%s", at, err, said, text)
	}
}
