package webhook_test

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/store/storetest"
	"till/webhook"
)

const (
	guide    = "../docs/guide/webhook-receivers.md"
	examples = "../docs/guide/examples/webhooks"
)

// receiver is one of the guide's examples and how it is started.
type receiver struct {
	language, file, program string
	command                 func(t *testing.T, program, port string) *exec.Cmd
}

var receivers = []receiver{
	{"go", "go/main.go", "go", func(t *testing.T, program, _ string) *exec.Cmd {
		binary := filepath.Join(t.TempDir(), "receiver")
		build := exec.CommandContext(t.Context(), program, "build", "-o", binary, ".")
		build.Dir = filepath.Join(examples, "go")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return exec.CommandContext(t.Context(), binary)
	}},
	{"js", "node/receiver.mjs", "node", func(t *testing.T, program, _ string) *exec.Cmd {
		return exec.CommandContext(t.Context(), program, filepath.Join(examples, "node/receiver.mjs"))
	}},
	{"php", "php/receiver.php", "php", func(t *testing.T, program, port string) *exec.Cmd {
		return exec.CommandContext(t.Context(), program, "-S", "127.0.0.1:"+port, filepath.Join(examples, "php/receiver.php"))
	}},
	{"python", "python/receiver.py", "python3", func(t *testing.T, program, _ string) *exec.Cmd {
		return exec.CommandContext(t.Context(), program, filepath.Join(examples, "python/receiver.py"))
	}},
}

func TestTheGuideShowsTheExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range receivers {
		text, err := os.ReadFile(filepath.Join(examples, r.file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(page, []byte("```"+r.language+"\n"+string(text)+"```\n")) {
			t.Errorf("the guide does not show %s as it is", r.file)
		}
	}
}

// Every example accepts what is good, refuses what is not, and does the work
// of each event once and never out of order. cmd/till's
// TestTheReceiversOfTheGuideShipWhatIsPaid runs them with a server.
func TestTheExamplesWork(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it builds and starts the examples")
	}
	t.Parallel()
	for _, r := range receivers {
		t.Run(r.program, func(t *testing.T) {
			t.Parallel()
			program := storetest.Program(t, r.program)
			secret := webhook.NewSecret()
			empty := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, `{"items":[],"next_after":0,"log_id":"L"}`)
			})
			address, lines := start(t, r, program, secret, empty)
			tryReceiver(t, address, lines, secret)
		})
	}
}

// A log that was restored from a backup is another, or ends before the cursor
// of the examples. They read it from its beginning, and do nothing twice.
func TestTheExamplesReadALogThatWasSetBack(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it builds and starts the examples")
	}
	t.Parallel()
	page := func(w io.Writer, log string, next int, payments ...string) {
		var items []string
		for _, p := range payments {
			items = append(items, fmt.Sprintf(`{"type":"payment.success","data":{"payment":{"id":%q,"reference":null}}}`, p))
		}
		fmt.Fprintf(w, `{"items":[%s],"next_after":%d,"log_id":%q}`, strings.Join(items, ","), next, log)
	}
	for _, r := range receivers {
		for name, behind := range map[string]func(w http.ResponseWriter){
			"the cursor is ahead": func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusConflict)
				io.WriteString(w, `{"status":409,"code":"cursor_ahead"}`)
			},
			"the log is another": func(w http.ResponseWriter) { page(w, "L2", 8, "p8") },
		} {
			t.Run(r.program+" "+name, func(t *testing.T) {
				t.Parallel()
				program := storetest.Program(t, r.program)
				var restored atomic.Bool
				log := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch after := r.FormValue("after"); {
					case !restored.Load() && after == "0":
						page(w, "L1", 7, "p1", "p2")
					case !restored.Load(): // it has read all of it
						page(w, "L1", 7)
						restored.Store(true)
					case after == "7":
						behind(w)
					case after == "0":
						page(w, "L2", 3, "p1", "p3")
					default:
						page(w, "L2", 3)
					}
				})
				_, lines := start(t, r, program, webhook.NewSecret(), log)
				var done []string
				for len(done) == 0 || done[len(done)-1] != "p3" {
					done = append(done, await(t, lines, regexp.MustCompile(`ship: (\w+)`))[1])
				}
				if fmt.Sprint(done) != "[p1 p2 p3]" {
					t.Errorf("%s are shipped", done)
				}
			})
		}
	}
}

// start runs an example, which reads a log every second, and returns where it
// listens and what it prints.
func start(t *testing.T, r receiver, program string, secret webhook.Secret, events http.Handler) (address string, lines <-chan string) {
	t.Helper()
	port := "0"
	if r.program == "php" { // cannot choose a free one itself
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(l.Addr().String())
		l.Close()
	}
	cmd := r.command(t, program, port)
	ready := make(chan struct{}) // what it prints before it listens is not looked at
	log := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ready:
			events.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(log.Close)
	cmd.Env = append(os.Environ(), "PORT="+port, "TILL_WEBHOOK_SECRET="+secret.Reveal(), "TILL_URL="+log.URL, "TILL_API_KEY=K",
		"SHOP="+filepath.Join(t.TempDir(), "shop.json"), "SWEEP_SECONDS=1", "PYTHONDONTWRITEBYTECODE=1")
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := make(chan string, 1000)
	go func() {
		defer close(printed)
		for s := bufio.NewScanner(out); s.Scan(); {
			printed <- s.Text()
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		in.Close()
	})
	if r.program == "php" { // it leaves its sweeps to cron
		go func() {
			for t.Context().Err() == nil {
				sweep := exec.CommandContext(t.Context(), program, filepath.Join(examples, r.file))
				sweep.Env, sweep.Stdout, sweep.Stderr = cmd.Env, in, in
				sweep.Run() // what it did wrong is printed, or is missing
				select {
				case <-time.After(time.Second):
				case <-t.Context().Done():
				}
			}
		}()
	}
	address = await(t, printed, regexp.MustCompile(`http://127\.0\.0\.1:\d+`))[0]
	close(ready)
	return address, printed
}

// await returns the next match in what a program prints.
func await(t *testing.T, lines <-chan string, want *regexp.Regexp) []string {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatal("the example has ended")
			}
			if found := want.FindStringSubmatch(line); found != nil {
				return found
			}
		case <-late:
			t.Fatalf("the example does not print %s", want)
		}
	}
}

func tryReceiver(t *testing.T, address string, lines <-chan string, secret webhook.Secret) {
	now := time.Now()
	other := webhook.NewSecret()
	// The status is what a payment has after such an event.
	statuses := map[string]string{"late_success": "expired", "reversed": "success", "updated": "success"}
	event := func(kind, payment, order string) string {
		return fmt.Sprintf(`{"id":"e","type":"payment.%s","created_at":"2026-11-15T05:51:00.000000Z","api_version":"1.1","sequence":1,`+
			`"data":{"payment":{"id":%q,"reference":%q,"status":%q,"description":"Café 你好 / \"two\""}}}`, kind, payment, order, cmp.Or(statuses[kind], kind))
	}
	first := event("success", "p1", "A")
	sign := func(body string, at time.Time, secrets ...webhook.Secret) http.Header {
		return webhook.Sign("e", at, []byte(body), secrets...)
	}
	swapped := sign(first, now, secret)
	swapped.Set(webhook.HeaderTimestamp, fmt.Sprint(now.Unix()-1))
	renamed := sign(first, now, secret)
	renamed.Set(webhook.HeaderID, "e7")
	unsigned := sign(first, now, secret)
	unsigned.Del(webhook.HeaderSignature)
	type delivery struct {
		name   string
		header http.Header
		body   string
		accept bool
	}
	good := func(name, kind, payment, order string) delivery {
		body := event(kind, payment, order)
		return delivery{name, sign(body, now, secret), body, true}
	}
	rotating := event("expired", "p3", "C")
	for _, c := range []delivery{
		{"tampered", sign(first, now, secret), strings.Replace(first, `"A"`, `"X"`, 1), false},
		{"another id", renamed, first, false},
		{"another time", swapped, first, false},
		{"six minutes old", sign(first, now.Add(-6*time.Minute), secret), first, false},
		{"six minutes ahead", sign(first, now.Add(6*time.Minute), secret), first, false},
		{"only the other secret", sign(first, now, other), first, false},
		{"no signature", unsigned, first, false},
		{"no headers", http.Header{}, first, false},
		{"not JSON", sign("x", now, secret), "x", false},
		{"not about a payment", sign(`{"id":"e17","sequence":17,"data":{}}`, now, secret), `{"id":"e17","sequence":17,"data":{}}`, true},
		good("a receipt before the success", "updated", "p1", "A"),
		{"good", sign(first, now, secret), first, true},
		{"the same again", sign(first, now.Add(time.Second), secret), first, true},
		good("older than what is known", "processing", "p1", "A"),
		good("an end before the late success that was told already", "expired", "p1", "A"),
		good("taken back", "reversed", "p1", "A"),
		good("a success that was taken back already", "success", "p1", "A"),
		{"four minutes old", sign(event("failed", "p2", "B"), now.Add(-4*time.Minute), secret), event("failed", "p2", "B"), true},
		{"rotating, ours is the old secret", sign(rotating, now, other, secret), rotating, true},
		good("late money", "late_success", "p3", "C"),
		good("a second payment of the same order", "success", "p4", "C"),
		good("the second one taken back, which was to be given back", "reversed", "p4", "C"),
		{"rotating, ours is the new secret", sign(event("reversed", "p5", "D"), now, secret, other), event("reversed", "p5", "D"), true},
		good("last", "success", "p9", "Z"),
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/webhooks", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = c.header
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		res.Body.Close()
		if accepted := res.StatusCode/100 == 2; accepted != c.accept || !accepted && res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: answered %s", c.name, res.Status)
		}
	}
	var done []string
	for work := regexp.MustCompile(`(ship|stop|give back|not paid): (\w+)`); !slices.Contains(done, "ship Z"); {
		found := await(t, lines, work)
		done = append(done, found[1]+" "+found[2])
	}
	want := []string{"ship A", "stop A", "not paid B", "not paid C", "ship C", "give back p4", "ship Z"}
	if !slices.Equal(done, want) {
		t.Errorf("the work done is %q, want %q", done, want)
	}
}
