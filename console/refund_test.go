package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"till"
	"till/console/shell"
	"till/people"
	"till/store"
	"till/store/refunds"
)

// Phones whose ends decide what becomes of the refund; the payment succeeds.
const (
	paysPlainly  = "242061230040"
	neverDecides = "242061230032"
)

// paid makes a payment that has succeeded.
func (w *world) paid(phone string, amount int64) till.ID {
	w.t.Helper()
	id := w.pay(phone, amount, "ORDER-7", "loaves")
	w.until(id, till.Success)
	return id
}

// refundForm is what the confirming form sends.
func refundForm(act, amount string) url.Values {
	return url.Values{"act": {act}, "amount": {amount}, "reason": {"not_delivered"}}
}

func newActID() string { return till.NewID(till.TimeOf(time.Now())).String() }

// refundsOf reads the refunds of a payment once there are so many.
func (w *world) refundsOf(payment till.ID) (rows []*store.PayoutRow) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		rows, err = refunds.Of(context.Background(), tx, store.Ref{Client: w.client.ID, ID: payment})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// untilRefund waits for the only refund of a payment to have a status.
func (w *world) untilRefund(payment till.ID, status till.PayoutStatus) *store.PayoutRow {
	w.t.Helper()
	var rows []*store.PayoutRow
	if !comes(func() bool { rows = w.refundsOf(payment); return len(rows) == 1 && rows[0].Status == status }) {
		w.t.Fatalf("the refunds are %v, not one that is %s", rows, status)
	}
	return rows[0]
}

// A payment is given back in two steps: how much, and then what that does, in numbers. Posted
// twice it is one refund. The payment's page and the refund's own tell of each other.
func TestARefundIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	if err := w.accounts.SetFee(context.Background(), w.client.ID, till.Fee{Kind: till.RefundFee, Method: "mtn_momo", Currency: "XAF", Flat: 25}, "a test"); err != nil {
		t.Fatal(err)
	}
	id := w.paid(paysPlainly, 5000)
	path := w.path("/payments/" + id.String())
	if page := w.get(path); !strings.Contains(page, path+"/refund") {
		t.Error("the payment's page does not offer a refund")
	}
	form := w.get(path + "/refund")
	for _, want := range []string{`value="5,000"`, "242\u00a0•••\u00a0040, who paid", "Left to give back", "The customer asked for it"} {
		if !strings.Contains(form, want) {
			t.Errorf("the form lacks %q", want)
		}
	}
	sure := w.get(path + "/refund?amount=3000&reason=not_delivered")
	for _, want := range []string{"Refund 3,000\u00a0XAF", "5,000\u00a0XAF", "1,975\u00a0XAF", "25\u00a0XAF", "Not delivered", `name="act"`} {
		if !strings.Contains(strings.ReplaceAll(sure, "\u202f", "\u00a0"), want) {
			t.Errorf("what the refund does lacks %q", want)
		}
	}
	act := newActID()
	first := w.do(request(http.MethodPost, path+"/refund", refundForm(act, "3000")))
	again := w.do(request(http.MethodPost, path+"/refund", refundForm(act, "3000")))
	if first.Code != http.StatusSeeOther || first.Header().Get("Location") != again.Header().Get("Location") {
		t.Fatalf("posted twice: %d %q and %d %q", first.Code, first.Header().Get("Location"), again.Code, again.Header().Get("Location"))
	}
	r := w.untilRefund(id, till.PayoutSuccess)
	if r.Amount.Minor != 3000 || r.Fee != 25 || r.Phone != paysPlainly || r.Reason != "not_delivered" {
		t.Errorf("the refund is %+v", r.Payout)
	}
	own := w.get(first.Header().Get("Location"))
	for _, want := range []string{"The refund is made.", "Not delivered", path + `"`, "Customer, who paid", "Asked for by Awa N."} {
		if !strings.Contains(own, want) {
			t.Errorf("the refund's page lacks %q", want)
		}
	}
	page := w.get(path)
	for _, want := range []string{"went back to the customer at", "Refund of 3,000", "Refund: Sent to sandbox", "Given back", w.path("/refunds/" + r.ID.String()), "Refund \u2212"} {
		if !strings.Contains(strings.ReplaceAll(page, "\u202f", "\u00a0"), want) {
			t.Errorf("the payment's page lacks %q", want)
		}
	}
	if list := w.get(w.path("/refunds")); !strings.Contains(list, r.ID.String()) || !strings.Contains(list, "1 refund") {
		t.Error("the list of refunds lacks it")
	}
	if list := w.get(w.path("/payouts")); strings.Contains(list, r.ID.String()) {
		t.Error("the list of payouts has a refund")
	}
	if table := w.get(w.path("/refunds.csv")); !strings.Contains(table, r.ID.String()) || !strings.Contains(table, "refund_phone") {
		t.Errorf("the table of refunds is %s", table)
	}
	if a := w.do(request(http.MethodGet, w.path("/payouts/"+r.ID.String()), nil)); a.Code != http.StatusNotFound {
		t.Errorf("a refund under /payouts: %d", a.Code)
	}
	if a := w.do(request(http.MethodGet, w.path("/payouts/"+r.ID.String()+"/note"), nil)); a.Code != http.StatusNotFound {
		t.Errorf("a note on a refund under /payouts: %d", a.Code)
	}
	used := w.do(request(http.MethodPost, path+"/refund", refundForm(act, "100")))
	if used.Code != http.StatusOK || !strings.Contains(used.Body.String(), "has made a refund already") || len(w.refundsOf(id)) != 1 {
		t.Errorf("the form again with another amount: %d", used.Code)
	}
}

// What stands in the way is said, in both languages, and nothing is made.
func TestRefusedRefunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	paid, failed, unsure := w.paid(paysPlainly, 5000), w.pay("242061230002", 5000, "", ""), w.paid(neverDecides, 5000)
	w.until(failed, till.Failed)
	path := func(id till.ID) string { return w.path("/payments/" + id.String() + "/refund") }
	say := func(lang, address, want string) {
		t.Helper()
		w.be(till.RoleOwner, lang)
		page := w.get(address)
		if checkPage(t, address, page); !strings.Contains(strings.ReplaceAll(page, "\u202f", "\u00a0"), want) {
			t.Errorf("%s in %s lacks %q", address, lang, want)
		}
		if strings.Contains(page, `method="post" action="`+path(paid)) || strings.Contains(page, `method="post" action="`+path(failed)) {
			t.Errorf("%s has a button", address)
		}
	}
	say("en", path(paid)+"?amount=5001", "That is more than is left: 5,000\u00a0XAF. Nothing was made.")
	say("fr", path(paid)+"?amount=5001", "C’est plus que ce qui reste")
	say("fr", path(paid)+"?amount=99999999999999999999999", "Écrivez le montant en chiffres.")
	say("en", path(paid)+"?amount=0", "Write the amount in digits.")
	say("en", path(paid)+"?amount=loaf", "Write the amount in digits.")
	say("en", path(paid)+"?amount=1", "MTN MoMo takes")
	say("en", path(failed), "there is nothing to give back")
	say("fr", path(failed), "il n’y a rien à rendre")
	if page := w.get(w.path("/payments/" + failed.String())); strings.Contains(page, path(failed)) {
		t.Error("a payment that failed offers a refund")
	}
	// One that nobody decides stays in the way of the next, and its payment says what not to do.
	w.be(till.RoleOwner, "en")
	if a := w.do(request(http.MethodPost, path(unsure), refundForm(newActID(), "1000"))); a.Code != http.StatusSeeOther {
		t.Fatalf("a refund: %d %s", a.Code, a.Body)
	}
	open := w.untilRefund(unsure, till.PayoutProcessing)
	say("en", path(unsure), "A refund of this payment is on its way.")
	say("fr", path(unsure), "Un remboursement de ce paiement est en cours.")
	if page := w.get(path(unsure)); !strings.Contains(page, w.path("/refunds/"+open.ID.String())) {
		t.Error("the page does not lead to the refund that is open")
	}
	if a := w.do(request(http.MethodPost, path(unsure), refundForm(newActID(), "1000"))); a.Code != http.StatusOK || len(w.refundsOf(unsure)) != 1 {
		t.Errorf("a second refund: %d", a.Code)
	}
	if page := w.get(w.path("/payments/" + unsure.String())); !strings.Contains(page, "en cours de remboursement") {
		t.Error("the payment's page does not say that money is on the way back")
	}
	// An act without its word, or with an amount that is none, makes nothing.
	w.be(till.RoleOwner, "en")
	for _, form := range []url.Values{{"amount": {"100"}}, {"act": {"x"}, "amount": {"100"}}} {
		if a := w.do(request(http.MethodPost, path(paid), form)); a.Code != http.StatusBadRequest {
			t.Errorf("%v: %d", form, a.Code)
		}
	}
	for _, amount := range []string{"", "-100", "1e3", "5001", "99999999999999999999999"} {
		if a := w.do(request(http.MethodPost, path(paid), refundForm(newActID(), amount))); a.Code != http.StatusOK {
			t.Errorf("an amount of %q: %d", amount, a.Code)
		}
	}
	if n := len(w.refundsOf(paid)); n != 0 {
		t.Errorf("%d refunds were made", n)
	}
}

// Without fresh proof nothing is made, and the form comes back as it was. A suspended merchant
// makes none. Those who may not approve do not see the act.
func TestARefundNeedsProof(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	id := w.paid(paysPlainly, 5000)
	path := w.path("/payments/" + id.String() + "/refund")
	w.visitor.ProvedAt = 0
	if page := w.get(path + "?amount=2000&reason=other"); !strings.Contains(page, `name="back" value="`+path+`?amount=2000`) {
		t.Error("the form does not say where to go back to")
	}
	if a := w.do(request(http.MethodPost, path, refundForm(newActID(), "2000"))); a.Code != http.StatusForbidden {
		t.Errorf("without proof: %d", a.Code)
	}
	form := refundForm(newActID(), "2000")
	form.Set("back", path+"?amount=2000&reason=other")
	if a := w.do(request(http.MethodPost, path, form)); a.Code != http.StatusSeeOther || !strings.Contains(a.Header().Get("Location"), "refused=") {
		t.Errorf("without proof, with the way back: %d %s", a.Code, a.Header().Get("Location"))
	}
	for role, may := range map[till.Role]bool{till.RoleOwner: true, till.RoleAccountant: true, till.RoleCashier: false, till.RoleDeveloper: false, till.RoleViewer: false,
		till.RoleFinance: true, till.RoleSupport: false, till.RoleAdmin: false, till.RoleAuditor: false} {
		w.be(role, "en")
		page := w.get(w.path("/payments/" + id.String()))
		if strings.Contains(page, path) != may {
			t.Errorf("%s: the act is offered: %v", role, !may)
		}
	}
	w.be(till.RoleOwner, "en")
	if err := w.accounts.Suspend(context.Background(), w.client.ID, "a test"); err != nil {
		t.Fatal(err)
	}
	if a := w.do(request(http.MethodPost, path, refundForm(newActID(), "2000"))); a.Code != http.StatusForbidden {
		t.Errorf("of a suspended merchant: %d", a.Code)
	}
	if n := len(w.refundsOf(id)); n != 0 {
		t.Errorf("%d refunds were made", n)
	}
}

// A cashier sees the refunds of the last two days, and no older one.
func TestACashierSeesRefundsOfTwoDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	id := w.paid(paysPlainly, 5000)
	if a := w.do(request(http.MethodPost, w.path("/payments/"+id.String()+"/refund"), refundForm(newActID(), "5000"))); a.Code != http.StatusSeeOther {
		t.Fatalf("a refund: %d", a.Code)
	}
	r := w.untilRefund(id, till.PayoutSuccess)
	w.be(till.RoleCashier, "en")
	if page := w.get(w.path("/refunds?range=all")); !strings.Contains(page, r.ID.String()) {
		t.Error("a cashier does not see a refund of today")
	}
	w.console.Now = func() till.Time { return w.store.Now().Add(3 * 24 * time.Hour) }
	if page := w.get(w.path("/refunds?range=all")); strings.Contains(page, r.ID.String()) {
		t.Error("a cashier sees a refund from before two days")
	}
	if a := w.do(request(http.MethodGet, w.path("/refunds/"+r.ID.String()), nil)); a.Code != http.StatusNotFound {
		t.Errorf("an old refund is answered %d", a.Code)
	}
}

// The route of the act is for those who may do both halves of it.
func TestWhoMayRefundAlone(t *testing.T) {
	t.Parallel()
	for i := range Routes {
		r := &Routes[i]
		if !strings.HasSuffix(r.Path, "/{id}/refund") {
			continue
		}
		if r.For != shell.Staff || r.May != people.RefundsApprove || r.Method == http.MethodPost && !r.Fresh {
			t.Errorf("%s %s: %+v", r.Method, r.Path, r)
		}
	}
}

// Home says what went back beside what was collected, and what is left; so do the figures by
// method and the table. Without a refund none of them speaks of any.
func TestHomeTellsOfRefunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	id := w.paid(paysPlainly, 5000)
	if page := w.get(w.path("/home")); strings.Contains(page, "Refunded") || strings.Contains(page, "collected less refunded") {
		t.Error("home tells of refunds that there are not")
	}
	w.do(request(http.MethodPost, w.path("/payments/"+id.String()+"/refund"), refundForm(newActID(), "2000")))
	w.untilRefund(id, till.PayoutSuccess)
	page := strings.ReplaceAll(w.get(w.path("/home")), "\u00a0", " ")
	for _, want := range []string{`Refunded</span><span class="value">2,000<span class="unit">XAF`, "1 refund · 40 % of what was collected", `Net</span><span class="value">3,000<span class="unit">XAF`, w.path("/refunds?from=")} {
		if !strings.Contains(page, want) {
			t.Errorf("home lacks %q", want)
		}
	}
	if page := strings.ReplaceAll(w.get(w.path("/figures")), "\u00a0", " "); !strings.Contains(page, "refunded 2,000 XAF") || !strings.Contains(page, "paid out 0 XAF") {
		t.Error("the figures by method do not tell refunds from payouts")
	}
	if table := w.get(w.path("/home.csv")); !strings.Contains(table, `"refunds","refunded"`) || !strings.Contains(table, `"mtn_momo","XAF","1","5000","0","0","0","0","1","2000"`) {
		t.Errorf("the table is %s", table)
	}
	w.be(till.RoleOwner, "fr")
	if page := w.get(w.path("/home")); !strings.Contains(page, "1 remboursement · 40") || !strings.Contains(page, "encaissé moins remboursé") {
		t.Error("home is not French")
	}
}
