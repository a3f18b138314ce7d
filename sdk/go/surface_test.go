package till

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a program can use of this module is written down in surface.txt, so that
// every removal is seen in review: within a major version there are only
// additions. TILL_UPDATE=1 go test . writes it anew.
func TestSurface(t *testing.T) {
	t.Parallel()
	var all []string
	for _, folder := range []string{".", "sqlstore", "filestore", "storetest"} {
		all = append(all, surface(t, folder)...)
	}
	got := strings.Join(all, "\n") + "\n"
	if os.Getenv("TILL_UPDATE") != "" {
		if err := os.WriteFile("surface.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("surface.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		for _, line := range strings.Split(string(want), "\n") {
			if !strings.Contains(got, line+"\n") {
				t.Errorf("gone or changed: %s", line)
			}
		}
		t.Error("surface.txt is not what this module offers: TILL_UPDATE=1 go test .")
	}
}

// surface lists what a package exports, in the order of its text.
func surface(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(f)
		for _, decl := range f.Decls {
			out = append(out, declared(t, fset, folder, decl)...)
		}
	}
	slices.Sort(out)
	return out
}

// declared writes a declaration on one line for each name, with the package in
// front.
func declared(t *testing.T, fset *token.FileSet, folder string, decl ast.Decl) []string {
	t.Helper()
	write := func(node any) string {
		var b bytes.Buffer
		if err := format.Node(&b, fset, node); err != nil {
			t.Fatal(err)
		}
		return folder + ": " + strings.Join(strings.Fields(b.String()), " ")
	}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		decl.Body = nil
		if decl.Recv != nil && !ast.IsExported(receiver(decl.Recv.List[0].Type)) {
			return nil
		}
		return []string{write(decl)}
	case *ast.GenDecl:
		var out []string
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				out = append(out, write(&ast.GenDecl{Tok: decl.Tok, Specs: []ast.Spec{spec}}))
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() {
						out = append(out, folder+": "+decl.Tok.String()+" "+name.Name)
					}
				}
			}
		}
		return out
	}
	return nil
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
