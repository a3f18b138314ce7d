package assets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed *.css *.js *.json *.svg vendor
var files embed.FS

// Prefix is in front of the files' names in addresses.
const Prefix = "/console/assets/"

// asset is a file that browsers keep for ever: its name changes with its text.
type asset struct {
	kind        string
	raw, zipped []byte
}

// all are read and compressed when the first page is asked for.
var all = sync.OnceValues(func() (byName map[string]*asset, names map[string]string) {
	byName, names = map[string]*asset{}, map[string]string{}
	err := fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := files.ReadFile(p)
		if err != nil {
			return err
		}
		base, ext := path.Base(p), path.Ext(p)
		digest := sha256.Sum256(raw)
		name := strings.TrimSuffix(base, ext) + "." + base64.RawURLEncoding.EncodeToString(digest[:6]) + ext
		byName[name] = &asset{kind: kindOf(ext), raw: raw, zipped: zip(raw)}
		names[base] = name
		return nil
	})
	if err != nil {
		panic(err) // they are compiled in
	}
	return byName, names
})

func kindOf(ext string) string {
	switch ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".LICENSE":
		return "text/plain; charset=utf-8"
	}
	return mime.TypeByExtension(ext)
}

func zip(raw []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level exists
	w.Write(raw)
	w.Close()
	return b.Bytes()
}

// Path returns the address of a file by its name in the folder; "" if
// there is none.
func Path(name string) string {
	_, names := all()
	if names[name] == "" {
		return ""
	}
	return Prefix + names[name]
}

// Serve is GET /console/assets/{name}.
func Serve(w http.ResponseWriter, r *http.Request) {
	byName, _ := all()
	a := byName[r.PathValue("name")]
	if a == nil {
		http.Error(w, "There is no such file.", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	if AcceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		w.Write(a.zipped)
		return
	}
	w.Write(a.raw)
}

// AcceptsGzip reports whether the browser reads gzip.
func AcceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.TrimSpace(weight) != "q=0" {
			return true
		}
	}
	return false
}
