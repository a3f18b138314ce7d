package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"till/internal/dev/loadgen"
)

// visitor is a person who is signed in to the console.
type visitor struct {
	origin  string
	client  string
	payment string // one of the merchant's
	cookie  *http.Cookie
	http    http.Client
}

// answer is what a page came with.
type answer struct {
	status int
	bytes  int64
	tag    string
}

// localhost is the server's address by the name that the console is served under.
func localhost(p *process) string {
	_, port, _ := net.SplitHostPort(p.addr)
	return "http://localhost:" + port
}

// serveConsole starts Till with its console on or off.
func (s *testbed) serveConsole(ctx context.Context, mode string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addr)
	return start(ctx, "till, console "+mode, addr, s.apiKey, filepath.Join(s.dir, "till.log"), s.in.program, "serve", "--role", "api", "--rate-limit", "0", "--test-quota", "0",
		"--listen", addr, "--admin-listen", "", "--database", s.url, "--secret-file", s.secretFile(), "--console", mode, "--base-url", "http://localhost:"+port+"/v1")
}

// newVisitors invites viewers of the merchant, who join with a password.
func (s *testbed) newVisitors(ctx context.Context, server *process, n int) (out []*visitor, err error) {
	st, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	client, err := s.client(ctx, st)
	st.Close()
	if err != nil {
		return nil, err
	}
	payment, err := server.onePayment(ctx)
	for i := 0; i < n && err == nil; i++ {
		v := &visitor{origin: localhost(server), client: client.ID.String(), payment: payment}
		v.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		v.http.Transport = &http.Transport{MaxIdleConnsPerHost: tabsPerPerson, DisableCompression: true}
		err = v.join(ctx, s, fmt.Sprintf("viewer%d@example.com", i))
		out = append(out, v)
	}
	return out, err
}

// onePayment returns the id of a payment that was paid.
func (p *process) onePayment(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr+"/v1/payments?limit=1&status=success", nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Api-Key", p.apiKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var list struct{ Items []struct{ ID string } }
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.Items) == 0 {
		return "", fmt.Errorf("no payment was paid (%v)", err)
	}
	return list.Items[0].ID, nil
}

// join spends an invitation.
func (v *visitor) join(ctx context.Context, s *testbed, login string) error {
	b, err := s.in.till(ctx, "person", "invite", "--client", v.client, "--role", "viewer", "--name", "Viewer", "--login", login, "--base-url", v.origin+"/v1", "--database", s.url, "--json")
	if err != nil {
		return err
	}
	var made struct{ Link string }
	if err := json.Unmarshal(b, &made); err != nil {
		return err
	}
	form := url.Values{"name": {"Viewer"}, "login": {login}, "password": {"quatre mots pour entrer"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, made.Link, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := v.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for _, c := range resp.Cookies() {
		if c.Name == "till" {
			v.cookie = c
			return nil
		}
	}
	return fmt.Errorf("the invitation does not let in: %s", resp.Status)
}

func (v *visitor) at(path string) string { return "/console/c/" + v.client + path }

// get asks for a page as a browser does, and reads it as it comes, compressed.
func (v *visitor) get(ctx context.Context, p *consolePage) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadgen.AnswerTime)
	defer cancel()
	resp, err := v.ask(ctx, p.path, map[string]string{"Accept-Encoding": "gzip", "Till-Region": p.region, "If-None-Match": p.tag})
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.status, a.tag = resp.StatusCode, resp.Header.Get("ETag")
	if a.bytes, err = io.Copy(io.Discard, resp.Body); err == nil && a.status != http.StatusOK && a.status != http.StatusNotModified {
		err = fmt.Errorf("%s is answered %s", p.path, resp.Status)
	}
	return a, err
}

// regionOf returns the region of a page as its script fetches it: from the address
// that the page names, which holds the moment that the page was made for.
func (v *visitor) regionOf(ctx context.Context, path, region string) (*consolePage, error) {
	resp, err := v.ask(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	_, after, _ := strings.Cut(string(b), `id="`+region+`"`)
	_, from, found := strings.Cut(after, `data-from="`)
	from, _, closed := strings.Cut(from, `"`)
	if !found || !closed {
		return nil, fmt.Errorf("%s has no region %s", path, region)
	}
	return &consolePage{path: html.UnescapeString(from), region: region}, nil
}

func (v *visitor) ask(ctx context.Context, path string, header map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.origin+path, nil)
	if err != nil {
		return nil, err
	}
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if v.cookie != nil {
		req.AddCookie(v.cookie)
	}
	return v.http.Do(req)
}

// tabs are open consoles: each listens, and fetches its region again at a hint.
type tabs struct {
	stop                      context.CancelFunc
	wait                      sync.WaitGroup
	hints, fetches, unchanged atomic.Int64
	failed                    atomic.Pointer[error]
}

// openTabs opens so many, half of them on the list and half on home, and
// returns when all listen.
func openTabs(ctx context.Context, people []*visitor, n int) (*tabs, error) {
	ctx, stop := context.WithCancel(ctx)
	t := &tabs{stop: stop}
	ready := make(chan error, n)
	for i := range n {
		v := people[i/tabsPerPerson]
		path, region := v.at("/payments"), "list"
		if i%2 == 1 {
			path, region = v.at("/home"), "home"
		}
		p, err := v.regionOf(ctx, path, region)
		if err != nil {
			return t, err
		}
		t.wait.Go(func() { t.listen(ctx, v, p, ready) })
	}
	for range n {
		if err := <-ready; err != nil {
			return t, err
		}
	}
	return t, nil
}

// listen reads the stream of one tab until the tabs are closed.
func (t *tabs) listen(ctx context.Context, v *visitor, p *consolePage, ready chan<- error) {
	resp, err := v.ask(ctx, v.at("/live"), map[string]string{"Accept": "text/event-stream"})
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the stream is answered %s", resp.Status)
	}
	if err != nil {
		ready <- err
		return
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for first := true; lines.Scan(); first = false {
		switch {
		case lines.Text() == "event: full":
			err = fmt.Errorf("too many listen")
		case lines.Text() == "event: hint":
			t.hints.Add(1)
			t.fetch(ctx, v, p)
		}
		if first {
			ready <- err
		}
	}
}

// fetch fetches the region once more.
func (t *tabs) fetch(ctx context.Context, v *visitor, p *consolePage) {
	a, err := v.get(ctx, p)
	if ctx.Err() != nil {
		return // the tab was closed meanwhile
	}
	if err != nil {
		t.failed.CompareAndSwap(nil, &err)
		return
	}
	t.fetches.Add(1)
	if a.status == http.StatusNotModified {
		t.unchanged.Add(1)
	}
	p.tag = a.tag
}

// close closes the tabs, and says what went wrong in one.
func (t *tabs) close() error {
	t.stop()
	ended := make(chan struct{})
	go func() { t.wait.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(stopTimeout):
		return fmt.Errorf("the tabs do not close")
	}
	if err := t.failed.Load(); err != nil {
		return *err
	}
	return nil
}
