package till_test

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// packageRule says what a package may import beside the standard library: our
// own packages, by folder, and other people's modules.
type packageRule struct {
	folder string
	ours   string
	others string
}

const (
	root = "." // package till, which everybody may import

	jsonModule   = "github.com/go-json-experiment/json"
	sqliteModule = "modernc.org/sqlite"
	pgModule     = "github.com/jackc/pgx/v5"
)

// packageRules lists every package, bottom up. A package imports only packages
// that are above it in this list, and only those that its rule names. A new
// package fails the test until it has a rule.
var packageRules = []packageRule{
	{root, "", ""}, // the vocabulary: standard library only
	{"meter", "", "github.com/prometheus/client_golang"}, // what is counted; nobody else knows Prometheus
	{"internal/batch", "", ""},
	{"internal/loop", "", ""},
	{"internal/trace", ". internal/loop", "google.golang.org/protobuf"},   // what happened to single payments; nobody else knows OpenTelemetry
	{"internal/quota", root, ""},                                          // bytes that are held, of clients
	{"internal/limit", "", ""},                                            // how often and how much at once, of anything
	{"internal/door", "", "golang.org/x/time"},                            // what the API and the console share where strangers come in
	{"internal/dev/loadgen", "", ""},                                      // a client like any other: it knows the API, not the code
	{"internal/nearest", "", ""},                                          // the word that was meant
	{"internal/jsonx", "internal/nearest", jsonModule},                    // the one strict JSON decoder
	{"internal/request", ". internal/jsonx internal/nearest", jsonModule}, // what the bodies of create calls have alike; they keep their words as written
	{"internal/escape", "", ""},                                           // text that is shown
	{"internal/dev/faulty", "", ""},                                       // a proxy with bad habits: it knows HTTP and nothing of Till
	{"internal/testport", "", ""},                                         // addresses for servers that tests start again
	{"internal/acmetest", "", ""},                                         // a certificate authority for tests; it knows nothing of Till
	{"internal/qrcode", "", "rsc.io/qr"},                                  // for pages and terminals
	{"internal/seal", "", ""},                                             // what the database keeps and must not know
	{"internal/system", "", "golang.org/x/sys"},                           // what operating systems do differently
	{"ledger", root, ""},
	{"provider", root, ""},
	{"provider/providertest", ". provider", ""},
	{"provider/wire", "provider", ""}, // what adapters share of HTTP and JSON
	{"provider/simulator", "", ""},    // what simulated operators share; it knows nothing of Till
	{"provider/mtnmomo", ". provider provider/wire provider/simulator", ""},
	{"provider/airtel", ". provider provider/wire provider/simulator", ""},
	{"provider/pawapay", ". provider provider/wire provider/simulator", ""},
	{"provider/mpesa", ". provider provider/wire provider/simulator", ""},
	{"provider/sandbox", ". provider internal/system", sqliteModule + " " + pgModule}, // an operator has a book of its own, never Till's
	{"internal/db", root, ""},                                                         // transactions, whatever the engine
	{"internal/db/dbfault", "internal/db", ""},                                        // lets any step fail, for tests; nothing that serves uses it
	{"internal/db/sqlite", ". internal/db internal/system", sqliteModule + " modernc.org/libc"},
	{"internal/db/postgres", ". internal/db internal/system", pgModule},
	{"internal/hint", root, pgModule},   // a client's event log has grown: pgx for NOTIFY
	{"store/schema", "internal/db", ""}, // the migrations and their runner
	{"store", ". ledger internal/db internal/db/sqlite internal/db/postgres internal/hint internal/seal store/schema", ""},
	{"store/access", ". store internal/db", ""},
	{"store/refunds", ". store internal/db", ""},
	{"store/flows", ". store internal/db", ""},
	{"store/checkouts", ". store internal/db", ""},
	{"store/admin", ". store store/schema internal/db", ""},
	{"store/auditlog", ". store internal/db", ""},
	{"store/matching", ". ledger store internal/db", ""},
	{"store/lookup", ". ledger store internal/request internal/seal internal/db", ""},
	{"store/webhooks", ". store internal/db", ""},
	{"store/proof", ". ledger store store/webhooks internal/db", ""},
	{"internal/logs", ". store", ""},                      // the log: masked, counted, kept
	{"internal/db/pgtest", "internal/testport", pgModule}, // a PostgreSQL server of a test's own
	{"internal/db/pgtest/withpg", "internal/db/pgtest", ""},
	{"engine", ". ledger provider store store/admin store/flows store/matching internal/batch internal/limit internal/loop internal/request internal/quota internal/seal", ""}, // a change of payments or payouts keeps the wallets in step
	{"collect", ". ledger provider store store/flows store/refunds store/admin store/lookup store/matching engine internal/jsonx internal/request", jsonModule},                // a body keeps its numbers as written
	{"payout", ". ledger provider store store/refunds store/admin engine internal/request", ""},
	{"checkout", ". store store/access store/checkouts engine collect internal/loop internal/request internal/seal", ""}, // orders that customers pay on a page
	{"config", root, "github.com/BurntSushi/toml"}, // the file of connections and routes: TOML, with the adapters' own keys
	{"account", ". store store/access store/auditlog internal/limit", ""},
	{"people", ". store store/access internal/door internal/limit internal/seal", "github.com/go-webauthn/webauthn golang.org/x/crypto"},                 // who may use the console
	{"tokens", ". provider store store/admin internal/seal", ""},                                                                                         // what operators let all instances in by
	{"certificates", ". store store/admin internal/seal", "golang.org/x/crypto"},                                                                         // what the service proves its name with; ACME
	{"webhook", ". store store/auditlog store/webhooks internal/batch internal/loop internal/quota internal/seal internal/nearest", "code.dny.dev/ssrf"}, // the list of networks that are not the Internet
	{"internal/dev/remote", root, ""},                                                                                                                    // a client like any other, for commands without a database
	{"internal/dev/relay", ". webhook internal/dev/remote internal/system", ""},                                                                          // signs and posts as webhook does
	{"internal/dev/rehearse", ". webhook", ""},                                                                                                           // signs as webhook does, wrongly too
	{"internal/dev/trigger", ". internal/dev/remote", ""},                                                                                                // the sandbox's stories, as a client plays them
	{"journal", ". store engine internal/loop internal/seal internal/system", ""},                                                                        // creates, outside of the database
	{"books", ". ledger store store/checkouts store/refunds store/admin store/auditlog store/matching store/proof store/webhooks engine collect internal/loop internal/jsonx internal/seal", ""}, // a statement's lines are JSON, written by hand
	{"reconcile", ". books engine store store/admin store/matching", ""},
	{"recovery", ". books collect engine journal ledger payout store store/refunds store/access store/admin store/lookup store/matching store/proof", ""},
	{"privacy", ". engine internal/request store store/checkouts store/refunds store/lookup", ""},
	{"upkeep", ". books internal/jsonx internal/loop internal/seal store store/access store/admin store/lookup store/proof store/webhooks", ""},
	{"story", ". books engine ledger store store/admin store/auditlog store/lookup store/refunds", ""},
	{"backup", ". store store/admin books recovery internal/system", "filippo.io/age"},                                                                                                         // copies of the database, and the way back
	{"store/storetest", ". provider store store/refunds store/schema store/admin store/auditlog internal/db engine collect payout books upkeep internal/jsonx", sqliteModule + " " + pgModule}, // goes past the store, to break it
	{"internal/watch", ". store", ""}, // who waits for a change of one payment, payout or checkout
	{"api", ". checkout ledger provider provider/sandbox store store/refunds store/checkouts store/access store/matching store/webhooks engine collect payout account books webhook internal/door internal/limit internal/jsonx internal/quota internal/watch", "golang.org/x/time " + jsonModule},
	{"console/look", root, ""},                                        // amounts, times and phones as people read them
	{"console/words", ". console/look", "github.com/BurntSushi/toml"}, // what the console says; TOML, as the configuration
	{"pay", ". store store/checkouts engine account checkout internal/door internal/limit internal/qrcode internal/seal internal/watch console/look console/words", ""}, // the pages that customers pay on
	{"console/chart", "", ""},              // SVG from whole numbers
	{"console/assets", "", ""},             // files that browsers keep
	{"console/page", "console/assets", ""}, // templates
	// What stands around every page; it knows no page. Rooms know the shell, and not each
	// other.
	{"console/shell", ". provider/sandbox store store/lookup collect checkout payout account webhook people internal/door internal/limit internal/seal console/look console/words console/assets console/page", ""},
	{"console/list", ". store books people console/look console/shell", ""},                                                       // filter, range, pages and table of a list
	{"console/subject", ". store store/access store/webhooks books checkout story webhook people console/look console/shell", ""}, // a payment or payout in words
	{"console/access", ". store store/access store/admin store/checkouts store/webhooks books checkout webhook people internal/qrcode console/look console/words console/shell console/list console/subject", ""},
	{"console/money", ". ledger store store/admin store/auditlog store/refunds store/webhooks engine collect payout account books story webhook people internal/request console/look console/assets console/shell console/list console/subject", ""},
	{"console/figures", ". store store/access store/admin store/checkouts store/webhooks engine books checkout webhook people console/look console/chart console/shell console/list console/subject", ""},
	{"console/counter", ". store store/lookup engine collect account story people internal/request console/look console/words console/shell console/subject", ""},
	{"console/hooks", ". store store/webhooks webhook people console/look console/shell console/list console/subject", ""},
	{"console/checkouts", ". store store/access store/auditlog store/checkouts store/refunds engine checkout people internal/qrcode internal/request console/look console/words console/shell console/list console/subject", ""},
	{"console/sandbox", ". provider/sandbox store store/webhooks engine collect people internal/qrcode internal/request console/look console/words console/shell console/subject", ""},
	{"console", "people console/look console/shell console/access console/money console/figures console/counter console/checkouts console/hooks console/sandbox", ""}, // joins the rooms
	// The installation's secret: its file, its generations, and what is sealed by them.
	{"secret", ". store store/admin books upkeep certificates people tokens webhook internal/loop internal/seal internal/system", ""},
	// The connections to operators, as a configuration names them.
	{"operators", ". provider provider/sandbox provider/mtnmomo provider/airtel provider/pawapay provider/mpesa store store/admin engine config tokens books secret internal/logs internal/loop internal/seal", ""},
	{"sdk", "", ""},  // the packages of the SDKs
	{"docs", "", ""}, // what the pages for developers are made of
	{"reference", "docs", "github.com/BurntSushi/toml github.com/yuin/goldmark"}, // the pages for developers: TOML as the configuration, Markdown
	{"server", ". sdk checkout pay provider provider/sandbox store store/admin store/auditlog store/lookup engine collect payout config tokens certificates account journal books upkeep webhook people secret operators api console console/shell reference internal/door internal/logs internal/loop internal/seal internal/system", ""},
	// The whole service in virtual time, for tests: it joins what the server joins. Nothing
	// that serves imports it.
	{"sim", ". provider provider/simulator provider/wire provider/mtnmomo provider/airtel provider/mpesa provider/pawapay internal/db internal/db/dbfault internal/seal store store/admin store/storetest engine collect payout books account config tokens webhook operators server", ""},
	// What 'till doctor' examines.
	{"doctor", ". provider store store/access store/admin store/webhooks engine config certificates books upkeep secret operators server internal/db/sqlite internal/db/postgres internal/logs internal/seal internal/system", ""},
	// What commands share: it prints, reads flags and opens the database.
	{"cmd/till/internal/cli", ". provider provider/sandbox store store/admin engine collect payout journal books secret operators api internal/escape internal/logs internal/seal", "github.com/spf13/cobra github.com/spf13/pflag"},
	{"cmd/till/internal/money", ". ledger store store/auditlog store/lookup store/matching store/refunds account engine payout checkout internal/request books reconcile recovery story webhook secret operators internal/escape internal/logs cmd/till/internal/cli", "github.com/spf13/cobra github.com/BurntSushi/toml"}, // commands about payments, payouts and the books
	{"cmd/till", ". cmd/till/internal/cli cmd/till/internal/money doctor ledger provider provider/simulator provider/sandbox provider/mtnmomo provider/airtel provider/pawapay provider/mpesa store store/access store/admin store/lookup store/checkouts store/matching store/webhooks engine collect checkout payout config certificates account people journal books recovery privacy upkeep backup webhook secret operators api server internal/dev/loadgen internal/escape internal/logs internal/dev/faulty internal/qrcode internal/dev/rehearse internal/dev/relay internal/dev/remote internal/seal internal/system internal/trace internal/dev/trigger", "github.com/spf13/cobra github.com/spf13/pflag github.com/BurntSushi/toml filippo.io/age"},
	{"bench/seed", ". store internal/db", ""}, // rows for a measurement, written past the nouns
	// It fills the store and compares with it, settles and signs in its own
	// process, is an operator with its adapter and a server around it, and slows
	// a simulated one down.
	{"bench", ". provider provider/mtnmomo store store/admin store/matching internal/db/pgtest bench/seed engine collect payout books webhook server internal/dev/loadgen internal/jsonx internal/logs", ""},
}

// engineFiles are the files beside the engines' own packages that may import an
// engine: everything else knows internal/db only.
var engineFiles = []string{"store/open.go", "doctor/doctor.go", "doctor/backup.go", "doctor/citus.go"}

// developing holds the tools of developers. Nothing that serves money uses them: only
// their commands and the benchmark do.
const developing = "internal/dev/"

var mayDevelop = []string{"cmd/till", "bench"}

// counting are the packages that count by meter and record spans, beside what their rules
// name. meter itself serves HTTP.
var counting = strings.Fields("engine webhook api server")

// limited are standard packages that few may import, and why.
var limited = []struct {
	pkg  string
	who  []string
	why  string
	also string // a prefix that counts as the same
}{
	{"database/sql", []string{"store", "store/storetest", "provider/sandbox"}, "all SQL is in store; the sandbox keeps its own book", "database/sql/"},
	{"encoding/json", []string{"provider/wire", "provider/providertest", "provider/simulator", "provider/mtnmomo", "provider/airtel", "provider/pawapay", "provider/mpesa", "store/storetest", "provider/sandbox", "people", "console/subject", "console/hooks", "backup", "journal", "reference", "operators", "internal/logs", "server", "cmd/till", "cmd/till/internal/cli", "cmd/till/internal/money", "bench", "internal/dev/remote", "internal/dev/relay", "internal/dev/trigger", "internal/dev/rehearse", "internal/acmetest", "sim"}, "clients' bodies are read by jsonx, which is strict, and written by hand; operators are read leniently", ""},
	{"net/http", []string{"pay", "provider/wire", "provider/simulator", "provider/mtnmomo", "provider/airtel", "provider/pawapay", "provider/mpesa", "provider/sandbox", "provider/providertest", "webhook", "api", "console", "console/assets", "console/shell", "console/list", "console/subject", "console/checkouts", "console/counter", "console/money", "console/hooks", "console/access", "console/figures", "console/sandbox", "backup", "reference", "sdk", "server", "cmd/till", "bench", "internal/door", "internal/dev/faulty", "internal/dev/remote", "internal/dev/relay", "internal/dev/rehearse", "internal/trace", "internal/acmetest", "certificates", "sim"}, "the business knows no network, but for webhook, which posts, certificates, and the adapters of operators", "net/http/"},
	{"html/template", []string{"pay", "console/chart", "console/page", "console/shell", "console/access", "console/sandbox", "reference"}, "pages are the console's, the reference's and those to pay on", ""},
	{"unsafe", nil, "nothing here is worth it", ""},
}

var forbiddenNames = strings.Fields("util utils common helper helpers base core model models type types manager impl misc shared")

const maxLines = 450

// source is one Go file that is not a test.
type source struct {
	path    string
	imports []string
	lines   int
}

// sources returns the files of every package of this module, by folder.
func sources(t *testing.T) map[string][]source {
	t.Helper()
	out := map[string][]source{}
	err := fs.WalkDir(os.DirFS("."), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if p != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "node_modules") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); p != "." && err == nil {
				return fs.SkipDir // a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		s := source{path: p, lines: bytes.Count(text, []byte("\n"))}
		for _, i := range f.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, imported)
		}
		out[path.Dir(p)] = append(out[path.Dir(p)], s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// forbidden returns why a package may not import another, "" if it may.
func (r *packageRule) forbidden(imported string) string {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case imported == "till" || first == "till":
		folder := strings.TrimPrefix(strings.TrimPrefix(imported, "till"), "/")
		if folder == "" {
			folder = root
		}
		if (folder == "meter" || folder == "internal/trace") && slices.Contains(counting, r.folder) {
			return ""
		}
		if !slices.Contains(strings.Fields(r.ours), folder) {
			return r.folder + " may not import " + folder + ": see packageRules"
		}
	case strings.Contains(first, "."):
		for _, module := range strings.Fields(r.others) {
			if imported == module || strings.HasPrefix(imported, module+"/") {
				return ""
			}
		}
		return r.folder + " may not use this module: see packageRules"
	case r.folder == "meter" && imported == "net/http":
	default:
		for _, l := range limited {
			if (imported == l.pkg || l.also != "" && strings.HasPrefix(imported, l.also)) && !slices.Contains(l.who, r.folder) {
				return l.why
			}
		}
	}
	return ""
}

func TestArchitecture(t *testing.T) {
	t.Parallel()
	files := sources(t)
	rules := map[string]*packageRule{}
	for i := range packageRules {
		r := &packageRules[i]
		for _, folder := range strings.Fields(r.ours) {
			if rules[folder] == nil {
				t.Errorf("%s may import %s, which is not above it in the list", r.folder, folder)
			}
			if strings.HasPrefix(folder, developing) && !strings.HasPrefix(r.folder, developing) && !slices.Contains(mayDevelop, r.folder) {
				t.Errorf("%s may import %s: what serves money uses none of developers' tools", r.folder, folder)
			}
		}
		rules[r.folder] = r
		if len(files[r.folder]) == 0 {
			t.Errorf("%s has a rule, and there is no such package", r.folder)
		}
	}
	for folder, sources := range files {
		r := rules[folder]
		if r == nil {
			t.Errorf("%s has no rule in packageRules: decide what it may import", folder)
			continue
		}
		documented := false
		for _, s := range sources {
			documented = documented || path.Base(s.path) == "doc.go" || path.Base(s.path) == "main.go" && len(sources) == 1
			if s.lines > maxLines {
				t.Errorf("%s has %d lines; the limit is %d", s.path, s.lines, maxLines)
			}
			for _, i := range s.imports {
				if why := r.forbidden(i); why != "" {
					t.Errorf("%s imports %s: %s", s.path, i, why)
				}
				if (i == "till/internal/db/sqlite" || i == "till/internal/db/postgres") && !slices.Contains(engineFiles, s.path) {
					t.Errorf("%s imports %s: only %v may", s.path, i, engineFiles)
				}
			}
		}
		if !documented {
			t.Errorf("%s has no doc.go", folder)
		}
		for _, name := range strings.Split(folder, "/") {
			if slices.Contains(forbiddenNames, name) {
				t.Errorf("%s: %q says nothing about what is inside", folder, name)
			}
		}
	}
}

// The rules themselves: an import that they forbid is found.
func TestArchitectureFindsForbiddenImports(t *testing.T) {
	t.Parallel()
	rules := map[string]*packageRule{}
	for i := range packageRules {
		rules[packageRules[i].folder] = &packageRules[i]
	}
	for _, c := range []struct {
		folder, imported string
		allowed          bool
	}{
		{root, "fmt", true},
		{root, "till/ledger", false},
		{root, "github.com/google/uuid", false},
		{root, "database/sql", false},
		{root, "net/http", false},
		{"ledger", "till", true},
		{"ledger", "till/store", false},
		{"provider", "till/store", false},
		{"provider", "database/sql", false},
		{"provider/sandbox", "database/sql", true},
		{"provider/sandbox", "till/store", false},
		{"store", "modernc.org/sqlite/lib", false},
		{"internal/db/sqlite", "modernc.org/sqlite/lib", true},
		{"store", "till/collect", false},
		{"collect", "database/sql", false},
		{"collect", "modernc.org/sqlite", false},
		{"collect", "github.com/jackc/pgx/v5", false},
		{"provider/sandbox", "github.com/jackc/pgx/v5", true},
		{"collect", "till/account", false},
		{"collect", "till/api", false},
		{"engine", "till/collect", false},
		{"engine", "till/internal/loop", true},
		{"account", "till/collect", false},
		{"books", "till/api", false},
		{"api", "till/server", false},
		{"api", "database/sql/driver", false},
		{"server", "github.com/spf13/cobra", false},
		{"cmd/till", "github.com/spf13/cobra", true},
		{"bench", "till/collect", true},
		{"bench", "till/api", false},
		{"webhook", "net/http", true},
		{"webhook", "till/collect", false},
		{"webhook", "database/sql", false},
		{"collect", "till/webhook", false},
		{"internal/dev/loadgen", "till", false},
		{"server", "till/internal/dev/faulty", false},
		{"server", "till/internal/db/dbfault", false},
		{"cmd/till", "till/sim", false},
		{"sim", "till/internal/db/dbfault", true},
		{"cmd/till", "till/internal/dev/faulty", true},
	} {
		t.Run(fmt.Sprintf("%s imports %s", c.folder, c.imported), func(t *testing.T) {
			t.Parallel()
			if why := rules[c.folder].forbidden(c.imported); (why == "") != c.allowed {
				t.Errorf("got %q, want allowed %v", why, c.allowed)
			}
		})
	}
}
