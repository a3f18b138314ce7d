package store_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"till/internal/db"
	"till/store"
	_ "till/store/access" // the rooms' statements are sent, too
	_ "till/store/checkouts"
)

var updateGolden = flag.Bool("update", false, "rewrite the statements in testdata")

// The statements that are sent are those in testdata, word for word.
func TestStatementsAreThoseInTestdata(t *testing.T) {
	t.Parallel()
	var sqlite, postgres, citus strings.Builder
	for _, q := range db.Statements() {
		if q.SQLite != "" {
			fmt.Fprintf(&sqlite, "-- %s\n%s\n\n", q.Name, layOut(q.SQLite))
		}
		fmt.Fprintf(&postgres, "-- %s\n%s\n\n", q.Name, layOut(q.Text(db.Postgres)))
		if q.Citus != "" { // the others are in one of the two other files
			fmt.Fprintf(&citus, "-- %s\n%s\n\n", q.Name, layOut(q.Citus))
		}
		if q.OneClient != "" {
			fmt.Fprintf(&citus, "-- %s, several rows of one client\n%s\n\n", q.Name, layOut(q.OneClient))
		}
	}
	compareGolden(t, "sql.sqlite.txt", sqlite.String())
	compareGolden(t, "sql.postgres.txt", postgres.String())
	compareGolden(t, "sql.citus.txt", citus.String())
}

// The nodes of Citus have those of our functions that triggers call, and no others: those that
// were there before the database was distributed are not copied.
func TestCitusIsSentNoFunctionOfOurs(t *testing.T) {
	t.Parallel()
	for _, q := range db.Statements() {
		texts := []string{q.Text(db.Citus), q.OneClient}
		if q.CitusArrays {
			texts = append(texts, q.Text(db.Postgres))
		}
		for _, text := range texts {
			if strings.Contains(text, "till_") {
				t.Errorf("%s: %s", q.Name, text)
			}
		}
	}
}

// The statements that lists are put together from are those in testdata, too.
func TestListsAreThoseInTestdata(t *testing.T) {
	t.Parallel()
	for name, byEnd := range map[string]bool{"lists.sqlite.txt": false, "lists.postgres.txt": true} {
		var b strings.Builder
		store.ListTexts(byEnd, func(name, text string) {
			fmt.Fprintf(&b, "-- %s\n%s\n", name, layOut(text))
			checkPlaceholders(t, name, text)
		})
		compareGolden(t, name, b.String())
	}
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *updateGolden {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has other statements; if they are meant, run go test ./store -run %s -update and read the difference", path, t.Name())
	}
}

// layOut takes off the indentation that a text has in its Go file.
func layOut(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n\t")
}

var placeholder = regexp.MustCompile(`\$(\d+)`)

// SQLite numbers $1, $2 and so on by their first appearance, whatever their
// names are.
func TestPlaceholdersAppearInOrder(t *testing.T) {
	t.Parallel()
	for _, q := range db.Statements() {
		for _, text := range []string{q.SQLite, q.Postgres} {
			checkPlaceholders(t, q.Name, text)
		}
	}
}

func checkPlaceholders(t *testing.T, name, text string) {
	t.Helper()
	seen := 0
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		if n > seen+1 {
			t.Errorf("%s: $%d appears before $%d", name, n, seen+1)
		}
		seen = max(seen, n)
	}
	if strings.Contains(text, "?") {
		t.Errorf("%s has a ?", name)
	}
}

// assembled are the files that make statements while the program runs, and why.
var assembled = map[string]string{
	"list_sql.go": "a list asks for what its filter names; see ListTexts",
	"plans.go":    "it explains statements that are defined elsewhere",
}

// A statement that is not defined is in no golden file and no test of plans.
func TestStatementsAreDefined(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("*.go")
	rooms, _ := filepath.Glob("*/*.go")
	for _, file := range rooms {
		if room := filepath.Dir(file); room != "schema" && room != "storetest" {
			files = append(files, file)
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || assembled[file] != "" {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		isSQL := func(n ast.Expr, name string) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != name {
				return false
			}
			p, ok := s.X.(*ast.Ident)
			return ok && p.Name == "db"
		}
		var stack []ast.Node
		ast.Inspect(f, func(n ast.Node) bool {
			if n == nil {
				stack = stack[:len(stack)-1]
				return true
			}
			if lit, ok := n.(*ast.CompositeLit); ok && isSQL(lit.Type, "SQL") {
				call, ok := stack[len(stack)-1].(*ast.CallExpr)
				if !ok || !isSQL(call.Fun, "Define") && !isSQL(call.Fun, "DefineByClient") {
					t.Errorf("%s: a statement is not defined", set.Position(lit.Pos()))
				}
			}
			stack = append(stack, n)
			return true
		})
	}
}
