package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till"
	"till/checkout"
	"till/engine"
	"till/store"
	"till/store/checkouts"
	"till/store/storetest"
)

// linkForm is what a person types for a new link; without an amount the customer types it.
func linkForm(act, title, amount string) url.Values {
	return url.Values{"act": {act}, "title": {title}, "amount": {amount}, "label": {"Invoice number"}}
}

// makeLink makes a link as a person does, and returns its id.
func (w *world) makeLink(title, amount string) till.ID {
	w.t.Helper()
	return w.madeLink(linkForm(newActID(), title, amount))
}

func (w *world) madeLink(form url.Values) till.ID {
	w.t.Helper()
	a := w.do(request(http.MethodPost, w.path("/links/new"), form))
	to := a.Header().Get("Location")
	id, err := till.ParseID(to[strings.LastIndex(to, "/")+1:])
	if a.Code != http.StatusSeeOther || err != nil {
		w.t.Fatalf("a link: %d to %q %s", a.Code, to, a.Body)
	}
	return id
}

// opens opens a customer's checkout of a link, as its page does.
func (w *world) opens(link till.ID, amount int64, reference string) (till.ID, error) {
	who := engine.Client{Client: w.client, Enabled: func(string) bool { return true }}
	v, err := w.checkouts.Open(context.Background(), who, store.Ref{Client: w.client.ID, ID: link}, checkout.Opening{Nonce: []byte(newActID()), Amount: amount, Reference: reference})
	if err != nil {
		return till.ID{}, err
	}
	return v.Checkout.ID, nil
}

// links returns how many links the client has.
func (w *world) links() (n int64) {
	w.t.Helper()
	_, n, err := w.checkouts.Links(context.Background(), w.client.ID, checkouts.LinkFilter{}, store.Page{})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// A cashier makes a link, prints it and hands it on; what customers paid on it is on its page, and
// leads back to it. Switched off, it takes no new customer.
func TestALinkByHand(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			w.be(till.RoleCashier, "en")
			form := linkForm(newActID(), "Table 4", "")
			link := w.madeLink(form)
			if again := w.madeLink(form); again != link || w.links() != 1 {
				t.Fatalf("posted twice: %s and %s, %d links", link, again, w.links())
			}
			path := "/links/" + link.String()
			page := w.get(w.path(path))
			address := payAddress.FindString(page)
			for _, want := range []string{"The customer types the amount.", "Table 4", "Invoice number", "Awa N.", `class="qr"`, "Pay here: " + address, "Nobody has begun to pay", "Switch off", `name="back" value="` + w.path(path) + `"`} {
				if !strings.Contains(page, want) || address == "" {
					t.Errorf("the new link lacks %q", want)
				}
			}
			form.Set("title", "Table 5")
			a := w.do(request(http.MethodPost, w.path("/links/new"), form))
			if body := a.Body.String(); a.Code != http.StatusOK || !strings.Contains(body, "has made another link already") || !strings.Contains(body, path) || w.links() != 1 {
				t.Errorf("the same form with another title: %d, %d links", a.Code, w.links())
			}
			order, err := w.opens(link, 700, "F-12")
			if err != nil {
				t.Fatal(err)
			}
			one := w.get(w.path("/checkouts/" + order.String()))
			if !strings.Contains(one, "a customer, on a link") || !strings.Contains(one, path) || strings.Contains(one, "Next: send the address") {
				t.Error("a customer's checkout is said to be made by somebody else, or does not lead to its link")
			}
			ask := w.try(order, 1, "242061230001")
			w.until(ask.PaymentID, till.Success)
			page = w.shows(path, "1 paid")
			if !strings.Contains(page, order.String()) || !strings.Contains(page, "F-12") || !strings.Contains(page, "1 checkout<") {
				t.Error("the link lacks what came in by it")
			}
			for paper, sides := range map[string]int{"a6": 1, "tent": 2} {
				printed := w.get(w.path(path + "/print?paper=" + paper))
				host := strings.TrimPrefix(address, "http://")
				if strings.Count(printed, `class="qr"`) != sides || strings.Count(printed, host) != sides || strings.Count(printed, "Read this code") != sides {
					t.Errorf("printed on %s it lacks a side", paper)
				}
			}
			if a := w.do(request(http.MethodPost, w.path(path+"/state"), url.Values{})); a.Code != http.StatusSeeOther {
				t.Fatalf("switched off: %d", a.Code)
			}
			if page := w.get(w.path(path)); !strings.Contains(page, "It is switched off") || !strings.Contains(page, "Switch on") {
				t.Error("the page does not say that it is off")
			}
			if _, err := w.opens(link, 700, "F-13"); err == nil {
				t.Error("a link that is off takes a customer")
			}
			w.do(request(http.MethodPost, w.path(path+"/state"), url.Values{"on": {"1"}}))
			if a := w.do(request(http.MethodPost, w.path(path+"/title"), url.Values{"title": {strings.Repeat("x", 61)}})); a.Code != http.StatusBadRequest || !strings.Contains(a.Body.String(), "A title has 1 to 60 characters") {
				t.Errorf("a title that is too long: %d", a.Code)
			}
			w.do(request(http.MethodPost, w.path(path+"/title"), url.Values{"title": {"Terrasse"}}))
			w.be(till.RoleViewer, "fr")
			page = w.get(w.path(path))
			if !strings.Contains(page, "Terrasse") || !strings.Contains(page, "Le client tape le montant.") || strings.Contains(page, "Désactiver") {
				t.Error("the title is not changed, the link is not on, or a viewer is offered to change it")
			}
			if list := w.get(w.path("/links?state=off")); strings.Contains(list, link.String()) {
				t.Error("a link that is on is listed as off")
			}
		})
	}
}

// What is wrong with the form of a link is said beside its field, and nothing is made.
func TestAWrongLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	for _, c := range []struct{ title, amount, label, want string }{
		{"", "5 000", "", "A title has 1 to 60 characters"},
		{strings.Repeat("x", 61), "", "", "A title has 1 to 60 characters"},
		{"Table 4", "1,50", "", "Write the amount in digits."},
		{"Table 4", "0", "", "Write the amount in digits."},
		{"Table 4", "99 999 999 999", "", "Your methods take"},
		{"Table 4", "", strings.Repeat("x", 31), "at most 30 characters"},
		{"Table\u202e4", "", "", "one line of plain text"},
	} {
		form := linkForm(newActID(), c.title, c.amount)
		form.Set("label", c.label)
		a := w.do(request(http.MethodPost, w.path("/links/new"), form))
		if a.Code != http.StatusOK || !strings.Contains(a.Body.String(), c.want) {
			t.Errorf("%q %q: %d without %q", c.title, c.amount, a.Code, c.want)
		}
	}
	if n := w.links(); n != 0 {
		t.Errorf("%d links were made", n)
	}
}
