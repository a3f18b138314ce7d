package e2e

import (
	"context"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
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
	if got := eval[string](p, `new URL(document.querySelector("a[data-share]").href).host + new URL(document.querySelector("a[data-share]").href).searchParams.get("text")`); !strings.HasPrefix(got, "wa.me") || !strings.Contains(got, "TABLE-7") {
		t.Errorf("the receipt is handed on as %q", got)
	}
	p.dress("dark", narrow)
	p.inspect("paid")
	p.dress("light", narrow)

	id := p.path()[strings.LastIndex(p.path(), "/")+1:]
	id, _, _ = strings.Cut(id, "?")
	p.open("/console/c/" + s.client + "/payments/" + id + "/receipt?paper=58")
	p.look("receipt")
	p.print()
	if visible := eval[[]string](p, `[...document.querySelectorAll(".top, .nav, .foot-bar, .band, main .btn, .unprinted")].filter((e) => e.offsetParent !== null && getComputedStyle(e).display !== "none").map((e) => e.className)`); len(visible) > 0 {
		t.Errorf("the print has %v", visible)
	}
	if width, pages := p.paper(); width != 58 || pages != 1 {
		t.Errorf("the receipt is printed on %d sheets of %d mm", pages, width)
	}
	for _, part := range []string{"TABLE-7", "5 000"} {
		if !p.shows(part) && !p.shows(strings.ReplaceAll(part, " ", ",")) {
			t.Errorf("the receipt lacks %s", part)
		}
	}
	if p.shows(phone) {
		t.Error("the receipt has the whole phone")
	}
	p.shoot(filepath.Join(shotsFolder, "E3-06-receipt-en-print-58mm.png"))
}

// print shows the page as it is printed.
func (p *page) print() {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}})
}

// paper returns the width in mm of what the page is printed on, and how many
// sheets it takes.
func (p *page) paper() (width, sheets int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	pdf, err := chromedp.Call(ctx, cdppage.PrintToPDF, cdppage.PrintToPDFParams{PreferCSSPageSize: new(true)})
	if err != nil {
		p.t.Fatal(err)
	}
	boxes := regexp.MustCompile(`/MediaBox \[0 0 ([0-9.]+)`).FindAllSubmatch(pdf.Data, -1)
	if boxes == nil {
		p.t.Fatal("the PDF has no page")
	}
	points, _ := strconv.ParseFloat(string(boxes[0][1]), 64) // digits and a point
	return int(points/72*25.4 + .5), len(boxes)
}
