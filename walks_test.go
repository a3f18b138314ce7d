package till_test

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// maxWalk is how many files a walk through the program may have.
const maxWalk = 10

// walkRow is a row of a walk in ARCHITECTURE.md: its number, a file, and what to read in it.
var walkRow = regexp.MustCompile("(?m)^\\| (\\d+) \\| `([a-z0-9_/]+\\.go)` \\| `(\\w+)` \\|")

// The two walks of ARCHITECTURE.md, from a request to its commit and from a due step to the
// final status, are as the code is: each function is in its file, and the packages that were
// walked through before call it.
func TestTheWalksAreAsTheCodeIs(t *testing.T) {
	t.Parallel()
	text := page(t, "ARCHITECTURE.md")
	all := sources(t)
	for _, heading := range []string{"### From the request to the commit", "### From the due step to the final status"} {
		_, after, found := strings.Cut(text, heading+"\n")
		walk, _, _ := strings.Cut(after, "\n#")
		rows := walkRow.FindAllStringSubmatch(walk, -1)
		if !found || len(rows) < 5 || len(rows) > maxWalk {
			t.Errorf("%q has %d files; want 5 to %d", heading, len(rows), maxWalk)
		}
		walked := map[string]bool{}
		for i, row := range rows {
			file, name := row[2], row[3]
			folder := path.Dir(file)
			declared, called := false, i == 0
			for _, s := range all[folder] {
				if s.path == file {
					declared = regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|var )` + name + `\b`).MatchString(page(t, file))
				}
			}
			walked[folder] = true
			for before := range walked {
				for _, s := range all[before] {
					called = called || regexp.MustCompile(`(?m)^[^f/].*\b`+name+`\b`).MatchString(page(t, s.path))
				}
			}
			if !declared || !called {
				t.Errorf("%s %d: %s in %s: declared %t, called by what came before %t", heading, i+1, name, file, declared, called)
			}
		}
	}
}
