package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// E1: nobody can sign in, a command prints a link, a chat opens it first, and
// the first person comes in with a passkey.
func TestE1FirstRun(t *testing.T) {
	t.Parallel()
	s := startServe(t, t.TempDir())
	p := newPage(t, "E1", s.origin)
	p.open("/console")
	p.sees("till person invite --house admin")
	p.look("nobody")

	out := s.run("person", "invite", "--house", "admin", "--name", "Awa N.", "--base-url", s.origin+"/v1")
	_, link, found := strings.Cut(out, s.origin+"/console/join/")
	if !found || !strings.Contains(out, "█") && !strings.Contains(out, "▀") {
		t.Fatalf("no link or no QR code: %s", out)
	}
	link = s.origin + "/console/join/" + strings.Fields(link)[0]
	for range 2 {
		preview, err := http.Get(link)
		if err != nil || preview.StatusCode != http.StatusOK {
			t.Fatalf("a preview of the link: %v %v", preview, err)
		}
		preview.Body.Close()
	}

	p.addAuthenticator()
	p.open(link)
	p.look("invited")
	p.fill("#login", "awa@example.com")
	p.follow(`button[formaction$="/passkey"]`)
	p.look("passkey")
	p.click("[data-passkey-create]")
	p.until(`!location.pathname.includes("/join/") && document.readyState === "complete"`)
	if p.cookie("till") == "" {
		t.Fatal("not signed in after the passkey was made")
	}
	p.until(`location.pathname === "/console/house"`)
	p.ticked("1 of 6", "Second factor") // the passkey
	p.look("joined")
	p.dress("dark", narrow)
	p.inspect("joined")
	p.dress("light", wide)

	// What is done is ticked off.
	s.run("client", "create", "--name", "Boulangerie Mapassa", "--mode", "live")
	s.run("verify")
	p.open("/console/house")
	p.ticked("3 of 6", "Second factor", "First live merchant", "Books proven, secret kept")
	p.follow(`.todo a[href="/console/house/people"]`)
	p.sees("Awa N.")
	colleague := newPage(t, "E1", s.origin)
	colleague.open(s.invite("--house", "support", "--name", "Félix M.", "--login", "felix@example.com"))
	colleague.fill("#password", password)
	colleague.submit(`form[action^="/console/join/"] > button:last-of-type`)
	colleague.until(`location.pathname === "/console/me"`) // the house needs a second factor
	p.open("/console/house")
	p.ticked("4 of 6", "Second factor", "A second person", "First live merchant", "Books proven, secret kept")

	other := newPage(t, "E1", s.origin)
	other.step = p.step
	other.refused()
	other.open(link)
	other.sees("used")
	other.look("spent")

	p.open("/console/me")
	p.look("profile")
	before := p.cookie("till")
	p.follow(`form[action="/console/leave"] button`)
	p.enterByPasskey()
	if after := p.cookie("till"); after == "" || after == before {
		t.Fatal("not signed in by the passkey")
	}
	if status := p.answered("/console/me"); status != http.StatusOK {
		t.Errorf("the profile after signing in by the passkey: %d", status)
	}
}

// ticked holds the list of the first admin to what is done of it.
func (p *page) ticked(count string, done ...string) {
	p.t.Helper()
	p.sees(count)
	got := eval[[]string](p, `[...document.querySelectorAll(".todo:has(.paid) .txt")].map((e) => e.innerText)`)
	if !slices.Equal(got, done) {
		p.t.Errorf("%s, step %d: done are %q, want %q", p.story, p.step, got, done)
	}
}

// addAuthenticator gives the tab a passkey device that agrees to everything.
func (p *page) addAuthenticator() {
	p.t.Helper()
	call(p, webauthn.Enable, webauthn.EnableParams{})
	call(p, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true}})
}

// enterByPasskey signs in at the sign-in page. The browser may offer the passkey
// in the field's own menu at once, and then there is nothing to click.
func (p *page) enterByPasskey() {
	p.t.Helper()
	p.until(`location.pathname !== "/console/enter" || document.querySelector("[data-passkey-get]")?.hidden === false`)
	if p.is(`location.pathname === "/console/enter"`) {
		_, _ = try[chromedp.Void](p, `document.querySelector("[data-passkey-get]")?.click()`) // it may be gone already
	}
	p.until(`location.pathname !== "/console/enter" && location.pathname !== "/console/enter/passkey"`)
}
