package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till"
	"till/books"
	"till/console/shell"
	"till/engine"
	"till/store"
	"till/webhook"
)

// openCase puts a case on the list, as the engine does.
func (w *world) openCase(subject till.ID, kind, detail string) {
	w.t.Helper()
	ctx := context.Background()
	err := w.store.Update(ctx, func(tx *store.Tx) error {
		return tx.OpenCases(ctx, []*store.Case{{ClientID: w.client.ID, ID: till.NewID(tx.Now()), SubjectID: subject, Kind: kind, Detail: detail, OpenedAt: tx.Now()}})
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// Home, the list's badge and the list count the same: payments with an open case, each
// once, ended or not, and no webhook. The case is told in the reader's language.
func TestToExamineIsOneCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.hook = w.newEndpoint("http://127.0.0.1:65001/")
	paid, waiting := w.pay("242061230001", 5000, "ORDER-1", ""), w.pay("242061230003", 5000, "ORDER-2", "")
	w.until(paid, till.Success)
	w.until(waiting, till.Processing)
	w.openCase(paid, engine.CaseReceiptReused, "the operator reports a success under a receipt that another payment has: "+waiting.String()+" of client "+w.other.ID.String())
	w.openCase(paid, engine.CaseContradiction, "the operator reports a second success with another receipt")
	w.openCase(waiting, engine.CaseOverdue, "its time is over and the operator has not decided")
	w.openCase(w.hook, webhook.CaseDisabled, "it failed for five days")
	for lang, want := range map[string]string{"en": "2 payments to examine", "fr": "2 paiements à examiner"} {
		w.be(till.RoleOwner, lang)
		if page := w.get(w.path("/home")); !strings.Contains(page, want) {
			t.Errorf("home lacks %q", want)
		}
		for _, path := range []string{"/payments", "/payments?examine=1"} {
			if page := w.get(w.path(path)); !strings.Contains(page, `<span class="tally">2</span>`) {
				t.Errorf("%s %s: the badge is another number", lang, path)
			}
		}
	}
	w.be(till.RoleOwner, "fr")
	if page := w.get(w.path("/payments?examine=1")); !strings.Contains(page, "2 paiements") || !strings.Contains(page, paid.String()) || !strings.Contains(page, waiting.String()) {
		t.Error("the list has others than it counts")
	}
	w.pay("242061230003", 700, "ORDER-3", "")
	if table := w.get(w.path("/payments.csv?examine=1")); strings.Count(table, "\n") != 3 || strings.Contains(table, "ORDER-3") {
		t.Errorf("the table has other rows than the list:\n%s", table)
	}
	page := w.get(w.path("/payments/" + paid.String()))
	for _, bad := range []string{"the operator", waiting.String(), w.other.ID.String()} {
		if strings.Contains(page, bad) {
			t.Errorf("the French page has %q", bad)
		}
	}
	if !strings.Contains(page, "un second succès avec un autre reçu") {
		t.Error("the case is not told in French")
	}
	if strings.Contains(page, "Courrier à l") {
		t.Error("a merchant's staff is to write to the operator")
	}
	w.be(till.RoleSupport, "fr")
	page = w.get(w.path("/payments/" + waiting.String()))
	checkPage(t, "with a letter", page)
	_, letter, found := strings.Cut(page, "Courrier à l’opérateur")
	if !found || !strings.Contains(letter, "Notre référence\u00a0: ") || !strings.Contains(letter, "Envoyé\u00a0: ") || strings.Contains(letter, "242061230003") {
		t.Error("the house has no letter to the operator, or it has a whole phone")
	}
}

// What is open on home is what the list behind it shows.
func TestOpenPaymentsAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	done := w.pay("242061230001", 5000, "ORDER-1", "")
	w.until(done, till.Success)
	var open []till.ID
	for range 3 {
		id := w.pay("242061230003", 5000, "ORDER-2", "")
		w.until(id, till.Processing)
		open = append(open, id)
	}
	if page := w.get(w.path("/home")); !strings.Contains(page, `state=open">3 payments</a>`) {
		t.Error("home does not lead to what is open")
	}
	page := w.get(w.path("/payments?range=all&state=open"))
	for _, id := range open {
		if !strings.Contains(page, `/payments/`+id.String()+`"`) {
			t.Errorf("the list of what is open lacks %s", id)
		}
	}
	if strings.Contains(page, `/payments/`+done.String()+`"`) || !strings.Contains(page, "3 payments") {
		t.Error("the list of what is open has what ended, or another number")
	}
	if table := w.get(w.path("/payments.csv?range=all&state=open")); strings.Count(table, "\n") != 4 || strings.Contains(table, done.String()) {
		t.Errorf("the table of what is open has other rows than the list:\n%s", table)
	}
	if page := w.get(w.path("/payments?range=all&state=open&page=2")); strings.Contains(page, open[0].String()) {
		t.Error("the second page has what the first has")
	}
}

// Before the first payment is paid, home is a guide; then it is not.
func TestHomeIsAGuideAtFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	const title, fr = "First steps", "Premiers pas"
	page := w.get(w.path("/home"))
	checkPage(t, "/home", page)
	for _, want := range []string{title, "1 of 6", "The first request", "A webhook", "ask the house", w.path("/webhooks"), w.path("/sandbox")} {
		if !strings.Contains(page, want) {
			t.Errorf("the guide lacks %q", want)
		}
	}
	declined := w.pay("242061230002", 5000, "", "")
	w.until(declined, till.Failed)
	w.hook = w.newEndpoint("http://127.0.0.1:65001/")
	w.be(till.RoleViewer, "fr")
	page = w.get(w.path("/home"))
	if !strings.Contains(page, fr) || !strings.Contains(page, "4 sur 6") || strings.Contains(page, `href="`+w.path("/keys")) || !strings.Contains(page, "figures") {
		t.Error("a viewer's guide does not count what is done, leads where they may not go, or hides the figures")
	}
	w.be(till.RoleCashier, "fr")
	if page := w.get(w.path("/home")); strings.Contains(page, fr) {
		t.Error("a cashier, who sees two days, is told that nothing was ever paid")
	}
	w.be(till.RoleOwner, "en")
	w.until(w.pay("242061230001", 5000, "", ""), till.Success)
	if page := w.get(w.path("/home")); strings.Contains(page, title) {
		t.Error("the guide stays after the first payment")
	}
	if page := w.get(w.path("/home?from=2026-01-01&to=2026-01-02")); strings.Contains(page, title) {
		t.Error("the guide is shown for a time without payments")
	}
}

// The wallet's line has a point for each of 30 days, with a table, and is not fetched
// again with the region.
func TestHomeHasTheWalletsLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.until(w.pay("242061230001", 5000, "", ""), till.Success)
	page := w.get(w.path("/home"))
	_, line, found := strings.Cut(page, "Wallet, 30 days")
	if !found || strings.Count(line, "<tr>") != 31 || strings.Count(line, "data-value=") != 30 || !strings.Contains(line, "5,000 XAF now") || !strings.Contains(line, "statement.csv?from=") {
		t.Errorf("the line is missing, or not of 30 days: %d rows, %d points", strings.Count(line, "<tr>"), strings.Count(line, "data-value="))
	}
	r := request(http.MethodGet, w.path("/home"), nil)
	r.Header.Set("Till-Region", "home")
	if a := w.do(r); a.Code != http.StatusOK || strings.Contains(a.Body.String(), "30 days</h2>") {
		t.Errorf("the region brings the line again: %d", a.Code)
	}
}

// Search finds lines of wallets, and says what it takes for a secret of ours.
func TestSearchFindsLinesAndSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	a := books.Adjustment{Client: w.client.ID, ID: till.NewID(w.store.Now()), Amount: till.Money{Minor: 731, Currency: "XAF"}, Reason: "a bank slip", By: "Anne"}
	if _, err := books.Adjust(t.Context(), w.store, a); err != nil {
		t.Fatal(err)
	}
	find := func(path, typed string) string {
		t.Helper()
		a := w.do(request(http.MethodPost, path+"/search", url.Values{"q": {typed}}))
		to := a.Header().Get("Location")
		if a.Code != http.StatusSeeOther || strings.Contains(to, "till_") || strings.Contains(to, "whsec") {
			t.Fatalf("%s leads to %d %s", typed, a.Code, to)
		}
		page := w.get(to)
		checkPage(t, typed, page)
		return page
	}
	for _, typed := range []string{a.ID.String(), "731", "731 XAF"} {
		if page := find(w.path(""), typed); !strings.Contains(page, "Lines of wallets") || !strings.Contains(page, "/wallets/XAF?from=") {
			t.Errorf("%q finds no line", typed)
		}
	}
	w.be(till.RoleCashier, "en")
	if page := find(w.path(""), "731"); strings.Contains(page, "Lines of wallets") {
		t.Error("a cashier finds lines of wallets")
	}
	w.be(till.RoleSupport, "fr")
	if page := find(shell.Prefix+"/house", a.ID.String()); !strings.Contains(page, "Lignes de portefeuille") {
		t.Error("the house does not find the line")
	}
	w.be(till.RoleOwner, "en")
	key, _, err := w.accounts.CreateKey(t.Context(), w.other.ID, "shop", []till.Scope{till.PaymentsRead}, 0, "a test")
	if err != nil {
		t.Fatal(err)
	}
	forged := key[:len(key)-1] + string('a'+(key[len(key)-1]-'a'+1)%2)
	if page := find(w.path(""), forged); strings.Contains(page, "valid API key") {
		t.Error("a text that is no key is called one")
	}
	if page := find(w.path(""), key); !strings.Contains(page, "marked as exposed") {
		t.Error("a key of ours is not told")
	}
	if s, err := w.accounts.Authenticate(t.Context(), key); err != nil || s.Key.ExposedAt.IsZero() {
		t.Errorf("the key is not marked: %v", err)
	}
}

// A webhook's secret is told by its merchant only.
func TestSearchKnowsItsWebhookSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	address, all := "http://127.0.0.1:65001/hook", []string{till.AllEvents}
	made, err := w.endpoints.Create(t.Context(), w.client, &webhook.Request{URL: &address, Events: &all}, webhook.Requester{Actor: "a test", Scopes: till.EventScopes})
	if err != nil {
		t.Fatal(err)
	}
	typed := func(path string) string {
		a := w.do(request(http.MethodPost, path+"/search", url.Values{"q": {made.Secret.Reveal()}}))
		return w.get(a.Header().Get("Location"))
	}
	if page := typed(w.path("")); !strings.Contains(page, "signs the webhooks to 127.0.0.1:65001") || !strings.Contains(page, "/webhooks/"+made.Endpoint.ID.String()) {
		t.Error("the merchant is not told that it is its own secret")
	}
	w.be(till.RoleCashier, "en")
	if page := typed(w.path("")); strings.Contains(page, "127.0.0.1:65001") {
		t.Error("a cashier is told whose secret it is")
	}
}
