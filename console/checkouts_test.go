package console

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"till"
	"till/checkout"
	"till/console/shell"
	"till/engine"
	"till/store"
	"till/store/checkouts"
	"till/store/storetest"
)

// orderForm is what a person types for a new checkout.
func orderForm(act, amount, reference, description string) url.Values {
	return url.Values{"act": {act}, "amount": {amount}, "reference": {reference}, "description": {description}, "life": {"3600"}}
}

// makeOrder makes a checkout as a person does, and returns its id.
func (w *world) makeOrder(amount, reference, description string) till.ID {
	w.t.Helper()
	return w.madeOrder(orderForm(newActID(), amount, reference, description))
}

// madeOrder sends the form, and returns what it made.
func (w *world) madeOrder(form url.Values) till.ID {
	w.t.Helper()
	a := w.do(request(http.MethodPost, w.path("/checkouts/new"), form))
	to := a.Header().Get("Location")
	id, err := till.ParseID(to[strings.LastIndex(to, "/")+1:])
	if a.Code != http.StatusSeeOther || err != nil {
		w.t.Fatalf("a checkout: %d to %q %s", a.Code, to, a.Body)
	}
	return id
}

// orders returns how many checkouts the client has.
func (w *world) orders() (n int64) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		_, n, err = checkouts.List(context.Background(), tx, w.client.ID, checkouts.Filter{}, store.Page{})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// try asks a customer as the page does, and returns the ask.
func (w *world) try(order till.ID, n int, phone string) *till.Ask {
	w.t.Helper()
	who := engine.Client{Client: w.client, Enabled: func(string) bool { return true }}
	a, err := w.checkouts.Ask(context.Background(), who, store.Ref{Client: w.client.ID, ID: order}, checkout.Typed{N: n, Phone: phone, Method: "mtn_momo", Country: "CG"})
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// shows waits until a page has a text.
func (w *world) shows(path, want string) string {
	w.t.Helper()
	page := ""
	if !comes(func() bool { page = w.get(w.path(path)); return strings.Contains(page, want) }) {
		w.t.Fatalf("%s never says %q: %s", path, want, page)
	}
	return page
}

var payAddress = regexp.MustCompile(`http://localhost:8080/p/[0-9a-z]{20}`)

// A cashier makes an address, a customer pays on it after a try that failed, and the page says so
// with links to and from the payments.
func TestACheckoutByHand(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			w.be(till.RoleCashier, "en")
			form := orderForm(newActID(), "5 000", "ORDER-1042", "Two loaves")
			order := w.madeOrder(form)
			if again := w.madeOrder(form); again != order || w.orders() != 1 {
				t.Fatalf("posted twice: %s and %s, %d checkouts", order, again, w.orders())
			}
			path := "/checkouts/" + order.String()
			page := w.get(w.path(path))
			url := payAddress.FindString(page)
			for _, want := range []string{"Nobody has tried to pay yet.", "Awa N.", `class="qr"`, "wa.me/?text=", "Two loaves", "ORDER-1042", "Cancel this checkout", "Made by"} {
				if !strings.Contains(page, want) {
					t.Errorf("the new checkout lacks %q", want)
				}
			}
			if !strings.Contains(page, `name="back" value="`+w.path(path)+`"`) {
				t.Error("the switch of languages leads to another page")
			}
			if url == "" || !strings.Contains(page, "Pay here: "+url) {
				t.Error("the address is not shown, or not in the text to send")
			}
			if list := w.get(w.path("/checkouts")); !strings.Contains(list, order.String()) || !strings.Contains(list, "1 checkout") {
				t.Error("the list lacks it")
			}
			form.Set("amount", "6 000")
			a := w.do(request(http.MethodPost, w.path("/checkouts/new"), form))
			if body := a.Body.String(); a.Code != http.StatusOK || !strings.Contains(body, "has made another checkout already") || !strings.Contains(body, path) || w.orders() != 1 {
				t.Errorf("the same form with another amount: %d, %d checkouts", a.Code, w.orders())
			}
			declined := w.try(order, 1, "242061230002")
			w.until(declined.PaymentID, till.Failed)
			page = w.shows(path, "Try 1 brought no money.")
			if !strings.Contains(page, "The customer declined.") || !strings.Contains(page, "http://localhost:8080/p/") || !strings.Contains(page, "/payments/"+declined.PaymentID.String()) {
				t.Error("after a try that failed, the page lacks why, the address, or the payment")
			}
			paid := w.try(order, 2, "242061230001")
			w.until(paid.PaymentID, till.Success)
			page = w.shows(path, "came from 242\u00a0•••\u00a0001")
			if strings.Contains(page, "242061230001") || payAddress.MatchString(page) || strings.Contains(page, "Cancel this checkout") {
				t.Error("a paid checkout shows a number, its address, or that it can be cancelled")
			}
			payment := w.get(w.path("/payments/" + paid.PaymentID.String()))
			if !strings.Contains(payment, path) || !strings.Contains(payment, "Asked for on a page") {
				t.Error("the payment does not lead to its checkout")
			}
			w.be(till.RoleOwner, "fr")
			if page := w.get(w.path(path)); !strings.Contains(page, "reçus du") || !strings.Contains(page, "Awa N.") {
				t.Error("in French the page lacks what happened, or who made it")
			}
			if log := w.get(w.path("/audit")); !strings.Contains(log, "Page de paiement créée") {
				t.Error("the audit log does not say who made it")
			}
		})
	}
}

// A checkout is cancelled once nobody can be about to pay it, and the page says why it is not.
func TestACheckoutIsCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	order := w.makeOrder("5 000", "ORDER-1042", "")
	path := "/checkouts/" + order.String()
	ask := w.try(order, 1, "242061230003")
	w.until(ask.PaymentID, till.Processing)
	page := w.shows(path, "Being paid")
	if strings.Contains(page, "Cancel this checkout") || payAddress.MatchString(page) {
		t.Error("while it is being paid it can be cancelled, or is offered to somebody else")
	}
	a := w.do(request(http.MethodPost, w.path(path+"/cancel"), url.Values{}))
	if a.Code != http.StatusConflict || !strings.Contains(a.Body.String(), "It is not cancelled: a payment may still come") {
		t.Errorf("a live checkout is cancelled: %d", a.Code)
	}
	other := w.makeOrder("700", "ORDER-1043", "")
	for range 2 { // to cancel again is harmless
		if a := w.do(request(http.MethodPost, w.path("/checkouts/"+other.String()+"/cancel"), url.Values{})); a.Code != http.StatusSeeOther {
			t.Fatalf("cancelled: %d %s", a.Code, a.Body)
		}
	}
	if page := w.get(w.path("/checkouts/" + other.String() + "?done=checkout_cancelled")); !strings.Contains(page, "Cancelled by Awa N.") || !strings.Contains(page, "It is cancelled.") {
		t.Error("the page does not say who cancelled it")
	}
	if page := w.get(w.path("/checkouts?state=cancelled")); !strings.Contains(page, other.String()) || strings.Contains(page, order.String()) {
		t.Error("the filter of states lists something else")
	}
	if page := w.get(w.path("/checkouts?reference=ORDER-1042")); strings.Contains(page, other.String()) || !strings.Contains(page, order.String()) {
		t.Error("the filter of references lists something else")
	}
}

// Without pages, or with a name that no page can show, the form says what is missing and who can
// mend it, in both languages, and makes nothing.
func TestNoPagesToPayOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	refused := func(lang, want, who string) {
		t.Helper()
		w.be(till.RoleOwner, lang)
		page := w.get(w.path("/checkouts/new"))
		if !strings.Contains(page, want) || !strings.Contains(page, who) || strings.Contains(page, "<form class=\"form desk\"") {
			t.Errorf("the form does not say %q and %q", want, who)
		}
		if a := w.do(request(http.MethodPost, w.path("/checkouts/new"), orderForm(newActID(), "5 000", "", ""))); a.Code != http.StatusOK || w.orders() != 0 {
			t.Errorf("it is made all the same: %d", a.Code)
		}
	}
	w.console.Checkouts = checkout.New(checkout.Config{Store: w.store, Collector: w.collector, Secret: []byte("x")})
	refused("en", "This service has no pages to pay on.", "Whoever runs it")
	refused("fr", "Ce service n’a pas de pages de paiement.", "La maison qui le gère")
	w.console.Checkouts = w.checkouts
	w.client = w.newClient("Kiosque MTN MoMo")
	refused("en", "no word of it may be the name of an operator", "Whoever runs this service")
	refused("fr", "aucun de ses mots ne doit être le nom d’un opérateur", "La maison qui gère ce service")
}

// What is wrong with the form is said beside its field, and nothing is made.
func TestAWrongOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	for _, c := range []struct{ amount, reference, description, want string }{
		{"", "", "", "Write the amount in digits."},
		{"0", "", "", "Write the amount in digits."},
		{"1,50", "", "", "Write the amount in digits."},
		{"99 999 999 999", "", "", "Your methods take"},
		{"5 000", strings.Repeat("x", 65), "", "at most 64 characters"},
		{"5 000", "", strings.Repeat("x", 256), "at most 255 characters"},
	} {
		a := w.do(request(http.MethodPost, w.path("/checkouts/new"), orderForm(newActID(), c.amount, c.reference, c.description)))
		if a.Code != http.StatusOK || !strings.Contains(a.Body.String(), c.want) {
			t.Errorf("%q: %d without %q", c.amount, a.Code, c.want)
		}
	}
	if n := w.orders(); n != 0 {
		t.Errorf("%d checkouts were made", n)
	}
	form := orderForm("no act", "5 000", "", "")
	if a := w.do(request(http.MethodPost, w.path("/checkouts/new"), form)); a.Code != http.StatusBadRequest {
		t.Errorf("a form that is not ours: %d", a.Code)
	}
}

// A cashier sees the checkouts of two days, and nobody those of another merchant.
func TestWhoSeesCheckouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	id := w.makeOrder("5 000", "ORDER-1042", "").String()
	w.be(till.RoleViewer, "en")
	if page := w.get(w.path("/checkouts")); !strings.Contains(page, id) || strings.Contains(page, "New checkout") {
		t.Error("a viewer does not see it, or is offered to make one")
	}
	if page := w.get(w.path("/checkouts/" + id)); strings.Contains(page, "Cancel this checkout") {
		t.Error("a viewer is offered to cancel it")
	}
	w.be(till.RoleCashier, "en")
	w.console.Now = func() till.Time { return w.store.Now().Add(3 * 24 * time.Hour) }
	if page := w.get(w.path("/checkouts?range=all")); strings.Contains(page, id) {
		t.Error("a cashier sees a checkout from before two days")
	}
	for _, r := range []*http.Request{request(http.MethodGet, w.path("/checkouts/"+id), nil), request(http.MethodPost, w.path("/checkouts/"+id+"/cancel"), url.Values{})} {
		if a := w.do(r); a.Code != http.StatusNotFound {
			t.Errorf("%s of an old checkout as a cashier: %d", r.Method, a.Code)
		}
	}
	w.be(till.RoleOwner, "en")
	w.visitor.Memberships[0].Client = w.other.ID
	if a := w.do(request(http.MethodGet, shell.PathOf(w.other.ID, "/checkouts/"+id), nil)); a.Code != http.StatusNotFound {
		t.Errorf("a checkout of another merchant: %d", a.Code)
	}
}

// late lets an ask's payment bring money after all.
func (w *world) late(a *till.Ask) {
	w.t.Helper()
	storetest.Apply(w.t, w.collector, w.store, &till.Payment{ClientID: a.ClientID, ID: a.PaymentID, IdempotencyKey: a.Key.String(), Amount: a.Amount}, storetest.Succeeded)
}

// Late money of the first try after the second was paid: the page names the payment that is too
// much and leads to its refund, and says what is left when it went back.
func TestACheckoutPaidTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	order := w.makeOrder("5 000", "ORDER-1042", "")
	path := "/checkouts/" + order.String()
	first := w.try(order, 1, "242061230002")
	w.until(first.PaymentID, till.Failed)
	second := w.try(order, 2, "242061230001")
	w.until(second.PaymentID, till.Success)
	w.shows(path, "came from 242\u00a0•••\u00a0001")
	w.late(first)
	page := w.shows(path, "Paid twice: the second 5,000\u00a0XAF came from 242\u00a0•••\u00a0002")
	back := "/payments/" + first.PaymentID.String() + "/refund"
	if !strings.Contains(page, back+"?reason=duplicate") || strings.Contains(page, "Cancel this checkout") || payAddress.MatchString(page) {
		t.Error("a checkout that was paid twice does not lead to the refund, or goes on")
	}
	w.shows("/checkouts?state=paid", "Paid twice") // the list reads what is stored, a moment later
	w.be(till.RoleCashier, "fr")
	if page := w.get(w.path(path)); strings.Contains(page, back) || !strings.Contains(page, "Un propriétaire ou un comptable peut rembourser") {
		t.Error("a cashier is offered the refund, or is not told who can give it back")
	}
	w.be(till.RoleOwner, "en")
	if a := w.do(request(http.MethodPost, w.path(back), refundForm(newActID(), "5000"))); a.Code != http.StatusSeeOther {
		t.Fatalf("a refund: %d %s", a.Code, a.Body)
	}
	w.untilRefund(first.PaymentID, till.PayoutSuccess)
	page = w.shows(path, "Paid twice, and one payment went back. 5,000\u00a0XAF from 242\u00a0•••\u00a0001 is what is left.")
	if strings.Contains(page, back) {
		t.Error("what went back is offered to be given back")
	}
}

// Money that comes after a checkout was cancelled is said to be late, with what can be done.
func TestACheckoutPaidLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	order := w.makeOrder("5 000", "ORDER-1042", "")
	path := "/checkouts/" + order.String()
	ask := w.try(order, 1, "242061230002")
	w.until(ask.PaymentID, till.Failed)
	if a := w.do(request(http.MethodPost, w.path(path+"/cancel"), url.Values{})); a.Code != http.StatusSeeOther {
		t.Fatalf("cancelled: %d", a.Code)
	}
	w.shows(path, "No money had come.")
	w.late(ask)
	page := w.shows(path, "when this checkout was over already.")
	if !strings.Contains(page, "/refund?reason=late_payment") || !strings.Contains(page, "Hand over what was ordered, or give the payment back.") {
		t.Error("the page does not say what to do")
	}
}
