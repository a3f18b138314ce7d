package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// E3: a cashier asks at 360 px, the customer types the PIN in another tab, the
// page says paid without a reload, and the receipt fits the paper.
func TestE3Collect(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	customer := newPage(t, "E3", s.origin)
	customer.enterDemo(s, "Awa")
	customer.open(s.sandboxPath())
	phone := phoneOfHandset(customer)

	p := newPage(t, "E3", s.origin)
	p.enterDemo(s, "Brice")
	p.dress("light", narrow)
	p.open("/console/c/" + s.client + "/collect")
	p.look("ask")
	p.fill("#desk-amount", "5 000")
	p.fill("#desk-phone", "12")
	p.follow(".desk button.big")
	p.until(`document.querySelector("[role=alert]")`)
	p.look("wrong-phone")
	if got := eval[string](p, `document.querySelector("#desk-amount").value`); !strings.Contains(got, "000") {
		t.Errorf("what was typed is lost: %q", got)
	}
	p.fill("#desk-phone", "+"+phone)
	p.fill("#desk-reference", "TABLE-7")
	p.follow(".desk button.big")
	if p.is(`document.querySelector('.desk input[name="sure"][value^="242"]')`) { // the number in full form, before it is asked
		p.look("sure")
		p.follow(".desk button.big")
	}
	p.until(`location.pathname.includes("/collect/")`)
	p.look("waiting")
	eval[bool](p, `window.sameDocument = true`)

	customer.until(`document.querySelector("#pin")`)
	customer.fill("#pin", "1234")
	customer.follow(`.prompt button[value="ok"]`)
	p.until(`document.querySelector("main .paid, main .chip.paid")`)
	if !p.is(`window.sameDocument`) {
		t.Error("the page was loaded again")
	}
	p.look("paid")
	p.dress("dark", narrow)
	p.inspect("paid")
	p.dress("light", narrow)

	id := p.path()[strings.LastIndex(p.path(), "/")+1:]
	id, _, _ = strings.Cut(id, "?")
	p.open("/console/c/" + s.client + "/payments/" + id + "/receipt")
	p.look("receipt")
	p.print()
	if visible := eval[[]string](p, `[...document.querySelectorAll(".top, .nav, .foot-bar, .band, main .btn, .unprinted")].filter((e) => e.offsetParent !== null && getComputedStyle(e).display !== "none").map((e) => e.className)`); len(visible) > 0 {
		t.Errorf("the print has %v", visible)
	}
	// 58 mm paper prints 48 mm, about 181 px.
	if width := eval[float64](p, `document.querySelector(".paper").getBoundingClientRect().width`); width > 220 {
		t.Errorf("the receipt is %v px wide on 58 mm paper", width)
	}
	for _, part := range []string{"TABLE-7", "5 000"} {
		if !p.shows(part) && !p.shows(strings.ReplaceAll(part, " ", ",")) {
			t.Errorf("the receipt lacks %s", part)
		}
	}
	if p.shows(phone) {
		t.Error("the receipt has the whole phone")
	}
	p.theme = "print"
	p.inspect("receipt")
}

// print shows the page as it is printed.
func (p *page) print() {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}})
}
