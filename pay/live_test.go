package pay

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"till"
	"till/checkout"
)

// live makes a live client that has mobile money.
func (w *world) live(name string) *till.Client {
	w.t.Helper()
	ctx := context.Background()
	c, _, err := w.accounts.CreateClient(ctx, name, till.Live, "command:test")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.accounts.EnableMethod(ctx, c.ID, "mtn_momo", true, "command:test"); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// P8: the fourth prompt to a number within a quarter of an hour has to wait, whichever of three
// live merchants asks. A test client's do not count, and another number is asked.
func TestPromptsOverMerchants(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		const victim = "242061230006"
		try := func(c *till.Client, phone string) answer {
			t.Helper()
			made, err := w.create("", c)
			if err != nil {
				t.Fatal(err)
			}
			path := Prefix + made.Checkout.Token
			form := w.formOf(w.get(path))
			time.Sleep(2 * time.Second)
			return w.do(http.MethodPost, path, url.Values{"form": {form}, "phone": {phone}, "market": {"mtn_momo.CG"}, "sure": {phone}})
		}
		shops := []*till.Client{w.live("Chez Mado"), w.live("Chez Ada"), w.live("Chez Awa")}
		for i, c := range shops {
			if a := try(c, victim); a.status != http.StatusSeeOther {
				t.Fatalf("prompt %d: %d %s", i+1, a.status, textOf(a.body))
			}
			time.Sleep(6 * time.Minute) // its window is over
		}
		for _, c := range append(shops, w.live("Chez Zoé")) {
			a := try(c, victim)
			if a.status != http.StatusTooManyRequests {
				t.Errorf("the fourth, of %s: %d", c.Name, a.status)
			}
			has(t, "the fourth", a, "Too many requests to this number.")
		}
		if n := w.way.submits.Load(); n != 3 {
			t.Errorf("%d prompts", n)
		}
		if a := try(shops[0], "242065551234"); a.status != http.StatusSeeOther {
			t.Errorf("another number: %d %s", a.status, textOf(a.body))
		}
		if a := try(w.client, victim); a.status != http.StatusSeeOther {
			t.Errorf("of a test client: %d", a.status)
		}
	})
}

// P9: a live merchant's page shows the old name until the house has confirmed the new one, and one
// whose own name no page may show has a page once it has another.
func TestAChangedNameOnThePage(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		c := w.live("Chez Mado")
		made, err := w.create("", c)
		if err != nil {
			t.Fatal(err)
		}
		path := Prefix + made.Checkout.Token
		shows := func(name, not string) {
			t.Helper()
			a := w.get(path)
			has(t, "the page", a, "Pay 5,000 FCFA to "+name)
			if strings.Contains(a.body, not) {
				t.Errorf("the page says %q", not)
			}
		}
		shows("Chez Mado", "Mado &amp; Fils")
		if err := checkout.AskName(ctx, w.store, c.ID, "Mado & Fils", "person:Mado"); err != nil {
			t.Fatal(err)
		}
		shows("Chez Mado", "Fils")
		if err := checkout.ConfirmName(ctx, w.store, c.ID, "Mado & Fils", "person:Awa"); err != nil {
			t.Fatal(err)
		}
		shows("Mado &amp; Fils", "Chez Mado")
	})
}
