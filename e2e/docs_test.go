package e2e

import (
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
)

// Every page for developers, from the site's own list. Pages of a folder are
// made by one template: unless everything is looked at, one of each is.
func TestEveryPageOfTheDocs(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	a, err := http.Get(s.origin + "/docs/sitemap.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	list, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("the list of pages: %s %v", a.Status, err)
	}
	p := newPage(t, "docs", s.origin)
	folders := map[string]int{}
	for _, address := range strings.Fields(string(list)) {
		_, at, _ := strings.Cut(address, "/docs")
		if folders[path.Dir(at)]++; folders[path.Dir(at)] > 1 && !everything {
			continue
		}
		if status := p.answered("/docs" + at); status != http.StatusOK {
			t.Errorf("%s: %d", at, status)
			continue
		}
		p.step = len(folders)
		name := "start"
		if trimmed := strings.Trim(strings.TrimPrefix(at, "/fr"), "/"); trimmed != "" {
			name = strings.ReplaceAll(trimmed, "/", "-")
		}
		for _, d := range dresses() {
			if d.lang == p.lang() {
				p.dress(d.theme, d.width)
				p.inspect(name)
			}
		}
	}
	if len(folders) < 4 {
		t.Errorf("the list has %d folders only", len(folders))
	}
}

// Each group of languages shows one, which is chosen everywhere once it was chosen; search
// finds a page while it is typed; a page leads to its parts and to the next.
func TestEveryPageOfTheDocsLeadsOn(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	p := newPage(t, "docs-read", s.origin)
	p.dress("light", 1280)
	const shown = `[...document.querySelectorAll(".langs")].every((g) => [...g.querySelectorAll("[data-lang]")].filter((p) => !p.hidden).length === 1)`
	p.open("/docs/webhooks")
	if !p.is(shown) {
		t.Error("a group shows several languages, or none, before one was chosen")
	}
	p.click(`.pick button:nth-child(3)`)
	chosen := p.text(`.pick button[aria-pressed=true]`)
	p.open("/docs/webhooks")
	if !p.is(shown) || p.text(`.pick button[aria-pressed=true]`) != chosen {
		t.Errorf("%s was chosen, and another one is shown", chosen)
	}
	p.look("webhooks")
	p.follow(`.onward a[rel=next]`)
	if at := p.path(); at != "/docs/sweeping" {
		t.Errorf("the next page is %s", at)
	}
	p.fill(`#search input`, "idempotency_key_reu")
	p.until(`document.querySelector("#search li a")`)
	p.look("search")
	p.follow(`#search li a`)
	if !p.shows("idempotency_key_reused") {
		t.Errorf("search led to %s", p.path())
	}
	p.fill(`#search input`, "qwxyz")
	p.sees("Nothing found.")
	p.refused()
	if status := p.answered("/docs/fr/rien"); status != http.StatusNotFound {
		t.Errorf("a page that is not there is answered %d", status)
	}
	p.look("missing")
	p.open("/docs/")
	p.look("home")
	p.dress("dark", 360)
	p.open("/docs/start/python")
	p.look("start")
	p.open("/docs/fr/sdk/php")
	p.look("sdk")
}
