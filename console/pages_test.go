package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till"
	"till/console/shell"
)

// Every page, in both languages, with texts that strangers chose.
func TestPagesEscapeWhatStrangersWrote(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	long := strings.Repeat("\u202eÉ", 60)
	paid := w.pay("242061230001", 5000, hostile, hostile)
	declined := w.pay("242061230002", 7500, long, long)
	waiting := w.pay("242061230003", 2500, "ORDER-1042", "Two loaves")
	order := w.makeOrder("5 000", hostile, hostile)
	w.makeOrder("700", "", "")
	link := w.makeLink(strings.TrimRight(hostile, "\u202e"), "5 000")
	w.until(paid, till.Success)
	w.until(declined, till.Failed)
	w.until(waiting, till.Processing)
	for _, lang := range []string{"en", "fr"} {
		for _, path := range []string{"/figures", "/figures?range=30d", "/payments/export", "/home", "/home?range=30d", "/home?from=2026-01-01&to=2026-01-02&currency=XAF", "/payments", "/payments?range=today", "/payments?state=failed", "/payments?examine=1", "/payments?amount=5000&currency=XAF",
			"/payments/" + paid.String(), "/payments/" + declined.String(), "/payments/" + waiting.String(), "/payments/" + paid.String() + "?show=money",
			"/payments/" + paid.String() + "/receipt", "/payments/" + paid.String() + "/receipt?paper=58", "/payments/" + waiting.String() + "/receipt", "/collect", "/collect/mine",
			"/wallets", "/wallets/XAF", "/wallets/XAF?print=1&range=all", "/payments/" + paid.String() + "/note",
			"/checkouts", "/checkouts?state=open", "/checkouts?reference=" + url.QueryEscape(hostile), "/checkouts/new", "/checkouts/" + order.String(), "/links", "/links?state=on", "/links/new", "/links/" + link.String(), "/links/" + link.String() + "/print", "/links/" + link.String() + "/print?paper=tent",
			"/payouts", "/refunds", "/refunds?state=success", "/refunds?examine=1", "/refunds/export", "/payments/" + paid.String() + "/refund", "/payments/" + paid.String() + "/refund?amount=1000", "/payments/" + declined.String() + "/refund", "/search", "/search?q=" + "ORDER-1042", "/search?q=5000", "/search?q=" + paid.String(), "/payments?state=open&range=all", "/search?q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E"} {
			w.be(till.RoleOwner, lang)
			page := w.get(w.path(path))
			checkPage(t, lang+" "+path, page)
		}
	}
	for _, lang := range []string{"en", "fr"} {
		for _, query := range []string{"", "?q=ORDER-1042", "?q=5000&range=today", "?as=secret&ours=key", "?q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E"} {
			w.be(till.RoleSupport, lang)
			checkPage(t, lang+" house "+query, w.get(shell.Prefix+"/house/search"+query))
		}
	}
	w.be(till.RoleOwner, "en")
	page := w.get(w.path("/payments/" + waiting.String()))
	for _, want := range []string{"On the customer&#39;s phone since", "Next: the customer types the PIN.", "242\u00a0•••\u00a0003", "ORDER-1042", "Two loaves", `data-until="`, "End of the customer"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a waiting payment lacks %q", want)
		}
	}
	if strings.Contains(page, "242061230003") {
		t.Error("the page has the whole phone number")
	}
}

// checkPage looks for what no page may have.
func checkPage(t testing.TB, name, page string) {
	t.Helper()
	for _, bad := range []string{"<img", "onerror=alert(1)>", " style=", "<no value>", "ZgotmplZ", "javascript:", "%!"} {
		if strings.Contains(page, bad) {
			t.Errorf("%s has %q", name, bad)
		}
	}
	if !strings.HasSuffix(strings.TrimSpace(page), "</html>") {
		t.Errorf("%s has no end", name)
	}
	// A key that has no words is shown itself.
	for key := range strings.SplitSeq(">frame. >list. >state. >why. >line. >fact. >menu. >error. >next. >group. >range. >search. >collect. >mine. >wallet. >statement. >note. >sandbox. >receipt. >told. >guide. >home. >figures. >whole. >tells. >refunds. >checkouts. >links. >done. \"frame. \"list.", " ") {
		if strings.Contains(page, key) {
			t.Errorf("%s shows a key: %q", name, key)
		}
	}
}

// A merchant without a payment is told what to do.
func TestEmptyPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	for _, c := range []struct{ lang, path, want string }{
		{"en", "/home", "approve on the phone with the PIN 1234"},
		{"fr", "/home", "Pas encore de paiement"},
		{"en", "/payments", "No payments yet"},
		{"fr", "/payments", "Pas encore de paiement"},
		{"en", "/payouts", "No payouts yet"},
		{"en", "/refunds", "No refunds yet"},
		{"fr", "/refunds", "Pas encore de remboursement"},
		{"en", "/checkouts", "No checkouts yet"},
		{"fr", "/checkouts", "Pas encore de page de paiement"},
		{"en", "/checkouts?reference=x", "Nothing matches"},
		{"fr", "/checkouts/new", "Créer l’adresse"},
		{"en", "/links", "No links yet"},
		{"fr", "/links", "Pas encore de lien"},
		{"fr", "/links/new", "Créer le lien"},
		{"en", "/refunds/export", "Nothing matches"},
		{"en", "/payments?state=failed", "Nothing matches"},
		{"en", "/payments?examine=1", "Nothing matches"},
		{"en", "/collect/mine", "Nothing collected yet"},
		{"fr", "/collect", "Rien encaissé pour l’instant"},
		{"en", "/search?q=nothing", "Nothing found"},
		{"fr", "/search?as=secret", "Ceci est un secret"},
		{"en", "/search?as=secret&ours=key", "marked as exposed"},
		{"en", "/search?as=secret&ours=019a82f4-6c1e-7b90-a3d2-5e0c9f417a11", "This is a secret"},
		{"en", "/payments?state=open", "Nothing matches"},
		{"fr", "/figures", "Choisissez une autre période"},
		{"en", "/payouts/export", "Nothing matches"},
	} {
		w.be(till.RoleOwner, c.lang)
		page := w.get(w.path(c.path))
		checkPage(t, c.path, page)
		if !strings.Contains(page, c.want) {
			t.Errorf("%s lacks %q", c.path, c.want)
		}
	}
	for lang, want := range map[string]string{"en": "Nothing found", "fr": "Rien trouvé"} {
		w.be(till.RoleSupport, lang)
		page := w.get(shell.Prefix + "/house/search?q=nothing")
		checkPage(t, "the house's search", page)
		if !strings.Contains(page, want) {
			t.Errorf("the house's search lacks %q", want)
		}
	}
}

// A phone never stands in an address, and what was sealed for one merchant
// opens with no other.
func TestSearchKeepsPhonesOutOfAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	id := w.pay("242061230003", 2500, "ORDER-1042", "loaves")
	for _, typed := range []string{"242061230003", "+242 06 123 00 03", "00242 06 123 00 03", "06 123 00 03"} {
		a := w.do(request(http.MethodPost, w.path("/search"), map[string][]string{"q": {typed}}))
		to := a.Header().Get("Location")
		if a.Code != http.StatusSeeOther || strings.Contains(to, "1230003") || strings.Contains(to, "123") && strings.Contains(to, "q=") || !strings.Contains(to, "who=") {
			t.Fatalf("%q leads to %d %s", typed, a.Code, to)
		}
		page := w.get(to)
		if !strings.Contains(page, id.String()) || strings.Contains(page, "061230003") {
			t.Errorf("%q is not found, or its number is shown", typed)
		}
		foreign := strings.Replace(to, w.client.ID.String(), w.other.ID.String(), 1)
		w.visitor.Memberships = append(w.visitor.Memberships, till.Membership{Client: w.other.ID, Role: till.RoleOwner})
		w.visitor.Memberships = w.visitor.Memberships[1:]
		if a := w.do(request(http.MethodGet, foreign, nil)); a.Code != http.StatusNotFound {
			t.Errorf("a sealed search of another merchant is answered %d", a.Code)
		}
		w.be(till.RoleOwner, "en")
	}
	if a := w.do(request(http.MethodGet, w.path("/search?q=242061230003"), nil)); !strings.Contains(a.Header().Get("Location"), "who=") {
		t.Errorf("a phone that somebody wrote into the address stays there: %d", a.Code)
	}
	a := w.do(request(http.MethodPost, w.path("/search"), map[string][]string{"q": {"till_live_abc_secret"}}))
	if to := a.Header().Get("Location"); strings.Contains(to, "till_") {
		t.Errorf("a secret is led to %s", to)
	}
}
