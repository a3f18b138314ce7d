package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"till"
	"till/checkout"
	"till/console/shell"
)

// The owner asks for a name on payment pages; the house reads it and confirms it; nobody else does.
func TestTheNameOnPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	shop, _, err := w.accounts.CreateClient(context.Background(), "Marché Total", till.Live, "a test")
	if err != nil {
		t.Fatal(err)
	}
	w.client = shop
	w.be(till.RoleOwner, "en")
	path := w.path("/settings")
	ask := func(name string) *httptest.ResponseRecorder {
		return w.send(path+"/pay-name", url.Values{"pay_name": {name}})
	}
	if a := ask("MTN Shop"); a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.Body.String(), "No word of it may be the name of an operator") || !strings.Contains(a.Body.String(), `value="MTN Shop"`) {
		t.Errorf("a name that is refused: %d", a.Code)
	}
	if a := ask("Chez Mado"); a.Header().Get("Location") != path+"?done=profile" {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	page := w.get(path)
	checkPage(t, "settings", page)
	for _, want := range []string{"Customers read: Marché Total", "“Chez Mado” waits since"} {
		if !strings.Contains(page, want) {
			t.Errorf("the settings lack %q", want)
		}
	}
	w.be(till.RoleViewer, "en")
	if a := ask("Chez Ada"); a.Code != http.StatusForbidden {
		t.Errorf("a viewer asks: %d", a.Code)
	}
	confirm := func(name string) string {
		return w.send(shell.Prefix+"/house/names", url.Values{"client": {shop.ID.String()}, "name": {name}}).Header().Get("Location")
	}
	w.be(till.RoleOwner, "en")
	if to := confirm("Chez Mado"); to != "" {
		t.Errorf("an owner confirms: %q", to)
	}
	w.be(till.RoleSupport, "en")
	house := w.get(shell.Prefix + "/house")
	if !strings.Contains(house, "Chez Mado") || strings.Contains(house, "/house/names") {
		t.Error("support does not see the name, or may confirm it")
	}
	w.be(till.RoleAdmin, "fr")
	house = w.get(shell.Prefix + "/house")
	checkPage(t, "house", house)
	if !strings.Contains(house, "Chez Mado") || !strings.Contains(house, "actuellement Marché Total") || !strings.Contains(house, `action="/console/house/names"`) {
		t.Error("the house does not see the name that waits")
	}
	if to := confirm("Chez Ada"); to != shell.Prefix+"/house?refused=name_changed" {
		t.Errorf("another name: %q", to)
	}
	if to := confirm("Chez Mado"); to != shell.Prefix+"/house?done=name_confirmed" {
		t.Errorf("the name: %q", to)
	}
	if house = w.get(shell.Prefix + "/house?done=name_confirmed"); strings.Contains(house, "Chez Mado") || !strings.Contains(house, "C’est confirmé.") {
		t.Error("the name waits still, or nothing is said")
	}
	w.be(till.RoleOwner, "en")
	if page := w.get(path); !strings.Contains(page, "Customers read: Chez Mado") {
		t.Error("the settings show the old name")
	}
	w.audited("client.pay_name_confirmed")
}

// A case about a page is on the merchant's first page, with the way to it, and is no payment to
// examine.
func TestCasesAboutPagesAreOnTheFirstPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	order, link := w.makeOrder("5000", "ORDER-1", "Two loaves"), w.makeLink("Alms", "")
	w.until(w.pay("242061230001", 5000, "ORDER-2", ""), till.Success)
	w.openCase(order, checkout.CasePageReported, "")
	w.openCase(link, checkout.CasePageAbuse, "")
	for lang, want := range map[string][]string{"en": {"A page was reported", "A link is slowed"}, "fr": {"Une page a été signalée", "Un lien est ralenti"}} {
		w.be(till.RoleOwner, lang)
		page := w.get(w.path("/home"))
		for _, text := range append(want, w.path("/checkouts/"+order.String()), w.path("/links/"+link.String())) {
			if !strings.Contains(page, text) {
				t.Errorf("%s: home lacks %q", lang, text)
			}
		}
		if strings.Contains(page, "examine=1") {
			t.Errorf("%s: a page is a payment to examine", lang)
		}
	}
}

// Where the house has switched pages off, nobody hands an address on.
func TestPagesThatAreOffAreNotHandedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	order := w.makeOrder("5000", "ORDER-1", "Two loaves")
	path := w.path("/checkouts/" + order.String())
	if page := w.get(path); !strings.Contains(page, `id="address"`) {
		t.Fatal("there is no address")
	}
	if err := checkout.SwitchPages(context.Background(), w.store, w.client.ID, true, "person:Awa", "poster"); err != nil {
		t.Fatal(err)
	}
	if page := w.get(path); strings.Contains(page, `id="address"`) || !strings.Contains(page, "has switched the payment pages of this merchant off") {
		t.Error("the address is handed on")
	}
}
