package reconcile

import (
	"os"
	"strings"
	"testing"
	_ "time/tzdata" // the guide names a zone

	"github.com/BurntSushi/toml"

	"till"
)

// The worked example of the guide is read as the guide says.
func TestTheGuidesExample(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/guide/reconcile.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(begin string) string {
		_, rest, found := strings.Cut(string(guide), begin)
		text, _, closed := strings.Cut(rest, "```")
		if !found || !closed {
			t.Fatalf("the guide has no block that begins with %q", begin)
		}
		return text
	}
	var m Mapping
	meta, err := toml.Decode(block("```toml\n"), &m)
	if err != nil || len(meta.Undecoded()) != 0 {
		t.Fatalf("%v, unknown keys %v", err, meta.Undecoded())
	}
	r, _, c, broken, err := readText(t, m, block("```csv\n"))
	if err != nil || c.Lines != 5 || c.Ignored != 2 || len(broken) != 0 || r.n != 3 {
		t.Fatalf("%v, %+v, %v", err, c, broken)
	}
	if l := r.at(1); r.money(l) != (till.Money{Minor: 7000, Currency: "XAF"}) || l.at.String() != "2026-11-14T08:30:02.000000Z" || l.status != lineSuccess || l.direction != incoming {
		t.Errorf("line 5 is %+v", l)
	}
}
