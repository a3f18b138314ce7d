package webhook_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"till/webhook"
)

const (
	guide    = "../docs/guide/webhooks.md"
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
// of each event once and never out of order.
func TestTheExamplesWork(t *testing.T) {
	t.Parallel()
	for _, r := range receivers {
		t.Run(r.program, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(r.program)
			if err != nil {
				t.Skipf("there is no %s on this machine; the example is not run", r.program)
			}
			secret := webhook.NewSecret()
			address, lines := start(t, r, program, secret)
			tryReceiver(t, address, lines, secret)
		})
	}
}

// start runs an example and returns where it listens and what it prints.
func start(t *testing.T, r receiver, program string, secret webhook.Secret) (address string, lines <-chan string) {
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
	cmd.Env = append(os.Environ(), "PORT="+port, "TILL_WEBHOOK_SECRET="+secret.Reveal(), "INBOX="+t.TempDir(), "PYTHONDONTWRITEBYTECODE=1")
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
	address = await(t, printed, regexp.MustCompile(`http://127\.0\.0\.1:\d+`))[0]
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
	event := func(id string, sequence int, payment, status string) string {
		return fmt.Sprintf(`{"id":%q,"type":"payment.%s","created_at":"2026-11-15T05:51:00.000000Z","api_version":"1.1","sequence":%d,`+
			`"data":{"payment":{"id":%q,"status":%q,"description":"Café 你好 / \"two\""}}}`, id, status, sequence, payment, status)
	}
	first := event("e5", 5, "A", "success")
	sign := func(id, body string, at time.Time, secrets ...webhook.Secret) http.Header {
		return webhook.Sign(id, at, []byte(body), secrets...)
	}
	swapped := sign("e6", first, now, secret)
	swapped.Set(webhook.HeaderTimestamp, fmt.Sprint(now.Unix()-1))
	renamed := sign("e5", first, now, secret)
	renamed.Set(webhook.HeaderID, "e7")
	unsigned := sign("e8", first, now, secret)
	unsigned.Del(webhook.HeaderSignature)
	lastID := "e20"
	for _, c := range []struct {
		name   string
		header http.Header
		body   string
		accept bool
	}{
		{"good", sign("e5", first, now, secret), first, true},
		{"the same again", sign("e5", first, now.Add(time.Second), secret), first, true},
		{"older than what is known", sign("e4", event("e4", 4, "A", "processing"), now, secret), event("e4", 4, "A", "processing"), true},
		{"tampered", sign("e9", first, now, secret), strings.Replace(first, `"A"`, `"X"`, 1), false},
		{"another id", renamed, first, false},
		{"another time", swapped, first, false},
		{"six minutes old", sign("e10", first, now.Add(-6*time.Minute), secret), first, false},
		{"six minutes ahead", sign("e11", first, now.Add(6*time.Minute), secret), first, false},
		{"four minutes old", sign("e12", event("e12", 12, "B", "failed"), now.Add(-4*time.Minute), secret), event("e12", 12, "B", "failed"), true},
		{"rotating, ours is the old secret", sign("e13", event("e13", 13, "C", "expired"), now, other, secret), event("e13", 13, "C", "expired"), true},
		{"rotating, ours is the new secret", sign("e14", event("e14", 14, "C", "late"), now, secret, other), event("e14", 14, "C", "late"), true},
		{"only the other secret", sign("e15", first, now, other), first, false},
		{"no signature", unsigned, first, false},
		{"no headers", http.Header{}, first, false},
		{"not JSON", sign("e16", "x", now, secret), "x", false},
		{"not about a payment", sign("e17", `{"id":"e17","sequence":17,"data":{}}`, now, secret), `{"id":"e17","sequence":17,"data":{}}`, true},
		{"last", sign(lastID, event(lastID, 20, "Z", "success"), now, secret), event(lastID, 20, "Z", "success"), true},
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
	for work := regexp.MustCompile(`payment (\w+) is (\w+)`); !slices.Contains(done, "Z success"); {
		found := await(t, lines, work)
		done = append(done, found[1]+" "+found[2])
	}
	if want := "[A success B failed C expired C late Z success]"; fmt.Sprint(done) != want {
		t.Errorf("the work done is %v, want %s", done, want)
	}
}
