package reference

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"till/docs"
)

// Prefix is where the pages are.
const Prefix = "/docs"

// Handles reports whether a path is that of a page.
func Handles(path string) bool { return path == Prefix || strings.HasPrefix(path, Prefix+"/") }

// Config configures the pages.
type Config struct {
	OpenAPI []byte       // the open description, as JSON
	BaseURL string       // where clients reach the API; it ends in /v1
	Log     *slog.Logger // nil means silence
}

// Site is the pages, as a handler.
type Site struct {
	c    Config
	root string // the path of the pages as browsers see it
	load func() (*content, error)
}

// New returns the pages. Nothing is rendered before the first request.
func New(c Config) *Site {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Site{c: c, root: Prefix}
	if u, err := url.Parse(c.BaseURL); err == nil {
		s.root = strings.TrimSuffix(u.Path, "/v1") + Prefix
	}
	s.load = sync.OnceValues(s.read)
	return s
}

// languages are those of the pages; the first has no part of its own in addresses.
var languages = []string{"en", "fr"}

// shops are the programs that the quick starts and the page about checkouts run.
var shops = []string{"shop.go.txt", "shop.mjs", "shop.php", "shop.py", "checkout.go.txt", "checkout.mjs", "checkout.php", "checkout.py"}

//go:embed page style.css script.js icon.svg
var files embed.FS

// content is everything that is served, by its path below Prefix.
type content struct {
	files map[string]*file
	pages []string // the paths of pages, in reading order

	missing map[string]*file // what answers for a page that is not there, by language
}

// file is one thing that is served. It is rendered when it is first asked for.
type file struct {
	kind   string
	render func() ([]byte, error)

	once        sync.Once
	raw, zipped []byte
	etag        string
	err         error
}

func (f *file) get() error {
	f.once.Do(func() {
		if f.raw, f.err = f.render(); f.err != nil {
			return
		}
		sum := sha256.Sum256(f.raw)
		f.etag = `"` + hex.EncodeToString(sum[:12]) + `"`
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(f.raw) // to memory
		w.Close()
		f.zipped = b.Bytes()
	})
	return f.err
}

// book is what all pages are made from.
type book struct {
	*Site
	document *document
	errors   *errorTexts
	words    map[string]map[string]string // by language and key
	texts    map[string]string            // of the document, French by English
	calls    map[string][]example         // by operation
	template *template.Template
	menus    map[string][]section // by language
	all      map[string][]page    // by language, in reading order
}

// book reads what the pages are made from.
func (s *Site) book() (*book, error) {
	b := &book{Site: s, menus: map[string][]section{}, all: map[string][]page{}}
	var err error
	if b.document, err = readDocument(s.c.OpenAPI); err != nil {
		return nil, err
	}
	if _, err = toml.DecodeFS(docs.Files, "words.toml", &b.words); err != nil {
		return nil, err
	}
	if b.texts, err = readTexts(); err != nil {
		return nil, err
	}
	if b.errors, err = readErrors(b.document); err != nil {
		return nil, err
	}
	if b.calls, err = readExamples(); err != nil {
		return nil, err
	}
	b.template, err = template.New("").Funcs(template.FuncMap{"pair": pair}).ParseFS(files, "page/*.html")
	return b, err
}

// read prepares the content and renders nothing.
func (s *Site) read() (*content, error) {
	b, err := s.book()
	if err != nil {
		return nil, err
	}
	c := &content{files: map[string]*file{}, missing: map[string]*file{}}
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "script.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		c.files["/"+name] = &file{kind: kind, render: func() ([]byte, error) { return files.ReadFile(name) }}
	}
	for _, language := range languages {
		c.files[languagePath(language)+"/search.txt"] = &file{kind: "text/plain; charset=utf-8", render: func() ([]byte, error) { return b.searchIndex(language) }}
		c.missing[language] = &file{kind: "text/html; charset=utf-8", render: func() ([]byte, error) {
			return b.render(language, page{"", b.words[language]["missing"], func() (string, any, error) { return "missing.html", nil, nil }})
		}}
	}
	for _, name := range shops {
		c.files["/examples/"+strings.TrimSuffix(name, ".txt")] = &file{kind: "text/plain; charset=utf-8", render: func() ([]byte, error) { return docs.Files.ReadFile("_examples/" + name) }}
	}
	for _, language := range languages {
		b.all[language] = b.pages(language)
		for _, p := range b.all[language] {
			path := languagePath(language) + p.path
			c.pages = append(c.pages, Prefix+path)
			c.files[path] = &file{kind: "text/html; charset=utf-8", render: func() ([]byte, error) { return b.render(language, p) }}
		}
	}
	c.files["/sitemap.txt"] = &file{kind: "text/plain; charset=utf-8", render: func() ([]byte, error) {
		origin := strings.TrimSuffix(s.c.BaseURL, "/v1")
		return []byte(origin + strings.Join(c.pages, "\n"+origin) + "\n"), nil
	}}
	return c, nil
}

func languagePath(language string) string {
	if language == languages[0] {
		return ""
	}
	return "/" + language
}

// Pages returns the path of every page, for tests that check all of them.
func (s *Site) Pages() ([]string, error) {
	c, err := s.load()
	if err != nil {
		return nil, err
	}
	return slices.Clone(c.pages), nil
}

// policy lets a page load its own style, script, images and index of words, and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "Pages are only read.", http.StatusMethodNotAllowed)
		return
	}
	c, err := s.load()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, Prefix)
	f, status := c.files[path], http.StatusOK
	if f == nil {
		if other := strings.TrimSuffix(path, "/"); c.files[other] != nil || c.files[path+"/"] != nil {
			if c.files[other] == nil {
				other = path + "/"
			}
			http.Redirect(w, r, s.root+other, http.StatusMovedPermanently)
			return
		}
		language := languages[0]
		for _, l := range languages[1:] {
			if strings.HasPrefix(path, languagePath(l)+"/") {
				language = l
			}
		}
		f, status = c.missing[language], http.StatusNotFound
	}
	if err := f.get(); err != nil {
		s.fail(w, r, err)
		return
	}
	f.serve(w, r, status)
}

func (s *Site) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.c.Log.Error("page not rendered", "path", r.URL.Path, "error", err)
	http.Error(w, "This page cannot be shown.", http.StatusInternalServerError)
}

func (f *file) serve(w http.ResponseWriter, r *http.Request, status int) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.etag)
	h.Set("Cache-Control", "no-cache") // kept, and asked for again by its ETag
	h.Set("Vary", "Accept-Encoding")
	if status == http.StatusOK && strings.Contains(r.Header.Get("If-None-Match"), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.raw
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		w.Write(body) // an error means that the reader has gone
	}
}

func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.TrimSpace(weight) != "q=0" {
			return true
		}
	}
	return false
}
