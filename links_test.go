package till_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	elided  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// page is a text of ours without its examples.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fence.ReplaceAllString(string(text), "")
}

// anchors returns the names that the headings of a page have in links.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		name := elided.ReplaceAllString(strings.ToLower(strings.TrimSpace(h[1])), "")
		out[strings.ReplaceAll(name, " ", "-")] = true
	}
	return out
}

// Every link from one of our pages to another leads to a file, and to a
// heading where it names one.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	links := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "till-data" || d.Name() == "node_modules" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		for _, m := range link.FindAllStringSubmatch(page(t, path), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") || strings.HasPrefix(file, "mailto:") || strings.HasPrefix(file, "/docs/") {
				continue // the links of served pages are followed by reference's tests
			}
			links++
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[1])
			} else if anchor != "" && filepath.Ext(target) == ".md" && !anchors(page(t, target))[anchor] {
				t.Errorf("%s: %s has no such heading", path, m[1])
			}
		}
		return nil
	})
	if err != nil || links == 0 {
		t.Errorf("%d links were found, %v", links, err)
	}
}

// ourFile is a path of a file of ours in the text of a page: with a folder, or
// one that can only be in the root.
var ourFile = regexp.MustCompile("`((?:[a-z]+/)*[a-z0-9_]+(?:_test)?\\.(?:go|md|yaml|sql))`")

// Every file that a page for readers of the code names is there. A name
// without a folder may be in any.
func TestFilesInPagesExist(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names[d.Name()] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md"} {
		for _, m := range ourFile.FindAllStringSubmatch(page(t, path), -1) {
			if _, err := os.Stat(filepath.FromSlash(m[1])); err != nil && (strings.Contains(m[1], "/") || !names[m[1]]) {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	}
}
