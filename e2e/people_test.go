package e2e

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"till/internal/qrcode"
)

const password = "quatre mots pour entrer"

// enterDemo signs in as one of the demo people.
func (p *page) enterDemo(s *till, name string) {
	p.t.Helper()
	p.open(s.console) // the first of them
	if name == "Awa" {
		return
	}
	p.open("/console/enter")
	p.leave(func() {
		eval[bool](p, `[...document.querySelectorAll(".demo button")].find((b) => b.innerText.startsWith(`+quote(name)+`)).click(), true`)
	})
}

// E2: an owner invites by QR, the invited joins with a password and codes by app,
// comes back with a code and with a recovery code, signs out everywhere; wrong
// passwords make wait.
func TestE2People(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	awa := newPage(t, "E2", s.origin)
	awa.enterDemo(s, "Awa")
	awa.open("/console/c/" + s.client + "/people")
	awa.fill("#name", "Hortense Mboungou-Nzaba")
	awa.fill("#login", "hortense@example.com")
	awa.choose("#role", "accountant")
	awa.follow(`form[action$="/people/invite"] button`)
	awa.look("invitation")
	link := eval[string](awa, `document.querySelector("#link").value`)
	if text := eval[string](awa, `document.querySelector("[data-share]").dataset.share`); !strings.Contains(text, link) || !strings.Contains(text, "invites you to Till as accountant") {
		t.Errorf("the invitation is handed on as %q", text)
	}
	drawn, err := qrcode.SVG(link, awa.value("main svg", "aria-label"))
	if err != nil {
		t.Fatal(err)
	}
	if got := eval[string](awa, `document.querySelector("main svg:not(.i) path").getAttribute("d")`); !strings.Contains(string(drawn), got) {
		t.Error("the QR code is not that of the link")
	}

	h := newPage(t, "E2", s.origin)
	h.dress("light", narrow)
	h.step = awa.step
	h.open(link)
	if h.text("main") == "" || !h.shows("Awa") {
		t.Error("the page does not say who invites")
	}
	h.look("join")
	h.fill("#password", password)
	h.submit(`form[action^="/console/join/"] > button:last-of-type`)
	h.until(`location.pathname === "/console/me"`)
	h.look("factor-missing")

	h.follow(`a[href="/console/me/totp"]`)
	h.look("totp")
	secret := strings.ReplaceAll(h.text("main .mono"), " ", "")
	now := time.Now().Unix() / 30
	h.fill("#code", totp(t, secret, now))
	h.follow("main form button")
	h.until(`document.querySelectorAll("ol.code li").length === 8`)
	h.look("codes")
	codes := eval[[]string](h, `[...document.querySelectorAll("ol.code li")].map((e) => e.innerText)`)

	h.signOut()
	h.enter("hortense@example.com", password)
	h.look("code")
	h.fill("#code", totp(t, secret, now)) // a step is used once
	h.follow("main form button")
	h.until(`document.querySelector("[role=alert]")`)
	h.fill("#code", totp(t, secret, now+1))
	h.follow("main form button")
	h.until(`location.pathname.startsWith("/console/c/")`)

	h2 := newPage(t, "E2", s.origin)
	h2.enter("hortense@example.com", password)
	h2.fill("#code", codes[0])
	h2.follow("main form button")
	h2.until(`location.pathname.startsWith("/console/c/")`)
	h2.open("/console/me")
	h2.step = h.step
	h2.look("two-devices")
	h2.submit(`form[action="/console/me/sessions"] button`)
	h2.until(`!document.querySelector('form[action="/console/me/sessions"]')`)
	h.open("/console/me")
	h.until(`location.pathname === "/console/enter"`)

	// Six wrong passwords wait; where the machine is slow the first pauses, of a
	// second and two, are over before the next try.
	waits := func() bool { return strings.ContainsAny(h.text("[role=alert]"), "0123456789") }
	h.refused() // who has to wait is answered 429
	for n := 0; n < 6 || n < 12 && !waits(); n++ {
		h.enter("hortense@example.com", fmt.Sprintf("a wrong password %d", n))
		h.until(`document.querySelector("[role=alert]")`)
	}
	h.step = h2.step
	h.look("wait")
	if !waits() {
		t.Errorf("after six wrong passwords: %s", h.text("[role=alert]"))
	}
	for range 60 { // the pause is half a minute at most
		h.enter("hortense@example.com", password)
		if h.is(`document.querySelector("#code")`) {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	h.fill("#code", codes[0]) // used
	h.follow("main form button")
	h.until(`document.querySelector("[role=alert]")`)
	for range 60 { // a wrong code makes wait too
		h.fill("#code", codes[1])
		h.follow("main form button")
		if h.is(`location.pathname.startsWith("/console/c/")`) {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Error("a recovery code does not let in")
}

// E20: an owner takes somebody's access away in two clicks: the page says first what
// ends, then what was done.
func TestE20Removing(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	didier := newPage(t, "E20", s.origin)
	didier.enterDemo(s, "Didier")
	hooks := "/console/c/" + s.client + "/webhooks"
	didier.open(hooks)
	didier.fill("#url", s.origin+"/nobody-listens-here")
	didier.follow(`main form[action="` + hooks + `"] button`)
	didier.onceShown("whsec_")

	awa := newPage(t, "E20", s.origin)
	awa.enterDemo(s, "Awa")
	people := "/console/c/" + s.client + "/people"
	for i, lang := range []struct{ lang, button, ends, done string }{
		{"fr", "Retirer de ce marchand", "Elle est déconnectée de l’appareil", ""},
		{"en", "Remove from this merchant", "signed out of the device", "Their keys are revoked, and their endpoints switched off."},
	} {
		awa.speak(lang.lang)
		awa.open(people)
		awa.dress("light", []int{narrow, wide}[i])
		awa.look("people")
		row := `[...document.querySelectorAll(".rows > li")].find((e) => e.innerText.includes("Didier"))`
		if got := eval[string](awa, row+`.querySelector('a[href*="remove="]').innerText`); !strings.HasPrefix(got, lang.button) {
			t.Errorf("the button is called %q", got)
		}
		awa.leave(func() { eval[bool](awa, row+`.querySelector('a[href*="remove="]').click(), true`) })
		awa.sees(lang.ends)
		awa.sees(s.origin + "/nobody-listens-here")
		awa.look("remove")
		if i == 0 {
			awa.follow(`#remove a.btn`) // no
			continue
		}
		awa.click(`#remove [name="made"]`)
		awa.follow(`#remove .btn.danger`)
		awa.sees(lang.done)
		awa.look("removed")
	}
	if awa.is(`document.querySelector("main").innerText.includes("Didier")`) {
		t.Error("Didier is still listed")
	}
	awa.open(hooks)
	awa.sees("off")
	didier.open("/console/me")
	didier.until(`location.pathname === "/console/enter"`)
}

// enter types login and password at the sign-in page.
func (p *page) enter(login, password string) {
	p.t.Helper()
	p.open("/console/enter")
	p.fill("#login", login)
	p.fill("#password", password)
	p.follow(`form[action="/console/enter"] button`)
}

// signOut leaves by the profile, which every person has.
func (p *page) signOut() {
	p.t.Helper()
	p.open("/console/me")
	p.submit(`form[action="/console/leave"] button`)
	p.until(`location.pathname === "/console/enter"`)
}

// totp is what an authenticator app shows (RFC 6238).
func totp(t *testing.T, secret string, step int64) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	h := hmac.New(sha1.New, key)
	_ = binary.Write(h, binary.BigEndian, step) // a hash takes everything
	sum := h.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1_000_000)
}
