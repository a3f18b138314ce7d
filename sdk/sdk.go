package sdk

import (
	"bytes"
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed packages
var embedded embed.FS

//go:embed VERSION
var version string

// Version is the version of all SDKs.
func Version() string { return strings.TrimSpace(version) }

// Prefix is where the packages are.
const Prefix = "/sdk"

// Handles reports whether a path is that of a package.
func Handles(path string) bool { return path == Prefix || strings.HasPrefix(path, Prefix+"/") }

// Files has the packages by their paths, with SHA256SUMS.
func Files() fs.FS {
	files, err := fs.Sub(embedded, "packages")
	if err != nil {
		panic(err) // the name is a constant
	}
	return files
}

// kinds are the types of what is served; what is not listed is bytes.
var kinds = map[string]string{
	".json": "application/json", ".info": "application/json", ".zip": "application/zip", ".mod": "text/plain; charset=utf-8",
	".tgz": "application/gzip", ".gz": "application/gzip", "": "text/plain; charset=utf-8",
}

// Handler serves the packages. base is where clients reach them: it ends in Prefix, and the
// index of the Composer repository names it.
func Handler(base string) http.Handler {
	files := Files()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Content-Type", "text/plain; charset=utf-8")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, Prefix), "/")
		if name == "" {
			write(w, r, []byte(index(base)))
			return
		}
		b, err := fs.ReadFile(files, name)
		if err != nil {
			http.Error(w, "there is no such package; "+base+"/ lists them", http.StatusNotFound)
			return
		}
		if name == "php/packages.json" {
			b = bytes.ReplaceAll(b, []byte("{base}"), []byte(base))
		}
		kind, ok := kinds[path.Ext(name)]
		if !ok {
			kind = "application/octet-stream"
		}
		h.Set("Content-Type", kind)
		// A version never changes, and what lists versions does.
		if strings.Contains(path.Base(name), Version()) {
			h.Set("Cache-Control", "public, max-age=86400")
		} else {
			h.Set("Cache-Control", "no-cache")
		}
		write(w, r, b)
	})
}

func write(w http.ResponseWriter, r *http.Request, b []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	if r.Method == http.MethodGet {
		w.Write(b) // an error means that the reader has gone
	}
}

// index says how each package is installed.
func index(base string) string {
	v := Version()
	insecure := ""
	if strings.HasPrefix(base, "http://") {
		insecure = "  composer config secure-http false\n"
	}
	return `Till's SDKs, version ` + v + `

TypeScript and JavaScript (Node 20)
  npm install ` + base + `/till-sdk-` + v + `.tgz

Python (3.9)
  pip install ` + base + `/till_sdk-` + v + `-py3-none-any.whl

PHP (8.1)
` + insecure + `  composer config repositories.till composer ` + base + `/php
  composer require till/till-sdk:` + v + `

Go (1.24)
  GOPROXY=` + base + `/go GONOSUMDB=github.com/till-project go get github.com/till-project/till/sdk/go@v` + v + `

Their SHA-256 sums are at ` + base + `/SHA256SUMS. How to begin: ` + strings.TrimSuffix(base, Prefix) + `/docs/
`
}
