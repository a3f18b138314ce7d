package till_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// How large things may be. What needs more room gets a room of its own.
const (
	maxFiles    = 45 // of a package
	maxMethods  = 90 // of a type
	maxFunction = 70 // lines of a function

	maxTx = 230 // methods of store.Tx: statements that are on the way of money, or that several rooms share
)

// notServing are the folders that are no part of the program that serves.
var notServing = []string{"bench", "tools", "e2e", "sdk", "docs", "provider/providertest", "provider/simulator", "provider/sandbox", "internal/db/pgtest", "internal/db/dbfault", "store/storetest"}

func serves(file string) bool {
	for _, folder := range notServing {
		if strings.HasPrefix(file, folder+"/") {
			return false
		}
	}
	return !strings.HasPrefix(path.Base(file), "sim")
}

// sizes returns how many files each package, methods each type and lines each function has.
func sizes(t *testing.T) (files, methods, functions map[string]int) {
	t.Helper()
	files, methods, functions = map[string]int{}, map[string]int{}, map[string]int{}
	for folder, all := range sources(t) {
		for _, s := range all {
			if !serves(s.path) {
				continue
			}
			files[folder]++
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, s.path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				name := fn.Name.Name
				if of := receiver(fn); of != "" {
					methods[folder+"."+of]++
					name = of + "." + name
				}
				functions[folder+"."+name] = fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
			}
		}
	}
	return files, methods, functions
}

// receiver returns the type that a method is of, "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	e := fn.Recv.List[0].Type
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	if g, ok := e.(*ast.IndexExpr); ok {
		e = g.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return "?"
}

// No package, type or function grows beyond what somebody can keep in mind, and those that
// have only shrink.
func TestNothingIsTooLarge(t *testing.T) {
	t.Parallel()
	files, methods, functions := sizes(t)
	if methods["console/shell.Visit"] < 20 || functions["console/shell.Visit.run"] < 20 || files["store"] < 20 {
		t.Fatalf("nothing is counted: %d, %d, %d", methods["console/shell.Visit"], functions["console/shell.Visit.run"], files["store"])
	}
	for _, c := range []struct {
		sizes map[string]int
		most  int
		what  string
	}{{files, maxFiles, "files"}, {methods, maxMethods, "methods"}, {functions, maxFunction, "lines"}} {
		for name, n := range c.sizes {
			most := c.most
			if c.what == "methods" && name == "store.Tx" {
				most = maxTx
			}
			if n > most {
				t.Errorf("%s has %d %s; the limit is %d", name, n, c.what, most)
			}
		}
	}
}
