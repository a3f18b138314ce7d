package e2e

import (
	"strings"
	"testing"
)

// A cashier makes an address at 360 px, a customer pays on its page without script, and the
// cashier's page says so without being loaded again.
func TestACashierSendsAnAddress(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	p := newPage(t, "address", s.origin)
	p.enterDemo(s, "Brice")
	p.dress("light", narrow)
	p.open("/console/c/" + s.client + "/checkouts/new")
	p.look("new")
	p.fill("#order-amount", "1,50")
	p.submit("main form.desk button")
	p.until(`document.querySelector("[role=alert]")`)
	p.look("wrong-amount")
	p.fill("#order-amount", "5 000")
	p.fill("#order-description", "Two loaves, coffee")
	p.fill("#order-reference", "TABLE-7")
	p.submit("main form.desk button")
	p.until(`document.querySelector("#address")`)
	p.look("made")
	p.dress("dark", wide)
	p.inspect("made")
	p.dress("light", narrow)
	address := p.value("#address", "value")
	if text := eval[string](p, `new URL(document.querySelector("a[data-share]").href).searchParams.get("text")`); !strings.Contains(text, address) || !strings.Contains(text, "Two loaves") {
		t.Errorf("the address is handed on as %q", text)
	}
	eval[bool](p, `window.sameDocument = true`)

	customer := newPage(t, "address-customer", s.origin)
	customer.withoutScript(true)
	customer.open(address[strings.Index(address, "/p/"):])
	customer.sees("Two loaves, coffee")
	customer.payWith("06 123 45 67")
	customer.until(`document.title.startsWith("✓ Paid")`)
	customer.alone()

	p.until(`document.querySelector("main .chip.paid")`)
	if !p.is(`window.sameDocument`) {
		t.Error("the page was loaded again")
	}
	p.look("paid")
	p.speak("fr")
	p.inspect("payée")
	p.dress("light", wide)
	p.inspect("payée")
	p.submit(`#checkout .rows a[href*="/payments/"]`)
	p.until(`location.pathname.includes("/payments/")`)
	p.submit(`dl.rows a[href*="/checkouts/"]`)
	p.until(`location.pathname.includes("/checkouts/")`)
	p.open("/console/c/" + s.client + "/checkouts")
	p.inspect("liste")
	p.dress("light", narrow)
	p.inspect("liste")
}

// link makes a link by the form, and opens its page.
func (p *page) link(s *till, title, amount string) {
	p.t.Helper()
	p.open("/console/c/" + s.client + "/links/new")
	p.fill("#link-title", title)
	p.fill("#link-amount", amount)
	p.fill("#link-label", "Invoice number")
	p.submit("main form.desk button")
	p.until(`document.querySelector("#address")`)
}

// A cashier makes a link whose amount the customer types, and prints it on A6 and as a tent. A
// customer pays on it without script, and what came in is on the link's page.
func TestACashierShowsALink(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	p := newPage(t, "link", s.origin)
	p.enterDemo(s, "Brice")
	p.dress("light", narrow)
	p.open("/console/c/" + s.client + "/links")
	p.look("none")
	p.link(s, "Table 4", "")
	p.look("made")
	path, address := p.path(), p.value("#address", "value")

	customer := newPage(t, "link-customer", s.origin)
	customer.withoutScript(true)
	customer.open(address[strings.Index(address, "/p/"):])
	customer.sees("Table 4")
	customer.fill("#amount", "700")
	customer.fill("#reference", "F-12")
	customer.payWith("06 123 45 67")
	customer.until(`document.title.startsWith("✓ Paid")`)
	customer.alone()

	p.until(`document.querySelector("#opened .chip.paid")`)
	p.look("paid")
	for _, c := range []struct {
		paper  string
		width  int
		inside string
	}{{"a6", 105, "Table 4"}, {"tent", 210, "Table 4"}} {
		p.dress("light", narrow)
		p.open(path + "/print?paper=" + c.paper)
		p.look("print-" + c.paper)
		p.print()
		if width, sheets := p.paper(); width != c.width || sheets != 1 {
			t.Errorf("%s is printed on %d sheets of %d mm", c.paper, sheets, width)
		}
		p.sees(c.inside)
	}
	p.dress("light", narrow)
	p.open(path)
	p.speak("fr")
	p.inspect("payé")
	p.dress("dark", wide)
	p.inspect("payé")
	p.open("/console/c/" + s.client + "/links")
	p.inspect("liste")
	p.dress("light", narrow)
	p.inspect("liste")
}
