// Crosscheck reads the program as the compiler of other systems would, up to its
// types, and builds nothing: a name that a system lacks, or a file that is left
// out there, is found in seconds. What only a compiler or a linker sees is left
// to 'make cross'.
//
// Run it with go run ./crosscheck linux/arm64 windows/amd64 in tools.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("crosscheck: ")
	root, err := filepath.Abs("..")
	if err != nil {
		log.Fatal(err)
	}
	for _, target := range os.Args[1:] {
		n, err := check(root, "./cmd/till", target)
		if err != nil {
			log.Fatalf("%s: %v", target, err)
		}
		fmt.Printf("types for %s: %d packages\n", target, n)
	}
}

// check reads a program of the module in root for a target, which is a system and
// an architecture. It returns how many of the module's packages are in it.
func check(root, program, target string) (int, error) {
	goos, goarch, ok := strings.Cut(target, "/")
	if !ok {
		return 0, fmt.Errorf("not a system and an architecture, as in linux/arm64")
	}
	load := &packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedModule,
		Dir:  root,
		Env:  append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		ParseFile: func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
			return parse(root, set, name, text)
		},
	}
	found, err := packages.Load(load, program)
	if err != nil {
		return 0, err
	}
	ours, wrong := 0, 0
	packages.Visit(found, nil, func(p *packages.Package) {
		if p.Module == nil || !p.Module.Main {
			return // half of it was left out
		}
		ours++
		for _, e := range p.Errors {
			wrong++
			fmt.Fprintln(os.Stderr, e)
		}
	})
	if wrong > 0 {
		return ours, fmt.Errorf("%d errors", wrong)
	}
	return ours, nil
}

// parse leaves out what is in the functions of others: the compiler of the
// program reads it, and here it would take most of the time.
func parse(root string, set *token.FileSet, name string, text []byte) (*ast.File, error) {
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if file == nil || strings.HasPrefix(name, root+string(filepath.Separator)) {
		return file, err
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
	return file, err
}
