package server_test

import (
	"net/http"
	"strings"
	"testing"

	"till/server"
)

// get asks for a page and does not follow where it leads.
func get(t *testing.T, url string) *http.Response {
	t.Helper()
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	return a
}

// The console is beside the API, on an address of its own, or nowhere.
func TestWhereTheConsoleIs(t *testing.T) {
	t.Parallel()
	beside := start(t, testConfig(t))
	api := strings.TrimSuffix(beside.BaseURL(), "/v1")
	if a := get(t, api+"/console/"); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/console/enter" || a.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("beside the API: %d to %q", a.StatusCode, a.Header.Get("Location"))
	}
	if a := get(t, api+"/consolation"); a.StatusCode != http.StatusNotFound || a.Header.Get("Api-Version") == "" {
		t.Errorf("a path that only begins so is answered %d", a.StatusCode)
	}
	if url := beside.ConsoleURL(); !strings.HasPrefix(url, "http://localhost:") || !strings.HasSuffix(url, "/console/") {
		t.Errorf("people are told to open %q", url)
	}

	c := testConfig(t)
	c.ConsoleListen = "127.0.0.1:0"
	apart := start(t, c)
	if a := get(t, strings.TrimSuffix(apart.BaseURL(), "/v1")+"/console/"); a.StatusCode != http.StatusNotFound {
		t.Errorf("with an address of its own, the API's answers %d", a.StatusCode)
	}
	if a := get(t, apart.ConsoleURL()); a.StatusCode != http.StatusSeeOther {
		t.Errorf("on its own address: %d", a.StatusCode)
	}

	c = testConfig(t)
	c.ConsoleListen, c.ConsoleURL, c.BaseURL = "127.0.0.1:0", "https://console.example.com/", "https://pay.example.com/v1"
	named := start(t, c)
	if url := named.ConsoleURL(); url != "https://console.example.com/console/" {
		t.Errorf("with a name of its own, people are told to open %q", url)
	}
	if got := named.ConsoleOrigin(); got != "https://console.example.com" {
		t.Errorf("links and passkeys are of %q", got)
	}
	for _, bad := range []string{"console.example.com", "https://console.example.com/there", "ftp://x", "https://"} {
		c := testConfig(t)
		c.ConsoleURL = bad
		if _, err := server.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), "--console-url") {
			t.Errorf("%q: %v", bad, err)
		}
	}

	c = testConfig(t)
	c.NoConsole = true
	off := start(t, c)
	if a := get(t, strings.TrimSuffix(off.BaseURL(), "/v1")+"/console/"); a.StatusCode != http.StatusNotFound || off.ConsoleURL() != "" {
		t.Errorf("switched off: %d", a.StatusCode)
	}
}
