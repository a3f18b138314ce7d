package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till/internal/qrcode"
)

// E18: the handset on a second device, by a QR code; nothing of another merchant
// is reached by it, and live merchants have none.
func TestE18OwnPhone(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	shop := newPage(t, "E18", s.origin)
	shop.enterDemo(s, "Awa")
	shop.open(s.sandboxPath())
	shop.follow(`.head a[href*="/sandbox/phone"]`)
	shop.look("qr")
	link := eval[string](shop, `document.querySelector("main input[readonly]").value`)
	drawn, err := qrcode.SVG(link, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := eval[string](shop, `document.querySelector("main svg:not(.i) path").getAttribute("d")`); !strings.Contains(string(drawn), got) {
		t.Error("the QR code is not that of the link")
	}
	if strings.Contains(link, "1234567") {
		t.Errorf("the link holds the number: %s", link)
	}

	origin, token, _ := strings.Cut(link, "/phone/") // by an address that a phone in the same network knows
	phone := newPage(t, "E18", origin)
	phone.dress("light", narrow)
	phone.step = shop.step
	phone.open(link)
	phone.look("idle")
	shop.open(s.sandboxPath())
	id := shop.order()
	phone.until(`document.querySelector("#pin")`)
	phone.look("prompt")
	phone.dress("dark", narrow)
	phone.inspect("prompt")
	phone.fill("#pin", "1234")
	phone.follow(`.prompt button[value="ok"]`)
	s.until(id, "success")
	shop.until(`document.querySelector("#order .chip.paid")`)
	shop.step = phone.step
	shop.look("paid")
	if phone.cookie("till") != "" {
		t.Error("the phone is signed in")
	}

	// The token opens one number of one merchant.
	phone.refused()
	changed := "A"
	if token[20] == 'A' {
		changed = "B"
	}
	if status := phone.answered("/phone/" + token[:20] + changed + token[21:]); status != http.StatusNotFound {
		t.Errorf("a token that somebody changed: %d", status)
	}
	phone.step = shop.step
	phone.look("no-such-token")
	var other struct {
		ClientID string `json:"client_id"`
		APIKey   string `json:"api_key"`
	}
	s.runJSON(&other, "client", "create", "--name", "Pharmacie Kintélé", "--mode", "test")
	demo := s.key
	s.key = other.APIKey
	foreign := s.pay("242061230000", "5000", "ORDER-1", nil) // it waits for a person
	s.until(foreign, "processing")
	a, err := http.PostForm(link+"/answer", url.Values{"payment": {foreign}, "pin": {"1234"}, "do": {"ok"}})
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	var still payment
	s.api(s.key, http.MethodGet, "/payments/"+foreign, nil, &still)
	if still.Status != "processing" {
		t.Errorf("another merchant's payment was decided: %s", still.Status)
	}
	s.key = demo

	s.runJSON(&other, "client", "create", "--name", "Boulangerie Mapassa", "--mode", "live")
	house := newPage(t, "E18", s.origin)
	house.enterDemo(s, "Esther")
	house.refused()
	for _, path := range []string{"/sandbox", "/sandbox/phone"} {
		if status := house.answered("/console/c/" + other.ClientID + path); status != http.StatusNotFound {
			t.Errorf("%s of a live merchant: %d", path, status)
		}
	}
}
