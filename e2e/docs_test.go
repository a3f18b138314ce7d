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
