package main

import (
	"bytes"
	"context"
	"encoding/json"
	"go/format"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"till/api"
	"till/store/storetest"
)

// pageProgram runs a program of docs/_examples in a folder of its own.
type pageProgram struct {
	file    string
	prepare func(t *testing.T, dir, source string)
	command []string
}

var pagePrograms = []pageProgram{
	{"calls.sh", nil, []string{"bash", "calls.sh"}},
	{"calls.go.txt", func(t *testing.T, dir, source string) {
		text, err := os.ReadFile(filepath.Join(dir, "calls.go.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if tidy, err := format.Source(text); err != nil || !bytes.Equal(tidy, text) {
			t.Errorf("gofmt would change calls.go.txt (%v)", err)
		}
		writeFile(t, filepath.Join(dir, "main.go"), string(text))
		writeFile(t, filepath.Join(dir, "go.mod"), "module calls\ngo 1.26.0\nrequire github.com/till-project/till/sdk/go v0.1.0\nreplace github.com/till-project/till/sdk/go => "+source+"/sdk/go\n")
	}, []string{"go", "run", "."}},
	{"calls.mjs", func(t *testing.T, dir, source string) {
		buildTypeScript(t, source)
		if err := os.Mkdir(filepath.Join(dir, "node_modules"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(source, "sdk/typescript"), filepath.Join(dir, "node_modules/till-sdk")); err != nil {
			t.Fatal(err)
		}
	}, []string{"node", "calls.mjs"}},
	{"calls.php", func(t *testing.T, dir, source string) {
		if err := os.Mkdir(filepath.Join(dir, "vendor"), 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "vendor/autoload.php"), "<?php require '"+source+"/sdk/php/src/autoload.php';\n")
	}, []string{"php", "calls.php"}},
	{"calls.py", nil, []string{"python3", "calls.py"}},
}

// The pages of the reference show each call in five languages. Each program runs
// against a real service, and makes every call of the API once at least.
func TestEveryCallOfThePagesRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it runs programs in five languages")
	}
	t.Parallel()
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	base, key := pageService(t)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(shop.Close)
	for _, p := range pagePrograms {
		t.Run(p.file, func(t *testing.T) {
			t.Parallel()
			storetest.Program(t, p.command[0])
			dir := t.TempDir()
			text, err := os.ReadFile(filepath.Join(source, "docs/_examples", p.file))
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, p.file), string(text))
			if p.prepare != nil {
				p.prepare(t, dir, source)
			}
			seen := newCallRecorder(t, base)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "TILL_BASE_URL="+seen.base, "TILL_API_KEY="+key, "SHOP_URL="+shop.URL, "SOURCE="+source, "PYTHONPATH="+filepath.Join(source, "sdk/python"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			seen.check(t, p.file == "calls.sh")
		})
	}
}

// The pages show a receiver of webhooks in four languages. Each one acts once on a
// payment, also if its events are sent again.
func TestEveryReceiverOfThePagesActsOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("make quick leaves it out: it runs programs in four languages")
	}
	t.Parallel()
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	base, key := pageService(t)
	for _, p := range pagePrograms[1:] {
		p.file = strings.Replace(p.file, "calls", "receive", 1)
		t.Run(p.file, func(t *testing.T) {
			t.Parallel()
			storetest.Program(t, p.command[0])
			dir := t.TempDir()
			text, err := os.ReadFile(filepath.Join(source, "docs/_examples", p.file))
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, strings.Replace(p.file, "receive", "calls", 1)), string(text))
			if p.prepare != nil {
				p.prepare(t, dir, source)
			}
			port := (&guide{t: t, ports: map[string]string{}}).port(p.file)
			if p.command[0] == "php" {
				p.command = []string{"php", "-S", "127.0.0.1:" + port, "calls.php"}
			}
			const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
			out := &lines{}
			cmd := exec.Command(p.command[0], p.command[1:]...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
			cmd.Env = append(os.Environ(), "TILL_BASE_URL="+base, "TILL_API_KEY="+key, "TILL_WEBHOOK_SECRET="+secret, "PORT="+port, "SOURCE="+source, "PYTHONPATH="+filepath.Join(source, "sdk/python"))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run has a child
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); cmd.Wait() }()
			front, taken := countTaken(t, port, p.file)
			var endpoint struct{ ID string }
			askPage(t, base, key, http.MethodPost, "/webhook-endpoints", `{"url": "`+front+`/till", "events": ["*"], "secret": "`+secret+`"}`, &endpoint)
			askPage(t, base, key, http.MethodPost, "/payments", `{"method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"},
				"customer": {"phone": "242061234567"}, "reference": "`+p.file+`", "idempotency_key": "`+newUUID().String()+`"}`, nil)
			want, until := "ship: "+p.file, time.Now().Add(time.Minute)
			for !strings.Contains(out.String(), want) {
				if time.Now().After(until) {
					t.Fatalf("it never ships: %s", out)
				}
				time.Sleep(50 * time.Millisecond)
			}
			askPage(t, base, key, http.MethodPost, "/webhook-endpoints/"+endpoint.ID+"/replay", `{"from_sequence": 1}`, nil)
			for taken.Load() < 2 {
				if time.Now().After(until) {
					t.Fatalf("the success is taken %d times: %s", taken.Load(), out)
				}
				time.Sleep(50 * time.Millisecond)
			}
			if n := strings.Count(out.String(), want); n != 1 {
				t.Errorf("it ships %d times: %s", n, out)
			}
		})
	}
}

// countTaken is in front of a receiver and counts how often it takes the success of a
// payment, by answering with a 2xx.
func countTaken(t *testing.T, port, reference string) (string, *atomic.Int64) {
	t.Helper()
	var taken atomic.Int64
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			body, err := io.ReadAll(p.In.Body)
			if err != nil {
				t.Error(err)
			}
			p.Out.Body = io.NopCloser(bytes.NewReader(body))
			p.Out.URL.Scheme, p.Out.URL.Host = "http", "127.0.0.1:"+port
			if bytes.Contains(body, []byte(`"type":"payment.success"`)) && bytes.Contains(body, []byte(`"reference":"`+reference+`"`)) {
				p.Out.Header.Set("X-Success", "1")
			}
		},
		ModifyResponse: func(res *http.Response) error {
			if res.StatusCode < 300 && res.Request.Header.Get("X-Success") != "" {
				taken.Add(1)
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0), // the receiver may not have started yet
	})
	t.Cleanup(server.Close)
	return server.URL, &taken
}

// askPage makes a request that must succeed.
func askPage(t *testing.T, base, key, verb, path, body string, answer any) {
	t.Helper()
	r, err := http.NewRequest(verb, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatal(path, res.StatusCode, string(text), err)
	}
	if answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			t.Fatal(err)
		}
	}
}

// pageService starts a service and returns its address and a key with every scope.
func pageService(t *testing.T, flags ...string) (base, key string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	dir, out, log, ended := t.TempDir(), &lines{}, &lines{}, make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"dev", "--json", "--data", dir, "--listen", "127.0.0.1:0"}, flags...), out, log)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	var ready struct {
		BaseURL  string `json:"base_url"`
		ClientID string `json:"client_id"`
	}
	for until := time.Now().Add(30 * time.Second); json.Unmarshal([]byte(out.String()), &ready) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the service did not start: %s%s", out, log)
		}
	}
	var made bytes.Buffer
	if code := run(ctx, []string{"key", "create", "--json", "--client", ready.ClientID, "--database", filepath.Join(dir, "till.db"),
		"--scopes", "payments:read,payments:write,payouts:read,payouts:write,refunds:write,wallets:read,webhooks:manage,keys:manage"}, &made, log); code != 0 {
		t.Fatalf("no key: %s%s", &made, log)
	}
	var answer struct {
		APIKey string `json:"api_key"`
	}
	if err := json.Unmarshal(made.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	return ready.BaseURL, answer.APIKey
}

// The type of a problem is the address of the page about its code, unless the
// pages are off.
func TestTheTypeOfAProblemIsItsPage(t *testing.T) {
	t.Parallel()
	read := func(address string) (int, string) {
		res, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	problem := func(base string) (p struct{ Type, Code string }) {
		_, text := read(base + "/payments")
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Code != "missing_api_key" {
			t.Fatal(text, err)
		}
		return p
	}
	base, _ := pageService(t)
	p := problem(base)
	if status, page := read(p.Type); status != http.StatusOK || !strings.Contains(page, "<h1>missing_api_key</h1>") {
		t.Errorf("%s answers %d: %s", p.Type, status, page)
	}
	base, _ = pageService(t, "--docs=false")
	if p := problem(base); p.Type != "about:blank" {
		t.Errorf("without pages the type is %s", p.Type)
	}
	if status, _ := read(strings.TrimSuffix(base, "v1") + "docs/"); status != http.StatusNotFound {
		t.Errorf("pages that are off answer %d", status)
	}
}

// callRecorder stands between a program and the service and notes what succeeds.
type callRecorder struct {
	base string
	mu   sync.Mutex
	good []string
}

func newCallRecorder(t *testing.T, base string) *callRecorder {
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	r := &callRecorder{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = to.Scheme, to.Host },
		ModifyResponse: func(res *http.Response) error {
			if res.StatusCode < 300 {
				r.mu.Lock()
				r.good = append(r.good, res.Request.Method+" "+res.Request.URL.Path)
				r.mu.Unlock()
			}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	r.base = server.URL + "/v1"
	return r
}

var pathParameter = regexp.MustCompile(`\\\{[a-z_]+\\\}`)

// check fails for a call of the API that did not succeed.
func (r *callRecorder) check(t *testing.T, alsoOpen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := "\n" + strings.Join(r.good, "\n") + "\n"
	for _, route := range api.Routes {
		if strings.HasPrefix(route.Path, "/callbacks/") || route.Open && !alsoOpen {
			continue // operators make these, and people read the document
		}
		path := pathParameter.ReplaceAllString(regexp.QuoteMeta(route.Path), `[^/\n]+`)
		if !regexp.MustCompile("\n" + route.Method + " /v1" + path + "\n").MatchString(all) {
			t.Errorf("%s %s was never answered with success", route.Method, route.Path)
		}
	}
}

var typescriptBuild sync.Mutex

// buildTypeScript builds the SDK for TypeScript if nobody has.
func buildTypeScript(t *testing.T, source string) {
	t.Helper()
	typescriptBuild.Lock()
	defer typescriptBuild.Unlock()
	if _, err := os.Stat(filepath.Join(source, "sdk/typescript/dist/src/index.js")); err == nil {
		return
	}
	cmd := exec.Command("bash", "-c", "npm ci && npm run build")
	cmd.Dir = filepath.Join(source, "sdk/typescript")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
