package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// find types a text into the search of the frame.
func (p *page) find(text string) {
	p.t.Helper()
	p.fill(".find input", text)
	p.leave(func() { p.press("\r") })
}

// E6: search by phone, receipt, reference, amount and id; an address never holds
// the number; nobody finds what is another merchant's.
func TestE6Search(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	id := s.pay("242061234567", "7350", "ORDER-1042", nil)
	receipt := s.until(id, "success").Receipt
	// Another merchant has a payment that looks alike.
	var other struct {
		ClientID string `json:"client_id"`
		APIKey   string `json:"api_key"`
	}
	s.runJSON(&other, "client", "create", "--name", "Pharmacie Kintélé", "--mode", "test")
	demo := s.key
	s.key = other.APIKey
	foreign := s.pay("242061234568", "7351", "ORDER-2042", nil)
	foreignReceipt := s.until(foreign, "success").Receipt
	s.key = demo

	p := newPage(t, "E6", s.origin)
	p.enterDemo(s, "Awa")
	p.open("/console/c/" + s.client + "/payments")
	for _, typed := range []string{"+242 06 123 45 67", "242061234567", receipt, "ORDER-1042", "ORDER-10", "7350", "7 350 XAF", id, "order-1042", "1042", "7.350 FCFA", "567", strings.ToLower(receipt), id[:13]} {
		p.find(typed)
		p.until(`document.querySelector("main a[href$='` + id + `']") || location.pathname.endsWith("` + id + `")`)
		if at := p.path(); strings.Contains(at, "1234567") || strings.Contains(at, "45%2067") || strings.Contains(at, "?q=") || strings.Contains(at, "&q=") {
			t.Errorf("the address holds what was typed: %s", at)
		}
		if typed == "242061234567" {
			p.look("by-phone")
		}
	}
	p.seek(s.client, id)

	p.open("/console/c/" + s.client + "/payments")
	for _, typed := range []string{"242061234568", foreignReceipt, "ORDER-2042", "7351", foreign} {
		p.find(typed)
		if p.is(`document.querySelector("main a[href*='/payments/']")`) {
			t.Errorf("%s finds another merchant's payment: %s", typed, p.path())
		}
	}
	p.look("nothing-found")
	p.refused()
	if status := p.answered("/console/c/" + s.client + "/payments/" + foreign); status != 404 {
		t.Errorf("another merchant's payment: %d", status)
	}
	if status := p.answered("/console/c/" + other.ClientID + "/payments"); status != 404 {
		t.Errorf("another merchant's list: %d", status)
	}
	p.look("not-there")

	p.open("/console/c/" + s.client + "/payments")
	p.find(s.key)
	if strings.Contains(p.path(), s.key[10:]) || p.shows(s.key[10:]) {
		t.Error("a secret is repeated")
	}
	p.look("secret")

	// The house looks into every merchant.
	house := newPage(t, "E6", s.origin)
	house.enterDemo(s, "Esther")
	house.open("/console/c/" + other.ClientID + "/payments")
	house.find("ORDER-2042")
	house.until(`document.querySelector("main a[href$='` + foreign + `']")`)
	house.step = p.step
	house.look("house")

	// Or over all merchants at once, from its own page.
	for typed, want := range map[string]string{"ORDER-2042": foreign, "ORDER-1042": id, "+242 06 123 45 68": foreign, foreignReceipt: foreign} {
		house.open("/console/house/search")
		house.find(typed)
		house.until(`document.querySelector("main a[href$='` + want + `']")`)
		if at := house.path(); strings.Contains(at, "1234568") || strings.Contains(at, "45%2068") {
			t.Errorf("the address holds the phone: %s", at)
		}
	}
	house.look("every-merchant")
}

// seek looks at what is found while somebody types: in both languages, by keyboard, on a phone; two characters find
// nothing yet, and Escape takes it away.
func (p *page) seek(client, id string) {
	p.t.Helper()
	link := `document.querySelector("#found a[href$='` + id + `']")`
	for _, lang := range []string{"fr", "en"} {
		p.open("/console/c/" + client + "/payments")
		p.speak(lang)
		p.fill(".find input", "104")
		p.until(link)
		p.look("while-typing-" + lang)
		p.press(kb.Escape)
		p.until(`!document.getElementById("found")`)
	}
	p.fill(".find input", "1042")
	p.until(link)
	p.press(kb.ArrowDown)
	p.until(`document.activeElement === ` + link)
	p.leave(func() { p.press("\r") })
	if at := p.path(); !strings.HasSuffix(at, "/payments/"+id) {
		p.t.Errorf("Enter led to %s", at)
	}
	p.dress("light", 360)
	p.open("/console/c/" + client + "/search")
	p.fill("#q", "order")
	p.until(link)
	p.look("while-typing-narrow")
	p.dress("light", 1280)
}
