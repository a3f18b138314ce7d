package hooks

import (
	"os"
	"strings"
	"testing"
)

// The snippets are those of the guide, whose programs are run.
func TestSnippetsAreTheGuides(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guide/webhook-receivers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range verifySnippets {
		if !strings.Contains(string(guide), strings.TrimSpace(s.code)) {
			t.Errorf("the snippet in %s is not in the guide", s.name)
		}
	}
}
