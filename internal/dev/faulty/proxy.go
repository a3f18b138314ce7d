package faulty

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The limits of the proxy.
const (
	maxBody    = 32 << 20
	maxSeen    = 100_000         // requests that are kept
	mostWait   = 2 * time.Minute // of the service
	hangsUntil = 5 * time.Minute // if the client does not give up before
)

// Proxy forwards requests to a service, with faults by its rules. It is an http.Handler.
type Proxy struct {
	target *url.URL
	client *http.Client

	mu     sync.Mutex
	random *rand.Rand
	rules  []*rule
	seen   []Seen

	keepBodies bool
}

// rule is a Rule and how many requests have matched it.
type rule struct {
	Rule
	count int
}

// Seen is a request that was received.
type Seen struct {
	At     time.Time
	Method string
	Path   string // with its query
	Body   []byte // nil, unless KeepBodies was called
	Fault  Fault  // "" if none
	Status int    // the service's answer; 0 if it was not called
}

// New returns a proxy to a service, such as http://127.0.0.1:8080. The same seed makes the
// same choices for the same requests.
func New(target string, seed uint64, rules ...Rule) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no address of a service", target)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	p := &Proxy{
		target: u, random: rand.New(rand.NewPCG(seed, seed)),
		client: &http.Client{
			Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	return p, p.SetRules(rules...)
}

// SetRules replaces the rules and resets their counts.
func (p *Proxy) SetRules(rules ...Rule) error {
	var fresh []*rule
	for _, r := range rules {
		if err := r.Check(); err != nil {
			return err
		}
		fresh = append(fresh, &rule{Rule: r})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = fresh
	return nil
}

// Seen returns the requests that were received so far.
func (p *Proxy) Seen() []Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Seen(nil), p.seen...)
}

// KeepBodies keeps the bodies of requests for Seen. They are many and may be large.
func (p *Proxy) KeepBodies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keepBodies = true
}

// Close closes the idle connections to the service.
func (p *Proxy) Close() { p.client.CloseIdleConnections() }

// choose records a request and returns the first rule that applies to it, nil if none does.
// Each rule counts the requests that match it.
func (p *Proxy) choose(r *http.Request, body []byte) (*Rule, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var chosen *Rule
	for _, rule := range p.rules {
		if !rule.matches(r.Method, r.URL.Path) {
			continue
		}
		rule.count++
		switch {
		case chosen != nil, rule.Nth != 0 && rule.count != rule.Nth, rule.First != 0 && rule.count > rule.First:
		case rule.Share != 0 && p.random.Float64() >= rule.Share:
		default:
			chosen = &rule.Rule
		}
	}
	seen := Seen{At: time.Now(), Method: r.Method, Path: r.URL.RequestURI()}
	if p.keepBodies {
		seen.Body = body
	}
	if chosen != nil {
		seen.Fault = chosen.Do
	}
	if len(p.seen) < maxSeen {
		p.seen = append(p.seen, seen)
	}
	return chosen, len(p.seen) - 1
}

// answer is the service's answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	rule, n := p.choose(r, body)
	if rule == nil {
		rule = &Rule{}
	}
	switch rule.Do {
	case LoseRequest:
		drop(w, false)
		return
	case Hang:
		wait(r.Context(), hangsUntil)
		return
	case Slow:
		wait(r.Context(), time.Duration(rule.Wait))
	case Status:
		write(w, rule.answer())
		return
	case Redirect:
		write(w, answer{status: http.StatusTemporaryRedirect, header: http.Header{"Location": {"https://elsewhere.invalid/" + r.URL.Path}}})
		return
	case Repeat:
		_, _ = p.forward(r, body, n)
	}
	a, err := p.forward(r, body, n)
	if err != nil {
		drop(w, false) // the service is unavailable, so the proxy is too
		return
	}
	p.back(w, r, rule, a)
}

// back returns an answer to the client, or what a rule leaves of it.
func (p *Proxy) back(w http.ResponseWriter, r *http.Request, rule *Rule, a answer) {
	switch rule.Do {
	case LoseAnswer, Reset:
		drop(w, rule.Do == Reset)
		return
	case HangAnswer:
		wait(r.Context(), hangsUntil)
		return
	case SlowAnswer:
		wait(r.Context(), time.Duration(rule.Wait))
	case StatusAfter:
		a = rule.answer()
	case Rewrite:
		a.body = bytes.ReplaceAll(a.body, []byte(rule.From), []byte(rule.To))
	case SetHeader:
		for name, value := range rule.Header {
			a.header.Set(name, value)
		}
	case Cut:
		cut(w, a)
		return
	}
	write(w, a)
}

// answer returns the answer that a rule invents.
func (r *Rule) answer() answer {
	a := answer{status: r.Status, header: http.Header{}, body: []byte(r.Body)}
	for name, value := range r.Header {
		if after, ok := strings.CutPrefix(value, "date+"); ok {
			d, _ := time.ParseDuration(after)
			value = time.Now().Add(d).UTC().Format(http.TimeFormat)
		}
		a.header.Set(name, value)
	}
	if a.header.Get("Content-Type") == "" {
		a.header.Set("Content-Type", "text/html")
	}
	if r.Body == "" {
		a.body = fmt.Appendf(nil, "<html><body><h1>%d %s</h1></body></html>\n", r.Status, http.StatusText(r.Status))
	}
	return a
}

// onThisMachine reports whether a service is on this machine, where the name in the
// address is only a name.
func onThisMachine(u *url.URL) bool {
	a, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && a.IsLoopback()
}

// forward calls the service. It goes on if the client disconnects.
func (p *Proxy) forward(r *http.Request, body []byte, n int) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), mostWait)
	defer cancel()
	u := *p.target
	u.Path += r.URL.Path
	u.RawPath, u.RawQuery = "", r.URL.RawQuery
	req, err := http.NewRequestWithContext(ctx, r.Method, u.String(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Connection")
	if onThisMachine(p.target) {
		req.Host = r.Host // the service distinguishes its own name from one that a page of another site has pointed here
	}
	res, err := p.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	p.mu.Lock()
	defer p.mu.Unlock()
	if n < len(p.seen) {
		p.seen[n].Status = res.StatusCode
	}
	return answer{res.StatusCode, res.Header, text}, err
}

// hopByHop are headers of one connection.
var hopByHop = []string{"Connection", "Content-Length", "Transfer-Encoding", "Keep-Alive"}

func write(w http.ResponseWriter, a answer) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	for _, name := range hopByHop {
		w.Header().Del(name)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// drop closes the connection without an answer; with reset, by a reset.
func drop(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// cut announces an answer and sends half of it.
func cut(w http.ResponseWriter, a answer) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	a.header.Set("Content-Length", strconv.Itoa(len(a.body)))
	fmt.Fprintf(buffered, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	_ = a.header.Write(buffered)
	_, _ = buffered.WriteString("\r\n")
	_, _ = buffered.Write(a.body[:len(a.body)/2])
	_ = buffered.Flush()
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
