package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"till"
)

// guideShop is an example that runs, and the network before it.
type guideShop struct {
	name   string
	copies func(n int) int // how often the nth webhook arrives
	pause  string          // seconds between sweeps
	crash  bool            // it is killed once, in the middle

	t        *testing.T
	k        *killing
	r        guideReceiver
	program  string
	secret   string
	endpoint string
	path     string // of its file
	hook     string // the path of its webhooks, no other's

	mu      sync.Mutex
	posts   map[string]int // of each event
	n       int            // of all
	address string
	cmd     *exec.Cmd
	out     bytes.Buffer // all that it printed, in all its lives
	done    chan struct{}

	// What it had printed when it was killed in the middle, and the steps that it had written.
	before  string
	written map[string]int
}

// Write takes what the example prints.
func (g *guideShop) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.out.Write(b)
}

func (g *guideShop) printed() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.out.String()
}

// open registers the shop's address and starts it.
func (g *guideShop) open(t *testing.T, k *killing, r guideReceiver, program string) {
	t.Helper()
	g.t, g.k, g.r, g.program, g.path, g.posts = t, k, r, program, filepath.Join(t.TempDir(), "shop.json"), map[string]int{}
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	var made struct{ ID, Secret string }
	g.hook = "/webhooks/" + till.NewID(till.TimeOf(time.Now())).String()
	k.call(http.MethodPost, "/webhook-endpoints", `{"url":"`+front.URL+g.hook+`","events":["payment.success", "payment.failed", "payment.expired",
		"payment.late_success", "payment.reversed"]}`, &made)
	g.endpoint, g.secret = made.ID, made.Secret
	g.start()
	t.Cleanup(g.kill)
	if r.sweep != "" {
		g.cron()
	}
}

// environment is what every example is given.
func (g *guideShop) environment(port string) []string {
	return append(os.Environ(), "PORT="+port, "TILL_WEBHOOK_SECRET="+g.secret, "TILL_URL="+g.k.base(), "TILL_API_KEY="+g.k.key,
		"SHOP="+g.path, "SWEEP_SECONDS="+g.pause, "PYTHONDONTWRITEBYTECODE=1")
}

var listening = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// start starts the example and waits until it listens.
func (g *guideShop) start() {
	g.t.Helper()
	port := "0"
	if g.r.sweep != "" { // it cannot choose a free one itself
		_, port, _ = net.SplitHostPort(keptAddr(g.t))
	}
	before := len(g.printed())
	cmd := g.r.serve(g.t, g.program, port)
	cmd.Env, cmd.Stdout, cmd.Stderr = g.environment(port), g, g
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.cmd = cmd
	g.await("it listens", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.address = listening.FindString(g.out.String()[before:])
		return g.address != ""
	})
}

// kill ends the example without a word; all that it printed is there then.
func (g *guideShop) kill() {
	g.cmd.Process.Kill()
	g.cmd.Wait()
}

// cron runs the sweep of an example that does not do it by itself.
func (g *guideShop) cron() {
	pause, _ := time.ParseDuration(g.pause + "s")
	stop := make(chan struct{})
	g.done = make(chan struct{})
	g.t.Cleanup(func() {
		close(stop)
		<-g.done
	})
	go func() {
		defer close(g.done)
		for {
			cmd := exec.Command(g.program, g.r.sweep)
			cmd.Env, cmd.Stdout, cmd.Stderr = g.environment(""), g, g
			if err := cmd.Run(); err != nil {
				fmt.Fprintln(g, "sweep:", err)
			}
			select {
			case <-stop:
				return
			case <-time.After(pause):
			}
		}
	}()
}

// ServeHTTP is the network: a webhook arrives as often as copies says. One that
// is lost was answered all the same, as by a server with a fault.
func (g *guideShop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != g.hook { // another test's, to an endpoint that had this port before
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	g.mu.Lock()
	g.n++
	g.posts[r.Header.Get("webhook-id")]++
	n, address := g.copies(g.n), g.address
	g.mu.Unlock()
	status := http.StatusNoContent
	for range n {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, address+"/webhooks", bytes.NewReader(body))
		if err != nil {
			g.t.Error(err)
			return
		}
		req.Header = r.Header.Clone()
		res, err := http.DefaultClient.Do(req)
		if err != nil { // it was killed just now; the next attempt finds it
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		res.Body.Close()
		if status = res.StatusCode; status/100 != 2 {
			g.t.Errorf("%s refuses what Till sends: %s", g.name, res.Status)
		}
	}
	w.WriteHeader(status)
}

// await waits until something is so.
func (g *guideShop) await(what string, so func() bool) {
	g.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.t.Fatalf("%s: not %s\n%s", g.name, what, g.printed())
		}
	}
}
