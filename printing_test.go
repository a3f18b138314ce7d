package till_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// printers are the files of cmd/till that may write to the terminal by
// themselves: main opens it, output has the functions that all others print by,
// progress draws.
var printers = map[string]string{
	"main.go": "os.Stdout os.Stderr", "output.go": "fmt.Fprintf fmt.Fprintln fmt.Fprint json.NewEncoder", "progress.go": "fmt.Fprintf fmt.Fprint",
}

// TestCommandsPrintByOneWay keeps commands to printf, printLine, table and
// printJSON, which let no text that somebody else chose forge a line.
func TestCommandsPrintByOneWay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("cmd/till/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	seen := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
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
			if word := pkg.Name + "." + name; !strings.Contains(" "+printers[filepath.Base(path)]+" ", " "+word+" ") {
				t.Errorf("%s: %s: print by printf, printLine, table or printJSON of output.go, which keep text on its line", fset.Position(n.Pos()), word)
			}
			return true
		})
	}
	if seen == 0 {
		t.Error("nothing prints: the test looks in the wrong place")
	}
}
