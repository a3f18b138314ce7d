package conform

import (
	"cmp"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

// drivers are the programs of one SDK that play the shop, each with its
// arguments: with the file store, and with a store in a database.
type drivers struct{ files, sql []string }

// sdks make the drivers of an SDK in a folder, by the name of its language.
// TILL_SDK says which one is held to the suite.
var sdks = map[string]func(folder string) (drivers, error){
	"go": goDrivers, "typescript": typescriptDrivers, "python": pythonDrivers, "php": phpDrivers,
}

func sdkName() string { return cmp.Or(os.Getenv("TILL_SDK"), "go") }

func goDrivers(folder string) (d drivers, err error) {
	var race []string
	if os.Getenv("TILL_RACE") != "" { // the shop, with the race detector
		race = []string{"-race", "-gcflags=modernc.org/sqlite/lib=-race=false", "-gcflags=modernc.org/libc=-race=false"}
	}
	files, err := goBuild(folder, "files", "../../sdk/go", "./driver/files", race...)
	if err != nil {
		return d, err
	}
	sqlite, err := goBuild(folder, "sqlite", "..", "./conform/sqlite", race...)
	return drivers{files: []string{files}, sql: []string{sqlite}}, err
}

// goBuild builds a Go program and returns its path.
func goBuild(folder, name, in, pkg string, flags ...string) (string, error) {
	path := filepath.Join(folder, name)
	build := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), pkg)...)
	build.Dir = in
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return path, nil
}

// typescriptDrivers are built by npm run build. The one with SQLite needs a Node
// that has it; where there is none, the file store plays its part too.
func typescriptDrivers(string) (drivers, error) {
	node, built := cmp.Or(os.Getenv("TILL_NODE"), "node"), filepath.Join("..", "..", "sdk", "typescript", "dist", "driver")
	if _, err := os.Stat(filepath.Join(built, "files.js")); err != nil {
		return drivers{}, fmt.Errorf("the TypeScript SDK is not built: %w", err)
	}
	d := drivers{files: []string{node, filepath.Join(built, "files.js")}, sql: []string{node, filepath.Join(built, "sqlite.js")}}
	if err := exec.Command(node, "-e", "require('node:sqlite')").Run(); err != nil {
		log.Print("this Node has no SQLite, so every scenario has the file store: make sdk brings one")
		d.sql = d.files
	}
	return d, nil
}
