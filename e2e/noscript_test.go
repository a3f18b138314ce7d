package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// E13: without script a person signs in, lists, filters, opens a payment and
// gets the CSV.
func TestE13WithoutScript(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	paid := s.pay("242061234567", "7350", "ORDER-1042", nil)
	declined := s.pay("242061230002", "2500", "ORDER-1043", nil)
	s.until(paid, "success")
	s.until(declined, "failed")
	link := s.invite("--client", s.client, "--role", "viewer", "--name", "Inès", "--login", "ines@example.com")

	p := newPage(t, "E13", s.origin)
	p.withoutScript(true)
	p.open(link)
	p.fill("#password", password)
	p.click(`form[action^="/console/join/"] > button:last-of-type`)
	p.until(`location.pathname.startsWith("/console/c/")`)
	p.open("/console/me")
	p.follow(`form[action="/console/leave"] button`)
	p.fill("#login", "ines@example.com")
	p.fill("#password", password)
	p.look("sign-in")
	p.click(`form[action="/console/enter"] button`)
	p.until(`location.pathname.startsWith("/console/c/")`)

	p.open("/console/c/" + s.client + "/payments")
	p.sees("ORDER-1042")
	p.click(`.filters details:nth-of-type(2) summary`)
	p.until(`document.querySelector(".filters details[open] a")`)
	p.look("filter")
	p.click(`.filters details[open] a[href*="state=success"]`)
	p.until(`location.search.includes("state=success") && document.querySelector("main a[href$='` + paid + `']")`)
	if p.shows("ORDER-1043") {
		t.Error("the filter lets the declined payment through")
	}
	p.click(`main a[href$='` + paid + `']`)
	p.until(`document.querySelector(".going .say")`)
	p.look("payment")

	p.open("/console/c/" + s.client + "/payments")
	file := p.download(p.value(`a[href*="payments.csv"]`, "href"))
	if lines := strings.Split(strings.TrimSpace(file), "\n"); len(lines) != 3 || !strings.Contains(file, "ORDER-1042") || strings.Contains(file, "242061234567") {
		t.Errorf("CSV of two payments, with phones masked:\n%s", file)
	}
}

// withoutScript says whether the page's scripts run.
func (p *page) withoutScript(off bool) {
	p.t.Helper()
	p.noScript = off
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: off})
}

// download gets a file with the page's session.
func (p *page) download(path string) string {
	p.t.Helper()
	return p.get(path, "text/csv")
}

// get asks for something of a type with the page's session.
func (p *page) get(path, kind string) string {
	p.t.Helper()
	r, err := http.NewRequest(http.MethodGet, p.origin+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "till", Value: p.cookie("till")})
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), kind) {
		p.t.Fatalf("%s: %s %v %v", path, a.Status, a.Header, err)
	}
	return string(text)
}
