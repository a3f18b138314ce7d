package e2e

import (
	"strings"
	"testing"
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
	for _, typed := range []string{"+242 06 123 45 67", "242061234567", receipt, "ORDER-1042", "ORDER-10", "7350", "7 350 XAF", id} {
		p.find(typed)
		p.until(`document.querySelector("main a[href$='` + id + `']") || location.pathname.endsWith("` + id + `")`)
		if at := p.path(); strings.Contains(at, "1234567") || strings.Contains(at, "45%2067") {
			t.Errorf("the address holds the phone: %s", at)
		}
		if typed == "242061234567" {
			p.look("by-phone")
		}
	}
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
