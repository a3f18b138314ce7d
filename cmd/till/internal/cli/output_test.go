package cli

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestOneIsNotMany(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 entries", 1: "1 entry", 2: "2 entries", -1: "-1 entries", 1_000: "1000 entries"} {
		if got := Count(n, "entry", "entries"); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
}

func TestPrintfKeepsValuesOnTheirLine(t *testing.T) {
	t.Parallel()
	type name string
	var b strings.Builder
	Printf(&b, "%s %s %v %-4s|%5.1f %d %t %s %v\n%s\n", "a\nb", name("c\x1b"), errors.New("d\te"), "f", 1.25, 7, true, time.Second, []string{"g\n"}, TrustedText("two\nlines"))
	if want := "a\\nb c\\u001b d\\te f   |  1.2 7 true 1s [g\\n]\ntwo\nlines\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
