package meter_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/api"
	"till/meter"
)

var update = flag.Bool("update", false, "rewrite docs/guide/metrics.md")

// scrape returns the lines of all series.
func scrape(t testing.TB, m *meter.Meter) (series []string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			series = append(series, line)
		}
	}
	return series
}

// full returns a Meter with four connections beside the sandbox and everything resolved,
// as a program has it.
func full() (*meter.Meter, *meter.Route, *meter.Operation, *meter.Subjects) {
	connections := []string{"sandbox", "mtn", "airtel", "mpesa", "pawapay"}
	var methods, payments, payouts []string
	for _, m := range till.Methods() {
		methods = append(methods, m.Code)
	}
	for _, s := range till.Statuses {
		payments = append(payments, string(s))
	}
	for _, s := range till.PayoutStatuses {
		payouts = append(payouts, string(s))
	}
	m := meter.New(meter.Config{Connections: connections, Methods: methods, Version: "v1", Revision: "abc"})
	route := m.NewRoute(meter.NoRoute)
	for _, r := range api.Routes {
		m.NewRoute(r.Method + " " + r.Path)
	}
	var operation *meter.Operation
	for _, c := range connections {
		for _, o := range []string{"submit", "check", "payout_submit", "payout_check"} {
			operation = m.NewOperation(c, o)
			m.Gauge("operator_timeout_seconds", func() float64 { return 1 }, c, o)
			m.Gauge("step_oldest_due_seconds", func() float64 { return 1 }, c, o)
		}
		m.Gauge("operator_in_flight", func() float64 { return 1 }, c)
		m.Gauge("operator_token_expiry_timestamp_seconds", func() float64 { return 1 }, c)
		m.Gauge("operator_state", func() float64 { return 1 }, c, "payment")
		m.Gauge("operator_state", func() float64 { return 1 }, c, "payout")
	}
	for _, b := range []string{"create", "payout", "wake", "answer", "delivery"} {
		m.NewBatch(b, func() int { return 1 })
	}
	for i := range 16 {
		m.Gauge("loop_timestamp_seconds", func() float64 { return 1 }, fmt.Sprint(i))
		m.Gauge("loop_late", func() float64 { return 1 }, fmt.Sprint(i))
	}
	m.NewDatabase()
	m.NewWebhook()
	m.NewSubjects("payout", payouts)
	var books []meter.Value
	for _, c := range connections {
		for _, kind := range []string{"payment", "payout"} {
			books = append(books, meter.Value{Name: "open", Labels: []string{kind, c}}, meter.Value{Name: "oldest_unknown_seconds", Labels: []string{kind, c}})
		}
		for _, o := range []string{"submit", "check", "payout_submit", "payout_check"} {
			books = append(books, meter.Value{Name: "steps_due", Labels: []string{c, o}})
		}
	}
	for _, currency := range []string{"XAF", "XOF", "KES", "UGX", "RWF"} {
		for _, name := range []string{"wallets_minor", "reserved_minor", "owed_minor", "suspense_minor", "suspense_oldest_seconds"} {
			books = append(books, meter.Value{Name: name, Labels: []string{"live", currency}}, meter.Value{Name: name, Labels: []string{"test", currency}})
		}
	}
	for _, c := range connections {
		books = append(books, meter.Value{Name: "statement_until_timestamp_seconds", Labels: []string{c}})
	}
	for _, result := range []string{"ok", "failed"} {
		books = append(books, meter.Value{Name: "backup_timestamp_seconds", Labels: []string{result}}, meter.Value{Name: "drill_timestamp_seconds", Labels: []string{result}},
			meter.Value{Name: "archive_timestamp_seconds", Labels: []string{result}})
	}
	books = append(books, meter.Value{Name: "backup_bytes"}, meter.Value{Name: "backup_seconds"})
	m.Replace("books", books)
	m.Set("certificate_expiry_timestamp_seconds", 1, "acme")
	m.Set("certificate_life_seconds", 1, "acme")
	return m, route, operation, m.NewSubjects("payment", payments)
}

// With four connections beside the sandbox, an instance has at most 2 900 series.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	m, _, _, _ := full()
	n := len(scrape(t, m))
	if n > 2900 || n < 1000 {
		t.Errorf("%d series; want at most 2900", n)
	}
	t.Log(n, "series")
}

// A label that is in no list is one of the list, or nothing: never a new series.
func TestNoLabelIsSomebodysText(t *testing.T) {
	t.Parallel()
	m, route, operation, subjects := full()
	before := len(scrape(t, m))
	canary := "canary\"\n{evil}"
	m.Callback(canary, "woken")
	m.Callback("mtn", canary)
	m.AuthRefused(canary)
	m.Panicked(canary)
	route.Served(999, time.Hour, false)
	operation.Called(canary, false, time.Second)
	m.NewOperation(canary, "submit").Begun(-time.Second)
	subjects.Moved(canary, canary)
	subjects.Ended(canary, true, time.Second)
	subjects.Late(canary)
	subjects.Reversed(canary)
	subjects.Owed(canary)
	m.NewDatabase().Transaction(canary, canary, 0)
	m.NewDatabase().Waited(canary, 0)
	m.NewWebhook().Attempt(canary, 0)
	m.Replace("another release", []meter.Value{{Name: canary, Labels: []string{canary}}, {Name: "open", Labels: []string{"payment"}}})
	after := scrape(t, m)
	if len(after) > before+46 { // the new operation, under "other"
		t.Errorf("%d series, before %d", len(after), before)
	}
	for _, line := range after {
		if strings.Contains(line, "canary") {
			t.Error(line)
		}
	}
}

func TestDroppedSpansAreCounted(t *testing.T) {
	t.Parallel()
	m := meter.New(meter.Config{})
	m.TraceDropped(3)
	if all := strings.Join(scrape(t, m), ""); !strings.Contains(all, "till_trace_dropped_total 3\n") {
		t.Error("three dropped spans are not counted")
	}
}

func TestANilMeterCountsNothing(t *testing.T) {
	t.Parallel()
	var m *meter.Meter
	m.AuthRefused("missing")
	m.RateLimited()
	m.Panicked("loop")
	m.TraceDropped(1)
	m.Callback("mtn", "woken")
	m.Set("ready", 1)
	m.Gauge("ready", func() float64 { t.Error("it was read"); return 1 })
	m.Replace("books", []meter.Value{{Name: "open"}})
	m.NewRoute("x").Served(200, 1, false)
	m.NewBatch("create", nil).Ran(1, 1)
	m.NewBatch("create", nil).Full()
	o := m.NewOperation("mtn", "submit")
	o.Called("accepted", false, 1)
	o.Begun(1)
	o.Short()
	o.LeaseOver()
	s := m.NewSubjects("payment", nil)
	s.Moved("a", "b")
	s.Ended("a", true, 1)
	s.Late("a")
	s.Reversed("a")
	s.Owed("a")
	m.NewDatabase().Transaction("read", "ok", 1)
	m.NewDatabase().Waited("first", 1)
	m.NewWebhook().Attempt("delivered", 1)
	m.NewWebhook().First(1)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 404 {
		t.Errorf("metrics that are off are answered %d", w.Code)
	}
}

// Counting allocates nothing: it is on the way of every request and every call.
func TestCountingDoesNotAllocate(t *testing.T) {
	m, route, operation, subjects := full()
	b, d, h := m.NewBatch("create", func() int { return 0 }), m.NewDatabase(), m.NewWebhook()
	for name, f := range map[string]func(){
		"route":     func() { route.Served(202, time.Millisecond, false) },
		"batch":     func() { b.Ran(3, time.Millisecond) },
		"operation": func() { operation.Called("accepted", false, time.Millisecond); operation.Begun(time.Second) },
		"subjects":  func() { subjects.Moved("mtn_momo", "success"); subjects.Ended("mtn", true, time.Second) },
		"database":  func() { d.Transaction("first", "ok", time.Millisecond); d.Waited("first", time.Millisecond) },
		"webhook":   func() { h.Attempt("delivered", time.Millisecond); h.First(time.Second) },
		"callback":  func() { m.Callback("mtn", "woken") },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// resolvers look a series up by its labels. That is for start-up: on a hot path it costs
// ten times as much, and a wrong label makes a new series.
var resolvers = []string{"WithLabelValues", "With", "GetMetricWith", "GetMetricWithLabelValues", "CurryWith", "MustCurryWith"}

func TestSeriesAreResolvedAtStart(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "sdk" || d.Name() == "tools") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		inMeter := filepath.Dir(path) == "../meter"
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok || !slices.Contains(resolvers, s.Sel.Name) || s.Sel.Name == "With" && !inMeter { // slog has a With too
					return true
				}
				found++
				if !inMeter || !strings.HasPrefix(fn.Name.Name, "new") {
					t.Errorf("%s: %s in %s: series are resolved by the handles of meter, when the program starts", set.Position(n.Pos()), s.Sel.Name, fn.Name.Name)
				}
				return true
			})
		}
		return nil
	})
	if err != nil || found != 2 {
		t.Errorf("%d places, %v", found, err)
	}
}

var metricName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func TestTheTableIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range meter.Table {
		bound := strings.Count(m.Bound, ": ")
		switch {
		case !metricName.MatchString(m.Name), seen[m.Name], !strings.HasSuffix(m.Help, "."):
			t.Errorf("%s: the name or the sentence is wrong", m.Name)
		case (m.Kind == meter.Counter) != strings.HasSuffix(m.Name, "_total"):
			t.Errorf("%s: only counters end in _total", m.Name)
		case bound < len(strings.Fields(m.Labels)) && m.Name != "build_info":
			t.Errorf("%s: the bound of a label is missing", m.Name)
		}
		seen[m.Name] = true
	}
}

// docs/guide/metrics.md is written from the table.
func TestTheGuideIsTheTable(t *testing.T) {
	t.Parallel()
	const path = "../docs/guide/metrics.md"
	head, err := os.ReadFile("testdata/metrics.head.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.Write(head)
	for _, books := range []bool{false, true} {
		title := map[bool]string{false: "Numbers about work", true: "Numbers from the books"}[books]
		b.WriteString("\n## " + title + "\n\n| Name | Kind | Labels | |\n|---|---|---|---|\n")
		for _, m := range meter.Table {
			if m.Books == books {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.FullName(), m.Kind, m.Bound, m.Help)
			}
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != b.String() {
		t.Errorf("the page is not the table: run go test ./meter -run %s -update (%v)", t.Name(), err)
	}
}
