// Sdkpack writes the packages of the SDKs, as the tools of their languages install them, to
// sdk/packages: a running service serves them at /sdk/ and a release consists of them. The
// same sources give the same bytes on every machine.
//
// Run it with go run ./sdkpack in tools, after npm run build in sdk/typescript, when an SDK
// has changed. A released version never changes: raise sdk/VERSION first.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// home is where the project is.
const home = "https://github.com/till-project/till"

func main() {
	log.SetFlags(0)
	log.SetPrefix("sdkpack: ")
	files, err := pack("../sdk")
	if err != nil {
		log.Fatal(err)
	}
	const out = "../sdk/packages"
	if err := os.RemoveAll(out); err != nil {
		log.Fatal(err)
	}
	for name, b := range files {
		path := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// pack returns every package, and the files around them, by its path.
func pack(root string) (map[string][]byte, error) {
	version, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(root, "../LICENSE"))
	if err != nil {
		return nil, err
	}
	p := &packer{root: root, version: strings.TrimSpace(string(version)), license: license, out: map[string][]byte{}}
	for _, f := range []func() error{p.npm, p.python, p.php, p.golang} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.out)) {
		if name == "php/packages.json" {
			continue // the service completes it
		}
		sum := sha256.Sum256(p.out[name])
		fmt.Fprintf(&sums, "%s  %s\n", hex.EncodeToString(sum[:]), name)
	}
	p.out["SHA256SUMS"] = []byte(sums.String())
	return p.out, nil
}

// packer makes the packages of one version.
type packer struct {
	root    string
	version string
	license []byte
	out     map[string][]byte
}

// read returns the files below a folder of an SDK that take says belong to its package, by
// their path within it.
func (p *packer) read(folder string, take func(path string) bool) (map[string][]byte, error) {
	base := filepath.Join(p.root, folder)
	files := map[string][]byte{}
	err := filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(base, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if d.Name() == "node_modules" || d.Name() == "__pycache__" {
				return filepath.SkipDir
			}
			return nil
		}
		if take(name) {
			files[name], err = os.ReadFile(path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no files", base)
	}
	return files, err
}
