package till_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// outbound are the places that open connections of their own, and why none of
// them lets a client choose where to, but for the one that has the guard. A
// new place breaks the test until somebody has thought about it.
var outbound = map[string]string{
	"webhook/sender.go: net.Dialer":                  "the guarded dialer",
	"webhook/sender.go: http.Transport":              "uses the guarded dialer, no proxy, and follows no redirect",
	"provider/sandbox/callback.go: http.Client":      "the sandbox calls the address that this program gave it",
	"provider/sandbox/callback.go: http.Transport":   "the same",
	"provider/wire/wire.go: http.Client":             "adapters, to the operators that the configuration names; no redirect",
	"provider/wire/wire.go: http.Transport":          "the same",
	"provider/wire/wire.go: net.Dialer":              "the same",
	"backup/bucket.go: http.Client":                  "to the object storage that the command line and the environment name; no redirect",
	"backup/bucket.go: http.Transport":               "the same",
	"internal/trace/sender.go: http.Client":          "to the collector of traces that the command line or the environment names; no redirect",
	"internal/trace/sender.go: http.Transport":       "the same",
	"certificates/acme.go: http.Client":              "to the certificate authority that the command line names; no redirect",
	"certificates/acme.go: http.Transport":           "the same",
	"internal/acmetest/challenge.go: http.Client":    "a test's own authority, to the service under test",
	"internal/acmetest/challenge.go: http.Transport": "the same",
	"internal/acmetest/challenge.go: net.Dialer":     "the same",
	"internal/acmetest/challenge.go: tls.Dialer":     "the same",
	"cmd/till/health.go: http.Client":                "till health, to the server on its command line",
	"cmd/till/top.go: http.Client":                   "till top and till doctor --bundle, to the server on its command line",
	"provider/simulator/callback.go: http.Client":    "a simulated operator calls the address that it was given, on a developer's machine",
	"provider/simulator/callback.go: http.Transport": "the same",
	"bench/operator.go: http.Client":                 "a benchmark calls the operator that it started, on loopback",
	"bench/operator.go: http.Transport":              "the same",
	"internal/db/postgres/deadline.go: net.Dialer":   "to the database on the command line",
	"internal/db/pgtest/proxy.go: net.Dial":          "a test's own server",
	"internal/dev/faulty/proxy.go: http.Client":      "a proxy on a developer's machine, to the service on its command line",
	"internal/dev/faulty/proxy.go: http.Transport":   "the same",
	"internal/dev/remote/client.go: http.Client":     "commands, to the service on their command line",
	"internal/dev/remote/client.go: http.Transport":  "the same",
	"internal/dev/rehearse/run.go: net.Dialer":       "till webhook check, to the handler on its command line; to this machine only, unless told otherwise",
	"internal/dev/rehearse/run.go: http.Client":      "the same; follows no redirect",
	"internal/dev/rehearse/run.go: http.Transport":   "the same",
	"internal/dev/loadgen/closed.go: net.Dialer":     "till bench, to the address on its command line",
	"internal/dev/loadgen/open.go: net.Dialer":       "the same",
	"internal/dev/loadgen/open.go: tls.Dialer":       "the same",
	"internal/dev/loadgen/flood.go: net.Dialer":      "the benchmark, to the server that it started, on loopback",
	"bench/floods.go: http.Client":                   "the same",
	"bench/floods.go: http.Transport":                "the same",
	"bench/lists.go: http.DefaultClient":             "the benchmark, to the server that it started",
	"bench/mtn.go: http.DefaultClient":               "the same",
	"bench/process.go: http.DefaultClient":           "the same",
	"bench/pages.go: http.Client":                    "the same",
	"bench/pages.go: http.Transport":                 "the same",
	"bench/console_visitor.go: http.Client":          "the same",
	"bench/console_visitor.go: http.Transport":       "the same",
	"bench/console_visitor.go: http.DefaultClient":   "the same",
	"bench/receiver.go: http.DefaultClient":          "the same",
	"bench/webhook_baseline.go: http.Client":         "the benchmark, to the receiver of webhooks that it started, on loopback",
	"bench/webhook_baseline.go: http.Transport":      "the same",
}

// dials are the names, by import path, through which a connection is opened.
var dials = map[string][]string{
	"net/http":          {"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
	"net":               {"Dialer", "Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP"},
	"crypto/tls":        {"Dialer", "Dial", "DialWithDialer"},
	"net/rpc":           {"Dial", "DialHTTP"},
	"net/smtp":          {"Dial", "SendMail"},
	"net/http/httputil": {"ReverseProxy", "NewSingleHostReverseProxy"},
}

// dialled returns the names of dials that a file uses, as package.Name. A type
// that is only pointed at, as in a parameter, opens nothing.
func dialled(f *ast.File) []string {
	imported := map[string]string{} // name in the file: import path
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if dials[path] == nil {
			continue
		}
		name := map[string]string{"net/http": "http", "crypto/tls": "tls", "net/rpc": "rpc", "net/smtp": "smtp", "net/http/httputil": "httputil"}[path]
		if i.Name != nil {
			name = i.Name.Name
		} else if name == "" {
			name = path
		}
		imported[name] = path
	}
	var found []string
	pointed := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr:
			pointed[n.X] = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && !pointed[n] && slices.Contains(dials[imported[x.Name]], n.Sel.Name) {
				found = append(found, x.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// F58: every way out of the program is known, so that no second client stands
// beside the guarded one.
func TestEveryOutboundConnectionIsKnown(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, files := range sources(t) {
		for _, s := range files {
			f, err := parser.ParseFile(token.NewFileSet(), s.path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range dialled(f) {
				place := s.path + ": " + name
				used[place] = true
				if outbound[place] == "" {
					t.Errorf("%s opens connections: may a client choose where to? Use webhook.Sender, or add it to the list with the reason", place)
				}
			}
		}
	}
	for place := range outbound {
		if !used[place] {
			t.Errorf("%s is on the list and is there no more", place)
		}
	}
}

// The test itself: it finds what it looks for, under any name.
func TestOutboundConnectionsAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`import "net/http"; var c = &http.Client{}`:                           "[http.Client]",
		`import "net/http"; var c = new(http.Transport)`:                      "[http.Transport]",
		`import "net/http"; var c http.Client`:                                "[http.Client]",
		`import "net/http"; func f() { http.Get("x") }`:                       "[http.Get]",
		`import "net/http"; func f() { http.DefaultClient.Do(nil) }`:          "[http.DefaultClient]",
		`import web "net/http"; func f() { web.Post("x", "y", nil) }`:         "[web.Post]",
		`import "net"; var d net.Dialer`:                                      "[net.Dialer]",
		`import "net"; func f() { net.Dial("tcp", "x") }`:                     "[net.Dial]",
		`import "net/http"; func f(c *http.Client, r *http.Request) {}`:       "[]",
		`import http "example.com/other"; var c http.Client`:                  "[]",
		`import "net/http"; func f(w http.ResponseWriter) { _ = w }`:          "[]",
		`import "crypto/tls"; func f() { tls.Dial("tcp", "x", nil) }`:         "[tls.Dial]",
		`import "net/http"; var c = http.Client{Transport: http.Transport{}}`: "[http.Client http.Transport]",
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(dialled(f)); got != want {
			t.Errorf("%s: found %s, want %s", text, got, want)
		}
	}
}
