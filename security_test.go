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
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	owaspRow = regexp.MustCompile(`(?m)^\| \*\*API(\d+)\*\* .*$`)
	testName = regexp.MustCompile("`(Test\\w+)`")
)

// Every risk of OWASP's list has its row in SECURITY.md, and every test that
// a row rests on exists.
func TestSecurityRestsOnTestsThatExist(t *testing.T) {
	t.Parallel()
	where := map[string][]string{} // the folders of tests, by name
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			where[m[1]] = append(where[m[1]], filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := owaspRow.FindAllStringSubmatch(string(text), -1)
	if len(rows) != 10 {
		t.Errorf("SECURITY.md has %d of the ten risks", len(rows))
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if seen[row[1]] {
			t.Errorf("API%s has two rows", row[1])
		}
		seen[row[1]] = true
		names := testName.FindAllStringSubmatch(row[0], -1)
		if len(names) == 0 {
			t.Errorf("no test proves the row of API%s", row[1])
		}
		for _, m := range names {
			if len(where[m[1]]) == 0 {
				t.Errorf("API%s: there is no test %s", row[1], m[1])
			}
		}
	}
	_, console, _ := strings.Cut(string(text), "\n## The console\n")
	for _, m := range testName.FindAllStringSubmatch(console, -1) {
		if len(where[m[1]]) == 0 {
			t.Errorf("the console: there is no test %s", m[1])
		}
	}
}
