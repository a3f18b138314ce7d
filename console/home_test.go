package console

import (
	"encoding/csv"
	"net/http"
	"strings"
	"sync"
	"testing"

	"till"
	"till/console/shell"
	"till/store"
)

// Home has what came in, with its chart, its table and its CSV, and leads to
// the lists that the figures count.
func TestHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	for i, phone := range []string{"242061230001", "242061230021", "242061230002"} {
		want := till.Success
		if i == 2 {
			want = till.Failed
		}
		w.until(w.pay(phone, 5000, "", ""), want)
	}
	page := w.get(w.path("/home"))
	for _, want := range []string{"10,000<span class=\"unit\">XAF", "2 paid, 0 open", "66<span class=\"unit\">%", "2 of 3 ended", "9 of 10 in", `MTN MoMo <b class="amount">10,000</b> <span class="amount">` + "100\u00a0%</span>", "data-value=", "<th scope=\"row\">",
		"state=success", "Nothing needs you", "Brazzaville, UTC&#43;1", "home.csv", "10,000\u00a0XAF</b>"} {
		if !strings.Contains(page, want) {
			t.Errorf("home lacks %q", want)
		}
	}
	w.be(till.RoleCashier, "fr")
	page = w.get(w.path("/home"))
	if strings.Contains(page, "Portefeuille") || strings.Contains(page, "home.csv") || strings.Contains(page, "30 jours") {
		t.Error("a cashier sees wallets, exports or a month")
	}
	w.be(till.RoleOwner, "en")
	a := w.do(request(http.MethodGet, w.path("/home.csv"), nil))
	rows, err := csv.NewReader(strings.NewReader(a.Body.String())).ReadAll()
	if err != nil || len(rows) != 2 || strings.Join(rows[1][3:], " ") != "mtn_momo XAF 2 10000 0 0 0 0 0 0" {
		t.Errorf("the table is %v, %v", rows, err)
	}
	// Fetched again it says that nothing has changed.
	r := request(http.MethodGet, w.path("/home?from=2026-01-01&to=2026-01-02"), nil)
	r.Header.Set("Till-Region", "home")
	first := w.do(r)
	r.Header.Set("If-None-Match", first.Header().Get("ETag"))
	if again := w.do(r); first.Code != http.StatusOK || again.Code != http.StatusNotModified {
		t.Errorf("the region is %d and then %d", first.Code, again.Code)
	}
}

// Home is read again whenever something changes, so of very many open payments it
// counts the oldest, and says that there are more.
func TestHomeOfManyOpenPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range store.MaxOpenOfClient/50 + 1 { // more than are counted
				w.pay("242061230000", 5000, "", "") // nobody approves
			}
		})
	}
	all.Wait()
	if page := w.get(w.path("/home")); !strings.Contains(page, ">1,000+</a>") {
		t.Error("home does not say that there are more than 1,000 open payments")
	}
}

// The house sees totals of all merchants of a mode, and what needs a person; the
// list to set up is the admin's.
func TestHouse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.until(w.pay("242061230001", 5000, hostile, hostile), till.Success)
	for _, role := range till.HouseRoles {
		for _, lang := range []string{"en", "fr"} {
			w.be(role, lang)
			page := w.get(shell.Prefix + "/house")
			checkPage(t, string(role)+" "+lang, page)
			if admin := strings.Contains(page, "HTTPS"); admin != (role == till.RoleAdmin) {
				t.Errorf("%s: the list to set up is shown: %t", role, admin)
			}
			if !strings.Contains(page, "<span class=\"unit\">XAF") {
				t.Errorf("%s: no total", role)
			}
		}
	}
	if a := w.do(request(http.MethodGet, shell.Prefix+"/", nil)); a.Header().Get("Location") != shell.Prefix+"/house" {
		t.Errorf("somebody of the house begins at %s", a.Header().Get("Location"))
	}
	w.be(till.RoleOwner, "en")
	if a := w.do(request(http.MethodGet, shell.Prefix+"/house", nil)); a.Code != http.StatusForbidden {
		t.Errorf("an owner gets the house's page: %d", a.Code)
	}
}
