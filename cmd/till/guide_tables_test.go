package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"till"
	"till/api"
	"till/cmd/till/internal/cli"
	"till/operators"
	"till/provider/sandbox"
	"till/store"
)

const referencePage = "docs/guide/reference.md"

// rows returns the rows of the first table below a heading of the reference page.
func rows(t *testing.T, heading string) (out [][]string) {
	t.Helper()
	_, text, ok := strings.Cut(guideText(t, referencePage), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", referencePage, heading)
	}
	_, text, _ = strings.Cut(text, "\n|---")
	table, _, _ := strings.Cut(text, "\n\n")
	for _, line := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out = append(out, cells)
	}
	return out
}

// reasonsOf returns the reasons that openapi.yaml lists in the description of
// failure_reason: those of payments first, then those of payouts.
func reasonsOf(t *testing.T) [2][]string {
	t.Helper()
	var out [2][]string
	parts := strings.Split(string(api.OpenAPI), "        failure_reason:\n          $ref: \"#/components/schemas/FailureReason\"\n          description: |\n")
	if len(parts) != 3 {
		t.Fatalf("openapi.yaml describes failure_reason %d times", len(parts)-1)
	}
	for i, part := range parts[1:] {
		text, _, _ := strings.Cut(part, "\n        failure_detail:")
		for _, m := range regexp.MustCompile("(?m)^ +- `(\\w+)`:").FindAllStringSubmatch(text, -1) {
			out[i] = append(out[i], m[1])
		}
	}
	return out
}

func TestTheGuideHasEveryFailureReason(t *testing.T) {
	t.Parallel()
	listed := reasonsOf(t)
	var code []string
	file, err := parser.ParseFile(token.NewFileSet(), "../../payment.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == "FailureReason" {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Error(err)
				}
				code = append(code, text)
			}
		}
		return true
	})
	if len(code) < 10 {
		t.Fatalf("payment.go has only %d reasons", len(code))
	}
	var guide []string
	for _, row := range rows(t, "Why it failed") {
		reason := strings.Trim(row[0], "`")
		guide = append(guide, reason)
		want := map[[2]bool]string{{true, false}: "payments", {false, true}: "payouts", {true, true}: "both"}
		if of := want[[2]bool{slices.Contains(listed[0], reason), slices.Contains(listed[1], reason)}]; row[1] != of {
			t.Errorf("the guide has %s for %s; openapi.yaml for %q", reason, row[1], of)
		}
	}
	slices.Sort(code)
	slices.Sort(guide)
	if !slices.Equal(code, guide) {
		t.Errorf("the guide has %v, the program %v", guide, code)
	}
}

func TestTheGuideHasEveryScope(t *testing.T) {
	t.Parallel()
	opens := map[string][]string{}
	for _, r := range api.Routes {
		scope := string(r.Scope)
		switch {
		case r.Open:
			continue
		case len(r.Scopes) > 0:
			scope = "one of"
		case scope == "":
			scope = "any key"
		}
		opens[scope] = append(opens[scope], r.Method+" "+regexp.MustCompile(`\{\w+\}`).ReplaceAllString(r.Path, "{}"))
	}
	seen := 0
	for _, row := range rows(t, "What a key may do") {
		scope := strings.Trim(row[0], "`")
		wantDefault := "no"
		if slices.Contains(till.DefaultScopes, till.Scope(scope)) {
			wantDefault = "yes"
		}
		if strings.HasPrefix(scope, "one of") {
			if got := len(codeSpan.FindAllString(row[0], -1)); got != len(till.EventScopes) {
				t.Errorf("%q names %d scopes", row[0], got)
			}
			scope = "one of"
		}
		if till.Scope(scope).Valid() {
			seen++
		} else {
			wantDefault = ""
		}
		if row[1] != wantDefault {
			t.Errorf("%s: the guide says %q to default, the program %q", scope, row[1], wantDefault)
		}
		var guide []string
		for _, m := range codeSpan.FindAllStringSubmatch(row[2], -1) {
			guide = append(guide, regexp.MustCompile(`\{\w+\}`).ReplaceAllString(m[1], "{}"))
		}
		slices.Sort(guide)
		slices.Sort(opens[scope])
		if !slices.Equal(guide, opens[scope]) {
			t.Errorf("%s opens %v; the guide says %v", scope, opens[scope], guide)
		}
		delete(opens, scope)
	}
	if seen != len(till.Scopes) || len(opens) > 0 {
		t.Errorf("the guide has %d of %d scopes, and leaves out %v", seen, len(till.Scopes), opens)
	}
}

// The guide says when Till asks for late money; so do the adapters.
func TestTheGuideSaysWhenLateMoneyIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for _, s := range simulations {
		text.WriteString(s.connection("http://127.0.0.1:9400"))
		for name, value := range s.secrets {
			t.Setenv(name, value)
		}
	}
	config, database := filepath.Join(dir, "till.toml"), filepath.Join(dir, "till.db")
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, row := range rows(t, "How late a late success is noticed") {
		said[row[0]] = row[1]
	}
	const names = "MTN MoMo, Airtel Money, M-Pesa, pawaPay"
	k := &killing{t: t, dir: dir, database: database, book: dir + "/sandbox.db"}
	k.start() // makes the database and the secret
	err := cli.WithDatabase(t.Context(), database, func(s *store.Store) error {
		ops, _, err := (&operators.Source{Database: database, Config: config}).Open(t.Context(), s)
		if err != nil {
			return err
		}
		for _, sim := range simulations {
			if got := joinDurations(ops.Payments[sim.name].Traits().LateReads); got != said[names] {
				t.Errorf("%s is asked about payments after %s; the guide says %q", sim.name, got, said[names])
			}
			if ops.Payouts[sim.name] == nil {
				continue // it only collects
			}
			if got := joinDurations(ops.Payouts[sim.name].Traits().LateReads); got != said[names] {
				t.Errorf("%s is asked about payouts after %s; the guide says %q", sim.name, got, said[names])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := joinDurations(new(sandbox.Operator).Traits().LateReads); got != said["the sandbox"] {
		t.Errorf("the sandbox is asked after %s; the guide says %q", got, said["the sandbox"])
	}
}

// joinDurations writes durations as the guides do.
func joinDurations(all []time.Duration) string {
	var out []string
	for _, d := range all {
		switch {
		case d < time.Minute:
			out = append(out, strconv.Itoa(int(d/time.Second))+" s")
		case d < time.Hour:
			out = append(out, strconv.Itoa(int(d/time.Minute))+" min")
		default:
			out = append(out, strconv.Itoa(int(d/time.Hour))+" h")
		}
	}
	return strings.Join(out, ", ")
}
