package console

import (
	"net/http"
	"testing"

	"till/console/shell"
	"till/people"
)

// What a script asks for by itself is quiet; a page that somebody opens is not.
func TestScriptsAreQuiet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	var quiet bool
	w.console.SessionOf = func(v *shell.Visit, _ string) (*people.Session, error) {
		quiet = v.From.Quiet
		return nil, &people.Refusal{Code: people.SessionOver}
	}
	for header, value := range map[string]string{"Till-Region": "list", "Accept": "text/event-stream", "Accept-Language": "fr"} {
		r := request(http.MethodGet, w.path("/payments"), nil)
		r.Header.Set(header, value)
		w.do(r)
		if want := header != "Accept-Language"; quiet != want {
			t.Errorf("%s: quiet is %v", header, quiet)
		}
	}
}
