package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// block is a fenced block of a page, with what the comments above it say.
type block struct {
	page string // as docs/guide/money.md
	line int    // of the fence
	lang string
	text string

	setup, after string // shell, run before and after it
	start        bool   // it starts a server
	output       bool   // it shows what the block before printed
	exit         int    // the exit code, or the HTTP status, that it ends with; 0 for success
	file         string // it is the content of a file
	sample       string // the test that runs it
	notRun       string // why it is not run
}

func (b *block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// runs reports whether a block is something to be done.
func (b *block) runs() bool {
	return b.notRun == "" && b.sample == "" && b.file == "" && !b.output && slices.Contains([]string{"sh", "console", "http"}, b.lang)
}

// unclassed says why the test would not know what to do with a block, or "".
func (b *block) unclassed() string {
	marks := 0
	for _, m := range []bool{b.output, b.file != "", b.sample != "", b.notRun != ""} {
		if m {
			marks++
		}
	}
	switch {
	case marks > 1:
		return "it is marked as two things at once"
	case marks == 1:
		return ""
	case b.lang == "":
		return "its fence names no language"
	case !slices.Contains([]string{"sh", "console", "http", "toml", "json"}, b.lang):
		return "a block of " + b.lang + " has to be marked: as output, file, sample or not run"
	}
	return ""
}

// guidePages are the pages whose blocks are run.
func guidePages(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md"}
	for _, folder := range []string{"docs/guide/", "docs/pages/en/"} {
		pages, err := filepath.Glob("../../" + folder + "*.md")
		if err != nil || len(pages) < 10 {
			t.Fatalf("%d pages in %s, %v", len(pages), folder, err)
		}
		for _, p := range pages {
			out = append(out, folder+filepath.Base(p))
		}
	}
	return out
}

// guideText reads a page.
func guideText(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fenceLine = regexp.MustCompile("^( *)```(.*)$")
	comment   = regexp.MustCompile(`(?s)<!-- test: (.*?) -->`)
)

// readBlocks returns the blocks of a page in order.
func readBlocks(t *testing.T, page string) []*block {
	t.Helper()
	var out []*block
	var open *block
	var indent string
	var between strings.Builder // what is between two blocks
	for i, line := range strings.Split(guideText(t, page), "\n") {
		m := fenceLine.FindStringSubmatch(line)
		switch {
		case open == nil && m != nil:
			indent = m[1]
			open = &block{page: page, line: i + 1, lang: m[2]}
			for _, c := range comment.FindAllStringSubmatch(between.String(), -1) {
				if err := open.mark(c[1]); err != nil {
					t.Fatalf("%s: %v", open, err)
				}
			}
			between.Reset()
		case open != nil && m != nil:
			out = append(out, open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		default:
			between.WriteString(line + "\n")
		}
	}
	if open != nil {
		t.Fatalf("%s: the block has no end", open)
	}
	if comment.MatchString(between.String()) {
		t.Fatalf("%s: a comment after the last block marks nothing", page)
	}
	return out
}

// mark takes in what one comment says.
func (b *block) mark(text string) (err error) {
	word, rest, _ := strings.Cut(text, " ")
	switch {
	case text == "start":
		b.start = true
	case text == "output":
		b.output = true
	case word == "exit":
		b.exit, err = strconv.Atoi(rest)
	case word == "file":
		b.file = rest
	case word == "sample":
		b.sample = rest
	case word == "setup:":
		b.setup += rest + "\n"
	case word == "after:":
		b.after += rest + "\n"
	case strings.HasPrefix(text, "not run: "):
		b.notRun = strings.TrimPrefix(text, "not run: ")
	default:
		err = fmt.Errorf("nobody knows what %q means", text)
	}
	return err
}

// testExists searches for a test in all packages.
func testExists(t *testing.T, name string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || found || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		found = strings.Contains(string(text), "\nfunc "+name+"(")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
