package webhook

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"till"
)

// row is one line of a corpus.
type row struct{ first, url string }

func corpus(t *testing.T, path string) []row {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []row
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text := lines.Text(); text != "" && text[0] != '#' {
			first, url, _ := strings.Cut(text, " ")
			url = strings.NewReplacer(`\s`, " ", `\t`, "\t").Replace(strings.TrimSpace(url))
			rows = append(rows, row{first, url})
		}
	}
	return rows
}

// errNotReally ends a connection that the guard let pass, so that a test
// speaks to nobody.
var errNotReally = errors.New("let pass, and not made")

// watch notes every address that the sender is about to connect to, after the
// guard, and makes no connection.
func watch(s *Sender) (connected func() []string) {
	var mu sync.Mutex
	var seen []string
	gate := s.dialer.ControlContext
	s.dialer.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		if err := gate(ctx, network, address, c); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, address)
		return errNotReally
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// F57 and F58: nothing of the corpus is connected to, and each row is refused
// by the gate that it names.
func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	rows := corpus(t, "testdata/forbidden.txt")
	if len(rows) < 200 {
		t.Fatalf("the corpus has %d rows", len(rows))
	}
	z := openZone(t)
	s := NewSender(SenderConfig{Resolver: z.resolver()})
	defer s.Close()
	connected := watch(s)
	ctx := t.Context()
	for _, r := range rows {
		atText, atHTTPS := CheckURL(r.url, till.Test, Allowed{}), CheckURL(r.url, till.Live, Allowed{})
		switch r.first {
		case "redirect":
			continue // TestRedirectsAreNotFollowed
		case "text":
			checkRefusal(t, r.url, atText)
			checkRefusal(t, r.url, atHTTPS)
			checkRefusal(t, r.url, s.checkHost(ctx, r.url))
		case "https":
			checkRefusal(t, r.url, atHTTPS)
			if atText != nil {
				t.Errorf("%s is refused for a test client: %v", r.url, atText)
			}
			continue // the sender does not know clients
		case "name":
			if atText != nil {
				t.Errorf("%s is refused by its text, the corpus says by its name: %v", r.url, atText)
			}
			checkRefusal(t, r.url, s.checkHost(ctx, r.url))
		case "second", "dial":
			if err := s.checkHost(ctx, r.url); err != nil {
				t.Errorf("%s is refused at the first look already: %v", r.url, err)
			}
		default:
			t.Fatalf("the corpus has a gate %q", r.first)
		}
		if a := s.Post(ctx, r.url, Sign("e1", time.Now(), nil, NewSecret()), nil); a.Problem != ProblemAddressRefused || a.Delivered() {
			t.Errorf("%s: posting says %+v", r.url, a)
		}
	}
	if seen := connected(); len(seen) != 0 {
		t.Errorf("%d connections: %v", len(seen), seen)
	}
}

// The rows of the gate "dial" pass both checks of the name and are stopped at
// the literal address: without the last gate they would be connected to.
func TestOnlyTheLastGateStopsRebinding(t *testing.T) {
	t.Parallel()
	z := openZone(t)
	s := NewSender(SenderConfig{Resolver: z.resolver()})
	defer s.Close()
	s.dialer.ControlContext = func(context.Context, string, string, syscall.RawConn) error { return nil }
	connected := watch(s)
	for _, r := range corpus(t, "testdata/forbidden.txt") {
		if r.first == "dial" {
			_ = s.checkHost(t.Context(), r.url)
			s.Post(t.Context(), r.url, nil, nil)
		}
	}
	if n := len(connected()); n != 5 {
		t.Errorf("%d rows reach the last gate, want 5", n)
	}
}

// checkRefusal holds a refusal to the form that clients read, and to saying
// nothing of what it refused.
func checkRefusal(t *testing.T, url string, err error) {
	t.Helper()
	var e *till.Error
	if !errors.As(err, &e) || e.Code != till.CodeValidationFailed || len(e.Fields) != 1 || e.Fields[0].Pointer != "/url" {
		t.Errorf("%s: got %v, want a refusal of /url", url, err)
		return
	}
	f := e.Fields[0]
	switch f.Code {
	case till.FieldRequired, till.FieldInvalidFormat, till.FieldTooLong, till.FieldURLNotAllowed:
	default:
		t.Errorf("%s: the code is %q", url, f.Code)
	}
	if f.Detail == "" || strings.Contains(f.Detail, "lookup") || strings.Contains(f.Detail, "127.") {
		t.Errorf("%s: the detail is %q", url, f.Detail)
	}
}

func TestAllowedAddresses(t *testing.T) {
	t.Parallel()
	z := openZone(t)
	for _, r := range corpus(t, "testdata/allowed.txt") {
		s := NewSender(SenderConfig{Resolver: z.resolver()})
		connected := watch(s)
		mode := till.Live
		if strings.HasPrefix(r.url, "http:") {
			mode = till.Test
		}
		if err := CheckURL(r.url, mode, Allowed{}); err != nil {
			t.Errorf("%s: %v", r.url, err)
		}
		if err := s.checkHost(t.Context(), r.url); err != nil {
			t.Errorf("%s: %v", r.url, err)
		}
		s.Post(t.Context(), r.url, nil, nil)
		if seen := connected(); len(seen) == 0 || seen[0] != r.first && seen[len(seen)-1] != r.first {
			t.Errorf("%s: connected to %v, want %s", r.url, seen, r.first)
		}
		s.Close()
	}
}

func TestTheCodeNamesTheRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url  string
		code till.Code
		word string
	}{
		{"", till.FieldRequired, "address"},
		{"https://shop.example.com/" + strings.Repeat("a", 2048), till.FieldTooLong, "2048"},
		{"shop.example.com", till.FieldInvalidFormat, "absolute"},
		{"https://shop.example.com/a b", till.FieldInvalidFormat, "spaces"},
		{"https://shop.example.com/#a", till.FieldInvalidFormat, "fragment"},
		{"https://shop.example.com./", till.FieldInvalidFormat, "dot"},
		{"https://shop.example.com:25/", till.FieldURLNotAllowed, "port"},
		{"https://a:b@shop.example.com/", till.FieldURLNotAllowed, "password"},
		{"http://shop.example.com/", till.FieldURLNotAllowed, "https"},
		{"ftp://shop.example.com/", till.FieldURLNotAllowed, "https"},
		{"https://0x7f.1/", till.FieldInvalidFormat, "decimal"},
		{"https://10.0.0.1/", till.FieldURLNotAllowed, "network"},
		{"https://localhost/", till.FieldURLNotAllowed, "network"},
		{"https://db.internal/", till.FieldURLNotAllowed, "private"},
	} {
		err := CheckURL(c.url, till.Live, Allowed{})
		var e *till.Error
		if !errors.As(err, &e) || e.Fields[0].Code != c.code || !strings.Contains(e.Fields[0].Detail, c.word) {
			t.Errorf("%.60s: got %+v, want %s and the word %q", c.url, err, c.code, c.word)
		}
	}
}

func TestAllowedNetworks(t *testing.T) {
	t.Parallel()
	allow := func(texts ...string) Allowed {
		a, err := ParseAllowed(texts)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, c := range []struct {
		allow   Allowed
		addr    string
		allowed bool
	}{
		{allow("10.1.0.0/16"), "10.1.2.3", true},
		{allow("10.1.0.0/16"), "10.2.0.1", false},
		{allow("10.1.0.0/16"), "::ffff:10.1.2.3", true},
		{allow("10.1.0.0/16"), "127.0.0.1", false},
		{allow("10.1.0.5"), "10.1.0.5", true},
		{allow("10.1.0.5"), "10.1.0.6", false},
		{allow("::ffff:10.1.0.5"), "10.1.0.5", true},
		{allow("10.1.0.0/16, fd00:1::/64", "192.168.0.0/24"), "fd00:1::7", true},
		{allow("10.1.0.0/16, fd00:1::/64", "192.168.0.0/24"), "192.168.0.9", true},
		{allow("10.1.0.0/16, fd00:1::/64", "192.168.0.0/24"), "fd00:2::7", false},
		{allow(Loopback...), "127.0.0.1", true},
		{allow(Loopback...), "::1", true},
		{allow(Loopback...), "10.0.0.1", false},
		{allow(), "93.184.215.14", true},
		{allow("64:ff9b::/96"), "64:ff9b::5db8:d70e", true}, // the Internet behind NAT64
		{allow("64:ff9b::/96"), "64:ff9b::7f00:1", false},
		{allow("64:ff9b::/96"), "64:ff9b::a9fe:a9fe", false},
		{allow("64:ff9b::/96", "10.0.0.0/8"), "64:ff9b::a00:1", true},
	} {
		if got := c.allow.permits(netip.MustParseAddr(c.addr)); got != c.allowed {
			t.Errorf("%v permits %s: %v", c.allow.networks, c.addr, got)
		}
	}
	for _, bad := range []string{"10.1.2.3/16", "10.0.0.0/33", "ten", "10.0.0.0/8;", "fe80::1%eth0", "::ffff:10.0.0.0/104", "shop.example.com"} {
		if _, err := ParseAllowed([]string{bad}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	for url, a := range map[string]Allowed{
		"http://localhost:3000/hook": allow(Loopback...),
		"http://127.0.0.1:3000/hook": allow(Loopback...),
		"http://[::1]:3000/hook":     allow(Loopback...),
		"http://shop.internal/hook":  allow("10.0.0.0/8"),
		"http://shop/hook":           allow("10.0.0.0/8"),
	} {
		if err := CheckURL(url, till.Test, a); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if CheckURL("http://localhost:3000/", till.Test, allow("10.0.0.0/8")) == nil {
		t.Error("localhost is accepted where loopback is not allowed")
	}
}

// What listens on an address of this very machine trusts its neighbours.
func TestOwnAddressesAreRefused(t *testing.T) {
	t.Parallel()
	own := netip.MustParseAddr("93.184.215.14")
	g := newGuard(Allowed{})
	if len(g.own) == 0 {
		t.Error("this machine seems to have no address")
	}
	g.own[own] = true
	if g.permits(own) || g.permits(netip.MustParseAddr("::ffff:93.184.215.14")) {
		t.Error("an address of this machine is permitted")
	}
	g.allow, _ = ParseAllowed([]string{"93.184.215.14"})
	if !g.permits(own) {
		t.Error("an address of this machine that is allowed is refused")
	}
}

// A name that does not resolve now, or whose servers are silent, is accepted:
// what it stands for is looked at again before each connection.
func TestANameThatDoesNotResolveIsAccepted(t *testing.T) {
	t.Parallel()
	z := openZone(t)
	s := NewSender(SenderConfig{Resolver: z.resolver()})
	if err := s.checkHost(t.Context(), "https://nowhere.example.com/"); err != nil {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.checkHost(ctx, "https://nowhere.example.com/"); !errors.Is(err, context.Canceled) {
		t.Errorf("whoever went away gets %v", err)
	}
	quiet := openZone(t)
	quiet.silent = true
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := NewSender(SenderConfig{Resolver: quiet.resolver()})
		if err := s.checkHost(t.Context(), "https://shop.example.com/"); err != nil || time.Since(start) != checkTimeout {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
		time.Sleep(time.Minute) // the resolver gives up later than we do
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var location string
	var hits int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		w.Header()["Location"] = []string{location}
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	allow, err := ParseAllowed(Loopback)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSender(SenderConfig{Allow: allow, Resolver: openZone(t).resolver()})
	defer s.Close()
	connections := map[string]bool{}
	gate := s.dialer.ControlContext
	s.dialer.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		connections[address] = true
		return gate(ctx, network, address, c)
	}
	rows := 0
	for _, r := range corpus(t, "testdata/forbidden.txt") {
		if r.first != "redirect" {
			continue
		}
		rows++
		location = r.url
		a := s.Post(t.Context(), server.URL+"/hook", nil, []byte("{}"))
		if a.Status != http.StatusTemporaryRedirect || a.Problem != ProblemRedirect || a.Delivered() {
			t.Errorf("to %q: got %+v", r.url, a)
		}
	}
	if rows == 0 || hits != rows || len(connections) != 1 {
		t.Errorf("%d redirects made %d requests, over connections to %v", rows, hits, connections)
	}
}

func FuzzCheckURL(f *testing.F) {
	f.Add("https://shop.example.com/hook")
	f.Add("https://[::1]:80/")
	f.Add("http://0x7f.1")
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := parseURL(raw, Allowed{})
		if err != nil {
			checkRefusal(t, raw, err)
			return
		}
		// What is accepted is read the same by everybody: a plain name with a
		// dot, or an address of the Internet.
		host := u.Hostname()
		if a, err := netip.ParseAddr(host); err == nil {
			if !(Allowed{}).permits(a) {
				t.Errorf("%q leads to %s", raw, a)
			}
			return
		}
		if strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || !strings.Contains(host, ".") {
			t.Errorf("%q has the host %q", raw, host)
		}
		if !strings.HasPrefix(strings.ToLower(raw), u.Scheme+"://"+strings.ToLower(u.Host)) {
			t.Errorf("%q is read as %q", raw, u.Host)
		}
	})
}
