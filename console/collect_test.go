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
	"till/store/auditlog"
	"till/store/storetest"
)

// deskForm is what a cashier types; sure is what the form's script showed.
func (w *world) deskForm(amount, phone, sure string) url.Values {
	page := w.get(w.path("/collect"))
	return url.Values{"key": {fieldOf(w.t, hiddenKey, page)}, "amount": {amount}, "phone": {phone}, "market": {"mtn_momo.CG.XAF"}, "reference": {"Table 4"}, "sure": {sure}}
}

// ask asks a customer at the counter, and returns the address of the answer.
func (w *world) ask(amount, phone string) (string, till.ID) {
	w.t.Helper()
	to := w.post(w.path("/collect"), w.deskForm(amount, phone, phone))
	id, err := till.ParseID(to[strings.LastIndexByte(to, '/')+1:])
	if err != nil {
		w.t.Fatalf("the form leads to %s", to)
	}
	return to, id
}

// From the form to the receipt, on each engine.
func TestCollectAtTheCounter(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			w.be(till.RoleCashier, "en")
			brice := w.visitor
			form := w.deskForm("5 000", "06 123 00 01", "")
			a := w.do(request(http.MethodPost, w.path("/collect"), form))
			if a.Code != http.StatusOK || !strings.Contains(a.Body.String(), "242\u00a006\u00a0123\u00a000\u00a001") || !strings.Contains(a.Body.String(), "Ask for 5,000\u00a0XAF") || !strings.Contains(a.Body.String(), "Is this the number?") {
				t.Fatalf("a number that was not shown is asked: %d %s", a.Code, a.Body)
			}
			form.Set("sure", "242061230001")
			form.Set("change", "1")
			if page := w.do(request(http.MethodPost, w.path("/collect"), form)).Body.String(); !strings.Contains(page, `value="06 123 00 01"`) || !strings.Contains(page, `value="Table 4"`) {
				t.Error("who wants to change the number has to type everything again")
			}
			form.Del("change")
			to := w.post(w.path("/collect"), form)
			if again := w.post(w.path("/collect"), form); again != to {
				t.Errorf("one form sent twice leads to %s and %s", to, again)
			}
			id, _ := till.ParseID(to[strings.LastIndexByte(to, '/')+1:])
			w.checkAct(id, brice.Actor())
			if page := w.get(w.path("/payments/" + id.String())); !strings.Contains(page, "Asked for by Awa N.") || strings.Contains(page, "payment.create") {
				t.Error("the timeline does not say who asked")
			}
			w.until(id, till.Success)
			page := w.get(to)
			for _, want := range []string{"Paid", "5,000", "Table 4", "1 payment, 5,000", "/receipt", "New collection"} {
				if !strings.Contains(page, want) {
					t.Errorf("the paid page lacks %q", want)
				}
			}
			if strings.Contains(page, "data-live") || strings.Contains(strings.ReplaceAll(page, "\u00a0", ""), "242061230001") {
				t.Error("the paid page asks on, or shows the whole number")
			}
			if page := w.get(w.path("/collect/mine")); !strings.Contains(page, id.String()) || !strings.Contains(page, "1 payment, 5,000") {
				t.Error("a cashier does not find their own collection")
			}
			if page := w.get(w.path("/collect/mine?open=1")); strings.Contains(page, id.String()) {
				t.Error("a paid one is open")
			}
			w.be(till.RoleCashier, "en")
			if page := w.get(w.path("/collect/mine")); strings.Contains(page, id.String()) {
				t.Error("another cashier has it, too")
			}
		})
	}
}

// checkAct looks for the one audit row of a payment that a person made.
func (w *world) checkAct(id till.ID, actor string) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(tx *store.Tx) error {
		acts, err := auditlog.ActsOn(context.Background(), tx, store.Ref{Client: w.client.ID, ID: id}, 10)
		if len(acts) != 1 || acts[0].Action != "payment.create" || acts[0].Actor != actor || !strings.HasPrefix(acts[0].Cause, "console ") {
			w.t.Errorf("the audit log has %+v", acts)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// The page of a request says what to do, and the person who typed the number sees it
// while it waits.
func TestARequestThatWaitsAndOneThatEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.be(till.RoleCashier, "en")
	brice := w.visitor
	to, id := w.ask("2500", "242061230003")
	w.until(id, till.Processing)
	page := w.eventually(to, "Please type your PIN")
	for _, want := range []string{`data-live="log"`, `data-clock="`, "242\u00a006\u00a0123\u00a000\u00a003", "On the customer&#39;s phone since", "Leave: the request goes on", "<noscript>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a request lacks %q", want)
		}
	}
	checkPage(t, "waiting", page)
	if strings.Contains(page, "Ask again") || strings.Contains(w.get(w.path("/collect?again="+id.String())), "06\u00a0123\u00a000\u00a003") {
		t.Error("a request that is open can be asked again")
	}
	if page := w.get(w.path("/payments/" + id.String() + "/receipt")); !strings.Contains(page, "this payment is not paid") || strings.Contains(page, "<article") {
		t.Error("an open payment has a receipt")
	}
	w.be(till.RoleOwner, "en")
	if page := w.get(to); strings.Contains(page, "123\u00a000\u00a003") || !strings.Contains(page, "242\u00a0•••\u00a0003") {
		t.Error("somebody else sees the whole number")
	}
	w.visitor = brice
	to, id = w.ask("700", "242061230002")
	w.until(id, till.Failed)
	page = w.get(to)
	if !strings.Contains(page, "The customer declined") || !strings.Contains(page, "/collect?again="+id.String()) || strings.Contains(page, "data-live") {
		t.Errorf("the page of a declined request:\n%s", page)
	}
	page = w.get(w.path("/collect?again=" + id.String()))
	if !strings.Contains(page, `value="700"`) || !strings.Contains(page, "06\u00a0123\u00a000\u00a002") || !strings.Contains(page, `value="Table 4"`) {
		t.Error("the form is not filled in")
	}
	// A payment that a program made has its own page.
	other := w.pay("242061230003", 100, "", "")
	if a := w.do(request(http.MethodGet, w.path("/collect/"+other.String()), nil)); a.Code != http.StatusSeeOther || !strings.HasSuffix(a.Header().Get("Location"), "/payments/"+other.String()) {
		t.Errorf("a program's payment: %d %s", a.Code, a.Header().Get("Location"))
	}
	w.console.Now = func() till.Time { return w.store.Now().Add(3 * 24 * time.Hour) }
	for _, path := range []string{to, w.path("/payments/" + id.String() + "/receipt")} {
		if a := w.do(request(http.MethodGet, path, nil)); a.Code != http.StatusNotFound {
			t.Errorf("a cashier sees %s after three days: %d", path, a.Code)
		}
	}
	if strings.Contains(w.get(w.path("/collect/mine")), id.String()) {
		t.Error("a collection of three days ago is listed")
	}
}

// What is wrong stands at its field, and nothing that was typed is lost.
func TestTheCounterRefusesMistakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	for _, c := range []struct{ amount, phone, market, reference, want string }{
		{"", "242061230001", "", "", "Write the amount in digits."},
		{"5e3", "242061230001", "", "", "Write the amount in digits."},
		{"1,50", "242061230001", "", "", "Write the amount in digits."},
		{"999999999999", "242061230001", "", "", "MTN MoMo takes "},
		{"500", "12", "", "", "This is no number of MTN MoMo."},
		{"500", hostile, "", "", "This is no number of MTN MoMo."},
		{"500", "05 123 45 67", "", "", "is a number of Airtel Money. Choose Airtel Money"},
		{"500", "06 123 00 01", "airtel_money.CG.XAF", "", "is a number of MTN MoMo."},
		{"500", "242061230001", "", strings.Repeat("x", 65), "A reference has at most 64"},
		{hostile, hostile, hostile, hostile, "Write the amount in digits."},
		{strings.Repeat("9", 3000), strings.Repeat("9", 3000), "", strings.Repeat("\u202eÉ", 3000), "Write the amount in digits."},
	} {
		form := w.deskForm(c.amount, c.phone, "242061230001")
		form.Set("reference", c.reference)
		if c.market != "" {
			form.Set("market", c.market)
		}
		a := w.do(request(http.MethodPost, w.path("/collect"), form))
		page := a.Body.String()
		checkPage(t, c.want, page)
		if a.Code != http.StatusOK || !strings.Contains(page, c.want) || !strings.Contains(page, `role="alert"`) || fieldOf(t, hiddenKey, page) != form.Get("key") {
			t.Errorf("%q: %d, and the page lacks it", c.want, a.Code)
		}
	}
	// A merchant that has named no country chooses one; the form keeps it.
	if err := w.accounts.SetProfile(context.Background(), &till.Profile{ClientID: w.client.ID, Zone: "UTC"}, "a test"); err != nil {
		t.Fatal(err)
	}
	if page := w.get(w.path("/collect")); !strings.Contains(page, "?country=KE") || strings.Contains(page, `value="mpesa.KE.KES"`) {
		t.Error("the form offers no other country, or the methods of all")
	}
	if page := w.get(w.path("/collect?country=KE")); !strings.Contains(page, `value="mpesa.KE.KES"`) || !strings.Contains(page, "KES<") || strings.Contains(page, "mtn_momo.CG") {
		t.Error("the form of another country has not its methods")
	}
	abroad := w.deskForm("abc", "0712 345 678", "")
	abroad.Set("market", "mpesa.KE.KES")
	if page := w.do(request(http.MethodPost, w.path("/collect"), abroad)).Body.String(); !strings.Contains(page, `value="mpesa.KE.KES"`) || strings.Contains(page, "mtn_momo.CG") {
		t.Error("a mistake leads back to another country")
	}
	// A form that has asked and was changed afterwards says so.
	form := w.deskForm("500", "242061230003", "242061230003")
	to := w.post(w.path("/collect"), form)
	form.Set("amount", "600")
	page := w.do(request(http.MethodPost, w.path("/collect"), form)).Body.String()
	if !strings.Contains(page, "has asked a customer already") || !strings.Contains(page, to) || fieldOf(t, hiddenKey, page) == form.Get("key") {
		t.Errorf("a form that was changed:\n%s", page)
	}
	// Another person's form is not theirs.
	w.be(till.RoleCashier, "en")
	form.Set("amount", "500")
	if page := w.do(request(http.MethodPost, w.path("/collect"), form)).Body.String(); !strings.Contains(page, "has asked a customer already") || strings.Contains(page, to) {
		t.Error("somebody else's form leads to their payment")
	}
}

// The receipt has the merchant's head and foot in its language, and says what it
// is.
func TestReceipts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	err := w.accounts.SetProfile(context.Background(), &till.Profile{ClientID: w.client.ID, Name: "Boulangerie <b>", Zone: "Africa/Brazzaville", Country: "CG", Language: "fr",
		ReceiptHead: "12, avenue de la Paix\n<img src=x>", ReceiptFoot: "Merci !"}, "a test")
	if err != nil {
		t.Fatal(err)
	}
	_, id := w.ask("5000", "242061230001")
	w.until(id, till.Success)
	path := w.path("/payments/" + id.String() + "/receipt")
	page := w.get(path)
	checkPage(t, "receipt", page)
	for _, want := range []string{"ESSAI · pas d’argent réel", "12, avenue de la Paix", "Merci !", "5\u202f000\u00a0FCFA", "242\u00a0•••\u00a0001", "Reçu de l’opérateur", "SBX", "UTC&#43;1", "document fiscal", `lang="fr"`, `class="paper p80"`, "Print"} {
		if !strings.Contains(page, want) {
			t.Errorf("the receipt lacks %q", want)
		}
	}
	if strings.Contains(page, "copie") {
		t.Error("the first receipt is a copy")
	}
	for paper, want := range map[string]string{"58": "p58", "a4": "pa4", "..": "p80"} {
		if page := w.get(path + "?paper=" + paper); !strings.Contains(page, `class="paper `+want+`"`) {
			t.Errorf("on paper %s the receipt is not %s", paper, want)
		}
	}
	// It is passed on as a text, by the person's own program.
	if !strings.Contains(page, `href="https://wa.me/?text=Boulangerie%20%3cb%3e%0aRe%c3%a7u`) || !strings.Contains(page, "data-copy=\"Boulangerie &lt;b&gt;\nReçu : 5\u202f000\u00a0FCFA\nESSAI") {
		t.Errorf("the receipt is not handed on: %s", page)
	}
	for _, role := range []till.Role{till.RoleAccountant, till.RoleSupport, till.RoleCashier} {
		w.be(role, "en")
		w.get(path)
	}
	w.be(till.RoleOwner, "en")
	w.console.Now = func() till.Time { return w.store.Now().Add(time.Hour) }
	if page := w.get(path); !strings.Contains(page, "copie") {
		t.Error("an hour later it is no copy")
	}
	if page := w.get(w.path("/payments/" + id.String())); !strings.Contains(page, path) {
		t.Error("the payment's page does not lead to its receipt")
	}
}

// A developer collects for test merchants only.
func TestADeveloperCollectsNoRealMoney(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	live, _, err := w.accounts.CreateClient(context.Background(), "Pharmacie", till.Live, "a test")
	if err != nil {
		t.Fatal(err)
	}
	w.be(till.RoleDeveloper, "en")
	w.visitor.Memberships = []till.Membership{{Client: live.ID, Role: till.RoleDeveloper}}
	if w.visitor.May(live, people.Collect) != people.None {
		t.Fatal("a developer may")
	}
	if a := w.do(request(http.MethodGet, shell.Prefix+"/c/"+live.ID.String()+"/collect", nil)); a.Code != http.StatusForbidden {
		t.Errorf("the form: %d", a.Code)
	}
	w.visitor.Memberships[0].Role = till.RoleCashier
	if a := w.do(request(http.MethodGet, shell.Prefix+"/c/"+live.ID.String()+"/collect", nil)); a.Code != http.StatusOK || strings.Contains(a.Body.String(), "TEST") {
		t.Errorf("a cashier of a live merchant: %d", a.Code)
	}
}
