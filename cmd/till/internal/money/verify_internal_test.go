package money

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The report names each invariant that ARCHITECTURE.md marks as proved by 'till verify', and
// the guide counts them.
func TestTheReportNamesWhatIsChecked(t *testing.T) {
	text, err := os.ReadFile("../../../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	var marked, named []string
	for _, m := range regexp.MustCompile(`(?m)^\| (I\d+) \| ✓ \|`).FindAllStringSubmatch(string(text), -1) {
		marked = append(marked, m[1])
	}
	for _, c := range checked {
		named = append(named, c.invariant)
	}
	if len(marked) == 0 || !slices.Equal(marked, named) {
		t.Errorf("ARCHITECTURE.md marks %v, the report names %v", marked, named)
	}
	guide, err := os.ReadFile("../../../../docs/guide/books.md")
	if err != nil {
		t.Fatal(err)
	}
	if ranges := "(" + inRanges(marked) + ")"; !strings.Contains(string(guide), ranges) {
		t.Errorf("docs/guide/books.md does not say %s", ranges)
	}
}

// inRanges joins neighbours with a dash: I1–I7, I9.
func inRanges(marked []string) string {
	var number []int
	for _, m := range marked {
		n, _ := strconv.Atoi(m[1:]) // the pattern takes digits only
		number = append(number, n)
	}
	var out []string
	for i := 0; i < len(marked); {
		last := i
		for last+1 < len(marked) && number[last+1] == number[last]+1 {
			last++
		}
		switch last {
		case i:
			out = append(out, marked[i])
		case i + 1:
			out = append(out, marked[i], marked[last])
		default:
			out = append(out, marked[i]+"–"+marked[last])
		}
		i = last + 1
	}
	return strings.Join(out, ", ")
}
