package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// E9: an endpoint fails, its answer is shown, what failed is sent again, a range
// too; its secret is changed. A secret is shown once.
func TestE9Webhooks(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	var taken atomic.Int64
	broken.Store(true)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			http.Error(w, "the till of the shop <b>is jammed</b>", http.StatusInternalServerError)
			return
		}
		taken.Add(1)
	}))
	t.Cleanup(receiver.Close)
	s := startDev(t)
	p := newPage(t, "E9", s.origin)
	p.enterDemo(s, "Didier")
	hooks := "/console/c/" + s.client + "/webhooks"
	p.open(hooks)
	p.look("none")
	p.refused()
	p.fill("#url", "ftp://shop.example.com/webhooks")
	p.follow(`main form[action="` + hooks + `"] button`)
	p.until(`document.querySelector("[role=alert], .wrong")`)
	if got := eval[string](p, `document.querySelector("#url").value`); got != "ftp://shop.example.com/webhooks" {
		t.Errorf("what was typed is lost: %q", got)
	}
	p.look("wrong-address")
	p.fill("#url", receiver.URL+"/webhooks")
	p.fill("#description", "The shop's till")
	p.follow(`main form[action="` + hooks + `"] button`)
	first := p.onceShown("whsec_")
	p.look("secret-shown-once")
	p.onceForgotten(first)

	id := s.pay("242061234567", "5000", "ORDER-1042", nil)
	s.until(id, "success")
	p.open("/console/c/" + s.client + "/payments/" + id)
	p.until(pageText + `.includes("fails since")`)
	if n := eval[int](p, `[...document.querySelectorAll(".line > li")].filter((e) => /The shop's till: .* waits?/.test(e.innerText)).length`); n != 1 {
		t.Errorf("an endpoint that fails has %d lines in a timeline", n)
	}
	p.sees("from request to payment")
	p.look("timeline")
	p.speak("fr")
	p.dress("light", narrow)
	p.sees("en échec depuis")
	p.inspect("timeline")
	p.speak("en")
	p.dress("light", wide)
	p.open(hooks)
	p.until(pageText + `.includes("500")`) // the reason, in a sentence
	p.look("fails")
	p.follow(`#endpoints a.name`)
	p.until(`document.querySelector("#endpoint .log a[data-open]")`)
	p.look("deliveries")
	p.dress("dark", narrow)
	p.inspect("deliveries")
	p.dress("light", wide)
	endpoint := p.path()
	p.follow(`#endpoint .log a[data-open]`)
	p.sees("the till of the shop <b>is jammed</b>")
	p.look("answer")
	if p.is(`[...document.querySelectorAll("main b")].some((e) => e.innerText === "is jammed")`) {
		t.Error("the receiver's answer became markup")
	}

	broken.Store(false)
	p.follow(`form[action$="/again"] button`)
	untilTrue(t, "what was sent again has arrived", func() bool { return taken.Load() > 0 })
	p.open(endpoint)
	p.submit(`form[action$="/again"] button[name="failed"]`)
	p.until(`document.querySelector(".notice")`)
	p.open(endpoint)
	p.fill("#from", "1")
	p.fill("#to", "2")
	before := taken.Load()
	p.follow(`form[action$="/again"]:has(#from) button`)
	untilTrue(t, "the range has arrived", func() bool { return taken.Load() >= before+2 })
	p.open(endpoint)
	p.look("works-again")

	eval[bool](p, `document.querySelector('form[action$="/rotate"]').closest("details").open = true`)
	p.follow(`form[action$="/rotate"] button`)
	second := p.onceShown("whsec_")
	if second == first {
		t.Error("the new secret is the old one")
	}
	p.onceForgotten(second)
}

// onceShown returns the secret of the page that shows one.
func (p *page) onceShown(prefix string) string {
	p.t.Helper()
	p.until(`document.querySelector("#secret")?.value.startsWith(` + quote(prefix) + `)`)
	return eval[string](p, `document.querySelector("#secret").value`)
}

// onceForgotten leaves the page of a secret: the way back does not show it.
func (p *page) onceForgotten(secret string) {
	p.t.Helper()
	p.follow("main a.btn.act")
	p.allow("net::ERR_CACHE_MISS") // what the browser says of a form that it does not send again
	_ = chromedp.Do(p.ctx, chromedp.NavigateBack())
	shown := eval[string](p, `document.documentElement.outerHTML + [...document.querySelectorAll("input")].map((e) => e.value).join(" ")`)
	if strings.Contains(shown, secret[10:]) {
		p.t.Error("the way back shows the secret again")
	}
}

// E9: a key is made, shown once, used, and revoked.
func TestE9Keys(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	p := newPage(t, "E9k", s.origin)
	p.enterDemo(s, "Awa")
	keys := "/console/c/" + s.client + "/keys"
	p.open(keys)
	p.look("keys")
	eval[bool](p, `document.querySelector('form[action="`+keys+`"]').closest("details").open = true`)
	p.fill("#name", "shop-1")
	eval[bool](p, `(() => { for (const b of document.querySelectorAll('input[name="scopes"]')) b.checked = b.value === "payments:read"; return true; })()`)
	p.follow(`form[action="` + keys + `"] button`)
	key := p.onceShown("till_test_")
	p.look("key-shown-once")
	s.api(key, http.MethodGet, "/payments", nil, nil)
	p.onceForgotten(key)

	p.open(keys)
	revoke := `[...document.querySelectorAll(".cards li")].find((e) => e.innerText.includes("shop-1"))`
	p.until(revoke)
	eval[bool](p, revoke+`.querySelector('form[action$="/revoke"]').closest("details").open = true`)
	p.leave(func() { eval[bool](p, revoke+`.querySelector('form[action$="/revoke"] button').click(), true`) })
	p.look("revoked")
	r, err := http.NewRequest(http.MethodGet, s.origin+"/v1/payments", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	untilTrue(t, "the key is refused", func() bool { // a key that was just used is known for a moment
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode == http.StatusUnauthorized
	})
}
