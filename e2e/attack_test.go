package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
)

// E16: what other sites and other people try.
func TestE16Attacks(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	awa := newPage(t, "E16", s.origin)

	// A cookie that somebody has set beforehand is not the session afterwards.
	call(awa, network.SetCookie, network.SetCookieParams{Name: "till", Value: "the-attackers-own-token", URL: s.origin + "/"})
	awa.enterDemo(s, "Awa")
	session := awa.cookie("till")
	if session == "" || session == "the-attackers-own-token" {
		t.Fatalf("the session's cookie is %q", session)
	}
	if s.statusWith("the-attackers-own-token", "/console/me") == http.StatusOK {
		t.Error("the cookie from before is let in")
	}

	// Another site's form, and another site's frame.
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/frame" {
			fmt.Fprintf(w, `<iframe src="%s/console/me"></iframe>`, s.origin)
			return
		}
		fmt.Fprintf(w, `<form method="post" action="%s/console/me/language"><input name="language" value="fr"></form><script>document.forms[0].submit()</script>`, s.origin)
	}))
	t.Cleanup(evil.Close)
	awa.allow("request to elsewhere: " + evil.URL)
	awa.refused()
	awa.open(evil.URL + "/form")
	awa.until(`location.pathname === "/console/me/language"`)
	if status := eval[int](awa, `performance.getEntriesByType("navigation")[0].responseStatus`); status != http.StatusForbidden {
		t.Errorf("another site's form is answered %d", status)
	}
	awa.look("foreign-form")
	awa.open("/console/me")
	if awa.lang() != "en" {
		t.Error("another site's form has changed the language")
	}
	awa.allow("frame-ancestors")
	awa.allow("refused to connect")
	awa.open(evil.URL + "/frame")
	if got := eval[string](awa, `(() => { try { return document.querySelector("iframe").contentDocument?.body?.innerText || ""; } catch { return "of another site"; } })()`); got != "" && got != "of another site" {
		t.Errorf("framed: %q", got)
	}
	if n := eval[int](awa, `document.querySelector("iframe").contentWindow.length`); n != 0 {
		t.Error("the frame has frames")
	}

	// Return paths lead to pages of ours only.
	for _, to := range []string{"javascript:alert(1)", "//evil.example", "https://evil.example/", `/\evil.example`, "/console/../v1/payments"} {
		p := newPage(t, "E16", s.origin)
		p.open("/console/enter?to=" + strings.ReplaceAll(to, `\`, "%5C"))
		p.submit(".demo button")
		if at := eval[string](p, "location.href"); !strings.HasPrefix(at, s.origin+"/console/") {
			t.Errorf("after signing in with %s: %s", to, at)
		}
	}

	// A role is taken away: the next click is refused within a second.
	brice := newPage(t, "E16", s.origin)
	brice.enterDemo(s, "Brice")
	brice.open("/console/c/" + s.client + "/payments")
	awa.open("/console/c/" + s.client + "/people")
	awa.leave(func() {
		eval[bool](awa, `[...document.querySelectorAll("main li")].find((e) => e.innerText.startsWith("Brice")).querySelector('a[href*="remove="]').click(), true`)
	})
	awa.follow("#remove .btn.danger")
	taken := time.Now()
	brice.refused()
	for asked := taken; s.statusWith(brice.cookie("till"), "/console/c/"+s.client+"/payments") == http.StatusOK; asked = time.Now() {
		if asked.Sub(taken) > time.Second {
			t.Fatal("who asks a second after the role was taken still gets the page")
		}
		time.Sleep(50 * time.Millisecond)
	}
	brice.open("/console/c/" + s.client + "/payments")
	brice.step = awa.step
	brice.look("role-taken")
	if brice.is(`document.querySelector("table")`) {
		t.Error("the list is still shown")
	}
}

// statusWith asks for a page with a cookie, as a browser of its own.
func (s *till) statusWith(token, path string) int {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.origin+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "till", Value: token})
	a, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	a.Body.Close()
	return a.StatusCode
}
