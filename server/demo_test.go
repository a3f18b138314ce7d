package server_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// The demo's link signs in with one click, as often as wanted, and the log has
// neither the link nor the cookie.
func TestTheDemoOpensTheConsole(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	c := testConfig(t)
	c.LoopbackOnly, c.Log = true, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := start(t, c)
	link := r.DemoConsole()
	if !strings.HasPrefix(link, "http://localhost:") {
		t.Fatalf("the link is %q", link)
	}
	for range 2 {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Jar: jar}
		answer, err := client.Get(link)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(page, []byte("Awa")) || strings.Contains(answer.Request.URL.Path, "enter") {
			t.Fatalf("%d at %s, %v\n%s", answer.StatusCode, answer.Request.URL, err, page)
		}
		at, err := url.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		cookies := jar.Cookies(at)
		if len(cookies) == 0 {
			t.Error("nobody is let in")
		}
		for _, c := range cookies { // of the session, and of the device
			if strings.Contains(log.String(), c.Value) {
				t.Errorf("the log has the cookie %s", c.Name)
			}
		}
	}
	token := link[strings.LastIndexByte(link, '/')+1:]
	if strings.Contains(log.String(), token) {
		t.Error("the log has the link")
	}
	answer, err := http.Get(strings.TrimSuffix(link, token) + strings.Repeat("x", len(token)))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("another token is answered %d", answer.StatusCode)
	}
}

// Where other machines reach the service, the demo has no people.
func TestTheDemoHasNoPeopleForOtherMachines(t *testing.T) {
	t.Parallel()
	if link := start(t, testConfig(t)).DemoConsole(); link != "" {
		t.Errorf("the link is %q", link)
	}
}
