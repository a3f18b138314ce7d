package checkout_test

import (
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"

	"till"
	"till/checkout"
)

// The way back keeps what the shop's address had, and is signed over the checkout, its state
// and the time, with the secret that the creation answered.
func TestReturn(t *testing.T) {
	t.Parallel()
	keys := checkout.NewKeys([]byte("a secret for tests"))
	c := &till.Checkout{ClientID: till.ID{1}, ID: till.ID{2}, ReturnURL: "https://shop.example/done?order=7&a=%20b"}
	u, err := url.Parse(keys.Return(c, checkout.ReturnPaid, 1_700_000_000_900_000))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if u.Host != "shop.example" || u.Path != "/done" || !strings.HasPrefix(u.RawQuery, "order=7&a=%20b&till_checkout=") || q.Get("till_state") != "paid" || q.Get("till_time") != "1700000000" {
		t.Errorf("leads to %s", u)
	}
	secret := keys.ReturnSecret(c.ClientID, c.ID)
	if got := checkout.SignReturn(secret, c.ID, "paid", "1700000000"); got != q.Get("till_signature") || len(got) != 43 {
		t.Errorf("the signature is %q, not %q", q.Get("till_signature"), got)
	}
	for _, other := range []string{checkout.SignReturn(secret, c.ID, "closed", "1700000000"), checkout.SignReturn(secret, c.ID, "paid", "1700000001"),
		checkout.SignReturn(secret, till.ID{3}, "paid", "1700000000"), checkout.SignReturn(keys.ReturnSecret(c.ClientID, till.ID{3}), c.ID, "paid", "1700000000")} {
		if other == q.Get("till_signature") {
			t.Error("something else has the same signature")
		}
	}
	c.ReturnURL = ""
	if got := keys.Return(c, checkout.ReturnPaid, 0); got != "" {
		t.Errorf("without an address it leads to %q", got)
	}
}

// Shops verify what the service signs: the cases that the SDKs share are signed alike.
func TestSignReturnIsWhatShopsVerify(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../sdk/conformance/vectors/return.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Cases []struct {
			Name, Secret, Checkout, Expect string
			Query                          map[string]string
		}
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	believed := 0
	for _, c := range v.Cases {
		id, err := till.ParseID(c.Checkout)
		if err != nil {
			t.Fatal(err)
		}
		if c.Expect != c.Query["till_state"] || c.Expect == "" {
			continue
		}
		believed++
		if got := checkout.SignReturn(c.Secret, id, c.Query["till_state"], c.Query["till_time"]); got != c.Query["till_signature"] {
			t.Errorf("%s: the service signs %s, the case has %s", c.Name, got, c.Query["till_signature"])
		}
	}
	if believed < 4 {
		t.Errorf("%d cases are believed", believed)
	}
}
