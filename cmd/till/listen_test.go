package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"till/internal/dev/relay"
	"till/internal/escape"
	"till/webhook"
)

// The handler of TestListen refuses for so many posts after so many that it accepted: a third.
const (
	listenUp   = 100
	listenDown = 50
)

// listenHandler is a handler that is down a third of the time. It keeps what it accepted.
type listenHandler struct {
	t      *testing.T
	secret webhook.Secret

	mu       sync.Mutex
	accepted map[int64]int    // sequence → times
	last     map[string]int64 // of each payment, the last sequence that was new
	up, down int
	refused  int
}

func (h *listenHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was killed
	}
	var e struct {
		ID       string
		Sequence int64
		Data     struct{ Payment struct{ ID string } }
	}
	if err := json.Unmarshal(body, &e); err != nil || e.ID != req.Header.Get(webhook.HeaderID) {
		h.t.Errorf("a body of another event: %s", body)
	}
	if err := webhook.Verify(req.Header, body, time.Now(), webhook.Tolerance, h.secret); err != nil {
		h.t.Errorf("event %d: %v", e.Sequence, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.up == listenUp {
		h.refused++
		if h.down++; h.down == listenDown {
			h.up, h.down = 0, 0
		}
		http.Error(w, "closed", http.StatusServiceUnavailable)
		return
	}
	h.up++
	if h.accepted[e.Sequence]++; h.accepted[e.Sequence] == 1 {
		if before := h.last[e.Data.Payment.ID]; before > e.Sequence {
			h.t.Errorf("of payment %s, event %d came after %d", e.Data.Payment.ID, e.Sequence, before)
		}
		h.last[e.Data.Payment.ID] = e.Sequence
	}
}

func (h *listenHandler) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.accepted)
}

// A thousand events, a handler that is down a third of the time, the command killed five
// times: all arrive, those of one payment in order, and the cursor passes nothing.
func TestListen(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it runs a server and kills the command")
	}
	t.Parallel()
	const payments, kills = 334, 5
	k := newKilling(t)
	server := k.start()
	defer k.end(server, syscall.SIGTERM)
	for i := range payments {
		var made struct{ ID string }
		k.call(http.MethodPost, "/payments", strings.Replace(`{"method":"mtn_momo","country":"CG","amount":{"value":"500","currency":"XAF"},"customer":{"phone":"242061234567"},"idempotency_key":"$"}`, "$", newUUID().String(), 1), &made)
		if made.ID == "" {
			t.Fatal("no payment", i)
		}
	}
	h := &listenHandler{t: t, secret: relay.Secret(k.key), accepted: map[int64]int{}, last: map[string]int64{}}
	handler := httptest.NewServer(h)
	defer handler.Close()
	const all = payments * 3
	for n := range kills + 1 {
		l := startListener(t, k.dir, handler.URL+"/till", n == 0)
		enough := all
		if n < kills {
			enough = all / (kills + 1) * (n + 1)
		}
		l.await(func() bool { return h.count() >= enough })
		l.cmd.Process.Kill()
		l.cmd.Wait()
		h.checkCursor(filepath.Join(k.dir, "listen-cursor.json"))
	}
	repeated := 0
	for s := int64(1); s <= all; s++ {
		if h.accepted[s] == 0 {
			t.Errorf("event %d never arrived", s)
		}
		repeated += h.accepted[s] - 1
	}
	if most := kills * 24; repeated > most { // what is posted and accepted, and not yet in the file
		t.Errorf("%d events came again after %d kills", repeated, kills)
	}
	t.Logf("%d events of %d payments, %d posts refused, %d kills, %d events came again", len(h.accepted), payments, h.refused, kills, repeated)
}

// listener is a running till listen.
type listener struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
}

// startListener starts the command beside a till dev, whose folder has the key and the address.
func startListener(t *testing.T, dir, to string, fromStart bool, flags ...string) *listener {
	t.Helper()
	path, err := exec.LookPath("till")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "listen", "--data", dir, "--forward-to", to, "--json")
	if fromStart {
		cmd.Args = append(cmd.Args, "--since", "start")
	}
	cmd.Args = append(cmd.Args, flags...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return &listener{t, cmd, in}
}

// await types r, so that nobody waits for the next try, until something is so.
func (l *listener) await(done func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(waitTimeout); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatal("the events do not arrive")
		}
		io.WriteString(l.in, "r\n")
	}
}

// checkCursor checks that the file has nothing behind it that was not accepted.
func (h *listenHandler) checkCursor(file string) {
	h.t.Helper()
	text, err := os.ReadFile(file)
	var known []struct {
		Read    int64
		Pending []int64
	}
	if err != nil || json.Unmarshal(text, &known) != nil || len(known) != 1 {
		h.t.Fatalf("the cursor: %s, %v", text, err)
	}
	open := map[int64]bool{}
	for _, n := range known[0].Pending {
		open[n] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := int64(1); n <= known[0].Read; n++ {
		if !open[n] && h.accepted[n] == 0 {
			h.t.Errorf("the cursor has passed event %d, which was not accepted", n)
		}
	}
}

// What the handler answers and what references say cannot forge a line.
func TestListenPrintsHostileText(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		var out, errs lines
		o := listenOutput{w: escape.NewWriter(&out), notices: escape.NewWriter(&errs), json: asJSON} // as run has them
		o.report(relay.Report{At: time.Now(), Kind: hostile, Subject: hostile, Reference: hostile, Next: time.Second, Response: webhook.Response{Status: 500, Body: hostile}})
		o.notice(hostile)
		checkSafe(t, "till listen", out.String()+errs.String())
		if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), shownHostile) {
			t.Errorf("%d lines: %q", n, out.String())
		}
	}
}

// A handler that refuses may verify with another key's secret, which looks like a bug of the
// handler. It is said once, and not of a handler that is broken.
func TestListenNamesTheSecretWhenItIsRefused(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{400: 1, 401: 1, 403: 1, 404: 0, 500: 0, 0: 0} {
		var out, notices lines
		o := listenOutput{w: &out, notices: &notices, secret: "whsec_abcdef"}
		for range 3 {
			o.report(relay.Report{At: time.Now(), Kind: "payment.success", Subject: "019cadd4", Response: webhook.Response{Status: status}})
		}
		if n := strings.Count(notices.String(), "whsec_abcdef"); n != want || strings.Count(notices.String(), "\n") != want {
			t.Errorf("a handler that answers %d: %q", status, notices.String())
		}
	}
}

// Two of these commands, each with a cursor of its own.
func TestListenersWithNamesRunBesideEachOther(t *testing.T) {
	t.Parallel()
	k := newKilling(t)
	server := k.start()
	defer k.end(server, syscall.SIGTERM)
	handlers := []*listenHandler{}
	for _, name := range []string{"", "second"} {
		h := &listenHandler{t: t, secret: relay.Secret(k.key), accepted: map[int64]int{}, last: map[string]int64{}}
		handler := httptest.NewServer(h)
		defer handler.Close()
		l := startListener(t, k.dir, handler.URL+"/till", true, "--name", name)
		defer func() { l.cmd.Process.Kill(); l.cmd.Wait() }()
		handlers = append(handlers, h)
	}
	k.call(http.MethodPost, "/payments", strings.Replace(`{"method":"mtn_momo","country":"CG","amount":{"value":"500","currency":"XAF"},"customer":{"phone":"242061234567"},"idempotency_key":"$"}`, "$", newUUID().String(), 1), &struct{}{})
	for i, h := range handlers {
		for end := time.Now().Add(waitTimeout); h.count() < 3; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("handler %d has %d events", i, h.count())
			}
		}
	}
	third := exec.Command("till", "listen", "--data", k.dir, "--forward-to", "http://127.0.0.1:3000/", "--name", "second")
	if text, err := third.CombinedOutput(); err == nil || !strings.Contains(string(text), "give this one a cursor of its own") {
		t.Errorf("a third with the same name: %v, %s", err, text)
	}
}
