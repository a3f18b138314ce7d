package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// atOnce is how many tests run at once, unless -parallel says it: they mostly wait, for
// leases to end, for customers, for programs to start.
const atOnce = "5"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", atOnce); err != nil { // the command line is read later
		panic(err)
	}
	stepLease = 5 * time.Second // also of the programs: they are this one
	testscript.Main(m, map[string]func(){"till": main, "till-hurried": serveHurried})
}

// TestScripts runs the stories in testdata/script against the real binary.
// Beside the commands of testscript they have
//
//	start ARGS…            start 'till ARGS' on a free port and set $BASE, $KEY, $CLIENT
//	quit                   ask it to stop; it must exit 0
//	crash                  end it without a word
//	http STATUS VERB PATH [FILE]   send a request with $KEY; the answer is stdout
//	field NAME PATH        set $NAME to a value of the JSON in stdout
//	waitfor PATH FIELD VALUE   read until the field has the value
//	sub FILE VALUE…        put the values for $1, $2 … in a file
//
// where a path into JSON looks like items.0.id or items.currency=XAF.balance.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": start, "quit": quit, "crash": crash, "http": send, "field": field, "waitfor": waitFor, "sub": sub,
		},
		Setup: func(e *testscript.Env) error {
			e.Values[process{}] = &process{}
			e.Setenv("TILL_LISTEN", "127.0.0.1:0")
			e.Setenv("TILL_ADMIN_LISTEN", "")
			return nil
		},
	})
}

// process is the server of a script, of which there is one at a time.
type process struct{ cmd *exec.Cmd }

// waitTimeout is how long a story waits for anything. The machine may be busy.
const waitTimeout = 90 * time.Second

func start(ts *testscript.TestScript, neg bool, args []string) {
	p := ts.Value(process{}).(*process)
	if neg || len(args) == 0 || p.cmd != nil {
		ts.Fatalf("usage: start dev|serve ARGS…, once at a time")
	}
	cmd := exec.Command("till", args...)
	cmd.Path = lookPath(ts)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "TILL_LISTEN", "TILL_ADMIN_LISTEN", "GOCOVERDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var log bytes.Buffer
	pipe, err := cmd.StdoutPipe()
	if args[0] == "serve" {
		cmd.Args = append(cmd.Args, "--log-format", "json")
		pipe, err = cmd.StderrPipe()
	} else {
		cmd.Args = append(cmd.Args, "--json")
		cmd.Stderr = &log
	}
	ts.Check(err)
	ts.Check(cmd.Start())
	p.cmd = cmd
	ts.Defer(func() {
		if p.cmd == cmd {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	ready := make(chan map[string]any, 1)
	go readReady(pipe, ready)
	select {
	case r := <-ready:
		if r == nil {
			cmd.Wait()
			p.cmd = nil
			ts.Fatalf("till %s ended: %s", strings.Join(args, " "), log.String())
		}
		for name, member := range map[string]string{"BASE": "base_url", "KEY": "api_key", "CLIENT": "client_id"} {
			if v, ok := r[member].(string); ok {
				ts.Setenv(name, v)
			}
		}
	case <-time.After(waitTimeout):
		ts.Fatalf("till %s is not ready: %s", strings.Join(args, " "), log.String())
	}
}

// readReady sends the first object that holds a base_url, then nothing more;
// it keeps reading, so that the process never waits for us.
func readReady(r io.Reader, ready chan<- map[string]any) {
	defer close(ready)
	lines := bufio.NewScanner(r)
	for sent := false; lines.Scan(); {
		var v map[string]any
		if json.Unmarshal(lines.Bytes(), &v) == nil && v["base_url"] != nil && !sent {
			ready <- v
			sent = true
		}
	}
}

// lookPath finds the binary that testscript has put into the script's path.
func lookPath(ts *testscript.TestScript) string {
	dir, _, _ := strings.Cut(ts.Getenv("PATH"), ":")
	return dir + "/till"
}

func quit(ts *testscript.TestScript, neg bool, _ []string) {
	p := ts.Value(process{}).(*process)
	if neg || p.cmd == nil {
		ts.Fatalf("nothing to quit")
	}
	// Twice, as some wrappers do: that is still one request to stop.
	ts.Check(p.cmd.Process.Signal(syscall.SIGTERM))
	p.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(waitTimeout, func() { p.cmd.Process.Kill() })
	defer late.Stop()
	err := p.cmd.Wait()
	p.cmd = nil
	ts.Check(err)
}

func crash(ts *testscript.TestScript, neg bool, _ []string) {
	p := ts.Value(process{}).(*process)
	if neg || p.cmd == nil {
		ts.Fatalf("nothing to crash")
	}
	ts.Check(p.cmd.Process.Kill())
	p.cmd.Wait()
	p.cmd = nil
}

// request sends a request to the server of the script.
func request(ts *testscript.TestScript, verb, path string, body []byte) (int, []byte) {
	r, err := http.NewRequest(verb, ts.Getenv("BASE")+path, bytes.NewReader(body))
	ts.Check(err)
	if key := ts.Getenv("KEY"); key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Timeout: waitTimeout}
	res, err := client.Do(r)
	ts.Check(err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ts.Check(err)
	for name := range res.Header {
		if name == "Idempotent-Replayed" || name == "Location" {
			fmt.Fprintf(ts.Stderr(), "%s: %s\n", name, res.Header.Get(name))
		}
	}
	return res.StatusCode, b
}

func send(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: http STATUS VERB PATH [FILE]")
	}
	var body []byte
	if len(args) == 4 {
		body = []byte(ts.ReadFile(args[3]))
	}
	status, b := request(ts, args[1], args[2], body)
	fmt.Fprintf(ts.Stdout(), "%s\n", b)
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("%s %s answered %d: %s", args[1], args[2], status, b)
	}
}

func field(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: field NAME PATH")
	}
	v, err := at([]byte(ts.ReadFile("stdout")), args[1])
	ts.Check(err)
	ts.Setenv(args[0], v)
}

func sub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: sub FILE VALUE…")
	}
	text := ts.ReadFile(args[0])
	for i, value := range args[1:] {
		text = strings.ReplaceAll(text, "$"+strconv.Itoa(i+1), value)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}

func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: waitfor PATH FIELD VALUE")
	}
	var last string
	for deadline := time.Now().Add(waitTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		_, b := request(ts, http.MethodGet, args[0], nil)
		v, err := at(b, args[1])
		if err == nil && v == args[2] {
			fmt.Fprintf(ts.Stdout(), "%s\n", b)
			return
		}
		last = string(b)
	}
	ts.Fatalf("%s of %s is not %s: %s", args[1], args[0], args[2], last)
}

// at returns the value at a path into JSON, as text.
func at(b []byte, path string) (string, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	for _, name := range strings.Split(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			v = element(x, name)
		default:
			return "", fmt.Errorf("no %s in %s", path, b)
		}
	}
	if v == nil {
		return "null", nil
	}
	return fmt.Sprint(v), nil
}

// element returns the element of a list with a number, or the first that has
// a member of a value: "currency=XAF".
func element(list []any, name string) any {
	if n, err := strconv.Atoi(name); err == nil && n < len(list) {
		return list[n]
	}
	member, value, _ := strings.Cut(name, "=")
	for _, e := range list {
		if m, ok := e.(map[string]any); ok && fmt.Sprint(m[member]) == value {
			return e
		}
	}
	return nil
}
