package reference_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"till/api"
	"till/reference"
)

const base = "https://pay.example.com/till/v1"

// maxPage is what a page with its style and script may weigh, gzipped.
const maxPage = 60_000

func newSite() *reference.Site {
	return reference.New(reference.Config{OpenAPI: api.OpenJSON, BaseURL: base})
}

func get(t *testing.T, s http.Handler, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rendered holds all pages, by path.
var rendered = sync.OnceValues(func() (map[string]string, error) {
	s := newSite()
	paths, err := s.Pages()
	out := map[string]string{}
	for _, p := range paths {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, p, nil))
		if w.Code != http.StatusOK {
			return nil, fmt.Errorf("%s: %d %s", p, w.Code, w.Body)
		}
		out[p] = w.Body.String()
	}
	return out, err
})

func pages(t *testing.T) map[string]string {
	t.Helper()
	out, err := rendered()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var (
	anyID     = regexp.MustCompile(` id="([^"]*)"`)
	anyLink   = regexp.MustCompile(` (?:href|src)="([^"]*)"`)
	heading   = regexp.MustCompile(`<h([1-4])(?: id="([^"]*)")?>`)
	codeBlock = regexp.MustCompile(`(?s)<pre[^>]*><code[^>]*>(.*?)</code></pre>`)
)

// Every page is light, links only to pages and places that exist, and loads nothing
// from elsewhere.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	s, all := newSite(), pages(t)
	if len(all) < 140 {
		t.Errorf("there are only %d pages", len(all))
	}
	extra := 0
	for _, f := range []string{"/docs/style.css", "/docs/script.js", "/docs/icon.svg"} {
		text := body(t, get(t, s, f))
		if f == "/docs/script.js" && len(text) >= 4000 {
			t.Errorf("the script has %d bytes", len(text))
		}
		extra += len(zip(text))
	}
	heaviest := 0
	for path, text := range all {
		if n := len(zip(text)) + extra; n > maxPage {
			t.Errorf("%s weighs %d bytes", path, n)
		} else {
			heaviest = max(heaviest, n)
		}
		if strings.Count(text, "<h1") != 1 || strings.Contains(text, "<no value>") || strings.Contains(text, "ZgotmplZ") {
			t.Errorf("%s has no title of its own, or a hole", path)
		}
		var ids []string
		for _, m := range anyID.FindAllStringSubmatch(text, -1) {
			if slices.Contains(ids, m[1]) {
				t.Errorf("%s has two places %s", path, m[1])
			}
			ids = append(ids, m[1])
		}
		for _, m := range anyLink.FindAllStringSubmatch(text, -1) {
			checkLink(t, all, path, html.UnescapeString(m[1]), ids)
		}
	}
	t.Logf("%d pages; the heaviest has %d bytes with style and script, gzipped", len(all), heaviest)
}

func zip(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.Bytes()
}

// checkLink fails for a link that leads nowhere. Browsers see the pages below the
// path of the base address.
func checkLink(t *testing.T, all map[string]string, page, target string, ids []string) {
	t.Helper()
	path, place, _ := strings.Cut(target, "#")
	if path == "" {
		if !slices.Contains(ids, place) {
			t.Errorf("%s has no place %s", page, place)
		}
		return
	}
	path, ok := strings.CutPrefix(path, "/till")
	switch {
	case strings.HasPrefix(target, "https://www.standardwebhooks.com"), strings.HasPrefix(target, "https://github.com/till-project/till/"):
	case target == base+"/openapi.json", target == strings.TrimSuffix(base, "/v1")+"/sdk/": // beside the pages
	case !ok:
		t.Errorf("%s leads to %s, which is not here", page, target)
	case slices.Contains([]string{"/docs/style.css", "/docs/script.js", "/docs/icon.svg"}, path):
	case all[path] == "":
		t.Errorf("%s leads to %s, which does not exist", page, path)
	case place != "" && !strings.Contains(all[path], ` id="`+place+`"`):
		t.Errorf("%s leads to %s, where there is no %s", page, path, place)
	}
}

// The index of words is small, and finds what people type on pages that have it.
func TestSearchIndex(t *testing.T) {
	t.Parallel()
	s, all := newSite(), pages(t)
	for language, words := range map[string][]string{"": {"reconciling", "insufficient_balance", "idempotency_key_reused", "sweep", "reversed"}, "/fr": {"relève", "signature", "numéro"}} {
		text := body(t, get(t, s, "/docs"+language+"/search.txt"))
		if n := len(zip(text)); n > 30_000 {
			t.Errorf("the index%s weighs %d bytes", language, n)
		} else {
			t.Logf("the index%s weighs %d bytes", language, n)
		}
		list, index, _ := strings.Cut(text, "\n\n")
		titles := strings.Split(list, "\n")
		for _, w := range words {
			_, rest, ok := strings.Cut("\n"+index, "\n"+w)
			if !ok {
				t.Errorf("nothing is found for %s", w)
				continue
			}
			line, _, _ := strings.Cut(rest, "\n")
			_, numbers, _ := strings.Cut(line, "\t")
			for _, n := range strings.Fields(numbers) {
				i, err := strconv.Atoi(n)
				if err != nil || i >= len(titles) {
					t.Fatalf("%s: %q", w, line)
				}
				path, _, _ := strings.Cut(titles[i], "\t")
				if !strings.Contains(strings.ToLower(all["/docs"+language+path]), w) {
					t.Errorf("%s is not on %s", w, path)
				}
			}
		}
	}
}

// An address without a page is answered by one that leads on, in its language.
func TestMissingPage(t *testing.T) {
	t.Parallel()
	s := newSite()
	for path, want := range map[string]string{"/docs/nothing": "There is no such page", "/docs/fr/rien": "Cette page n’existe pas"} {
		res := get(t, s, path, "If-None-Match", "x")
		if text := body(t, res); res.StatusCode != http.StatusNotFound || !strings.Contains(text, want) || !strings.Contains(text, `<nav id="menu"`) {
			t.Errorf("%s: %d\n%.300s", path, res.StatusCode, text)
		}
	}
}

// A page names the address of the service that serves it.
func TestPagesNameTheService(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, path := range []string{"/docs/", "/docs/fr/", "/docs/start/python", "/docs/fr/start/go"} {
		if text := all[path]; !strings.Contains(text, base) || strings.Contains(text, "https://pay.example.com/v1") {
			t.Errorf("%s does not name %s", path, base)
		}
	}
}

// The two languages have the same pages with the same headings and the same code.
func TestLanguagesAgree(t *testing.T) {
	t.Parallel()
	all := pages(t)
	n := 0
	for path, en := range all {
		if strings.HasPrefix(path, "/docs/fr/") {
			continue
		}
		n++
		fr, ok := all["/docs/fr"+strings.TrimPrefix(path, "/docs")]
		if !ok {
			t.Errorf("%s is not there in French", path)
			continue
		}
		a, b := heading.FindAllStringSubmatch(en, -1), heading.FindAllStringSubmatch(fr, -1)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%s has other headings in French:\n%v\n%v", path, a, b)
		}
		for _, m := range a {
			if strings.Contains(path, "/errors/") || strings.Contains(path, "/reference/") || m[1] != "2" {
				continue
			}
			if m[2] == "" && !strings.Contains(en, `class="card"><h2>`) && strings.Index(en, m[0]) < strings.Index(en, `<nav id="menu"`) {
				t.Errorf("%s has a heading without a name of its own", path)
			}
		}
		if x, y := codeBlock.FindAllString(en, -1), codeBlock.FindAllString(fr, -1); !slices.Equal(x, y) {
			t.Errorf("%s has other code in French", path)
		}
	}
	if n*2 != len(all) {
		t.Errorf("%d of %d pages are English", n, len(all))
	}
}

// A page can be kept by its ETag, is sent small, and may load nothing from elsewhere.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newSite()
	res := get(t, s, "/docs/")
	if csp := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'") {
		t.Errorf("the policy is %q", csp)
	}
	tag := res.Header.Get("ETag")
	if again := get(t, s, "/docs/", "If-None-Match", tag); tag == "" || again.StatusCode != http.StatusNotModified || body(t, again) != "" {
		t.Errorf("with the tag %s it answers %d", tag, again.StatusCode)
	}
	if zipped := get(t, s, "/docs/", "Accept-Encoding", "gzip"); zipped.Header.Get("Content-Encoding") != "gzip" {
		t.Error("it is not sent small")
	}
	for path, want := range map[string]int{"/docs": 301, "/docs/webhooks/": 301, "/docs/fr": 301, "/docs/nothing": 404, "/docs/../v1": 404, "/docs/errors/nothing": 404, "/docs/sitemap.txt": 200} {
		if res := get(t, s, path); res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/docs/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST is answered %d", w.Code)
	}
}
