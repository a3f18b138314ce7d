package till_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// printers are the files of cmd/till that may write to the terminal by
// themselves: main opens it, output has the functions that all others print by,
// progress draws.
var printers = map[string]string{
	"cmd/till/main.go":                  "os.Stdout os.Stderr",
	"cmd/till/internal/cli/output.go":   "fmt.Fprintf fmt.Fprintln fmt.Fprint json.NewEncoder",
	"cmd/till/internal/cli/progress.go": "fmt.Fprintf fmt.Fprint",
}

// TestCommandsPrintByOneWay keeps commands to cli.Printf, PrintLine, Table and
// PrintJSON, which let no text that somebody else chose forge a line.
func TestCommandsPrintByOneWay(t *testing.T) {
	t.Parallel()
	var files []string
	for folder, all := range sources(t) {
		if folder == "cmd/till" || strings.HasPrefix(folder, "cmd/till/") {
			for _, s := range all {
				files = append(files, s.path)
			}
		}
	}
	seen := 0
	for _, path := range files {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := s.X.(*ast.Ident)
			name := s.Sel.Name
			prints := ok && (pkg.Name == "fmt" && (strings.HasPrefix(name, "Fprint") || strings.HasPrefix(name, "Print")) ||
				pkg.Name == "io" && name == "WriteString" || pkg.Name == "os" && (name == "Stdout" || name == "Stderr") || pkg.Name == "json" && name == "NewEncoder")
			if !prints {
				return true
			}
			seen++
			if word := pkg.Name + "." + name; !strings.Contains(" "+printers[path]+" ", " "+word+" ") {
				t.Errorf("%s: %s: print by cli.Printf, PrintLine, Table or PrintJSON, which keep text on its line", fset.Position(n.Pos()), word)
			}
			return true
		})
	}
	if seen == 0 {
		t.Error("nothing prints: the test looks in the wrong place")
	}
}
