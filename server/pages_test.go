package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Somebody who types the address of the service comes to the pages, and a program that asks
// for nothing that is there is told so in JSON. Without pages there are no packages either.
func TestWhatIsBesideTheAPI(t *testing.T) {
	t.Parallel()
	for _, none := range []bool{false, true} {
		c := testConfig(t)
		c.NoDocs = none
		origin := "http://" + start(t, c).Addr().String()
		for _, q := range []struct {
			path, accept   string
			status, closed int
			says           string
		}{
			{"/", "text/html,*/*", http.StatusOK, http.StatusNotFound, "Till for developers"},
			{"/", "application/json", http.StatusNotFound, http.StatusNotFound, `"code"`},
			{"/docs/start/php", "text/html", http.StatusOK, http.StatusNotFound, origin + "/v1"},
			{"/docs/examples/shop.py", "*/*", http.StatusOK, http.StatusNotFound, "import till"},
			{"/sdk/", "*/*", http.StatusOK, http.StatusNotFound, "pip install " + origin + "/sdk/till_sdk-"},
			{"/sdk/go/github.com/till-project/till/sdk/go/@v/list", "*/*", http.StatusOK, http.StatusNotFound, "v"},
		} {
			want, says := q.status, q.says
			if none {
				want, says = q.closed, `"code"`
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, origin+q.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", q.accept)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			body := string(text)
			if answer.StatusCode != want || !strings.Contains(body, says) {
				t.Errorf("pages off: %t; %s for %s: %s\n%.300s", none, q.path, q.accept, answer.Status, body)
			}
		}
	}
}
