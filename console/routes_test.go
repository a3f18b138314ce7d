package console

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"till"
	"till/console/assets"
	"till/console/list"
	"till/console/shell"
	"till/people"
)

// address fills in the places of a route's path.
func (w *world) address(r *shell.Route, client till.ID, id string) string {
	if strings.Contains(r.Path, "/refunds/{id}") {
		id = w.refund.String()
	}
	if strings.Contains(r.Path, "/checkouts/{id}") {
		id = w.order.String()
	}
	if strings.Contains(r.Path, "/links/{id}") {
		id = w.link.String()
	}
	path := strings.NewReplacer("{client}", client.String(), "{id}", id, "{endpoint}", w.hook.String(), "{n}", "1", "{currency}", "XAF", "{$}", "").Replace(r.Path)
	return shell.Prefix + path
}

// Every route that is a merchant's, with each role, and with a person of
// another merchant. I11, and what the role table says.
func TestEveryRouteWithEveryRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.hook = w.newEndpoint("http://127.0.0.1:65001/hook")
	id := w.pay("242061230003", 2500, "ORDER-1042", "loaves").String()
	paid := w.paid(paysPlainly, 5000)
	if a := w.do(request(http.MethodPost, w.path("/payments/"+paid.String()+"/refund"), refundForm(newActID(), "5000"))); a.Code != http.StatusSeeOther {
		t.Fatalf("a refund: %d", a.Code)
	}
	w.refund = w.untilRefund(paid, till.PayoutSuccess).ID
	w.order, w.link = w.makeOrder("5 000", "ORDER-1043", "loaves"), w.makeLink("Table 4", "")
	for i := range Routes {
		r := &Routes[i]
		if r.For != shell.Staff || strings.HasSuffix(r.Path, "/live") || strings.Contains(r.Path, "payouts/{id}") {
			continue
		}
		for _, role := range slices.Concat(till.StaffRoles, till.HouseRoles) {
			w.be(role, "en")
			may := w.visitor.May(w.client, r.May) != people.None
			member := w.visitor.May(w.client, people.Member) != people.None
			a := w.do(request(r.Method, w.address(r, w.client.ID, id), formOf(r)))
			want := map[bool]string{true: "2xx or 303", false: "403"}[may]
			switch got := a.Code; {
			case !member && got == http.StatusNotFound:
			case member && may && (got < 300 || got == http.StatusSeeOther):
			case member && !may && got == http.StatusForbidden:
				if !strings.Contains(a.Body.String(), "It can be given by") {
					t.Errorf("%s %s as %s: the page does not say who can give the right", r.Method, r.Path, role)
				}
			default:
				t.Errorf("%s %s as %s: %d, want %s", r.Method, r.Path, role, got, want)
			}
		}
		// A person of another merchant, whatever the role there.
		w.be(till.RoleOwner, "en")
		w.visitor.Memberships[0].Client = w.other.ID
		if a := w.do(request(r.Method, w.address(r, w.client.ID, id), formOf(r))); a.Code != http.StatusNotFound {
			t.Errorf("%s %s of another merchant: %d, want 404", r.Method, r.Path, a.Code)
		}
		if strings.Contains(r.Path, "{id}") || strings.Contains(r.Path, "{endpoint}") {
			if a := w.do(request(r.Method, w.address(r, w.other.ID, id), formOf(r))); a.Code != http.StatusNotFound {
				t.Errorf("%s %s with another merchant's id: %d, want 404", r.Method, r.Path, a.Code)
			}
		}
	}
}

func formOf(r *shell.Route) url.Values {
	if r.Method != http.MethodPost {
		return nil
	}
	switch {
	case strings.HasSuffix(r.Path, "/webhooks"):
		return url.Values{"url": {"http://127.0.0.1:65001/another"}, "act": {till.NewID(1).String()}}
	case strings.HasSuffix(r.Path, "/keys"):
		return url.Values{"act": {till.NewID(1).String()}, "scopes": {"payments:read"}}
	case strings.HasSuffix(r.Path, "/settings"):
		return url.Values{"zone": {"Africa/Brazzaville"}}
	case strings.HasSuffix(r.Path, "/edit"):
		return url.Values{"url": {"http://127.0.0.1:65001/changed"}}
	case strings.HasSuffix(r.Path, "/{id}/refund"):
		return refundForm(till.NewID(1).String(), "100")
	case strings.HasSuffix(r.Path, "/links/new"):
		return linkForm(till.NewID(2).String(), "Table 5", "700")
	case strings.HasSuffix(r.Path, "/title"):
		return url.Values{"title": {"Table 6"}}
	case strings.HasSuffix(r.Path, "/checkouts/new"):
		return orderForm(till.NewID(1).String(), "5 000", "ORDER-7", "")
	case strings.HasSuffix(r.Path, "/rotate"):
		return url.Values{"act": {till.NewID(1).String()}}
	case strings.HasSuffix(r.Path, "/state"):
		return url.Values{"on": {"1"}}
	case strings.HasSuffix(r.Path, "/sandbox/answer"):
		return url.Values{"payment": {till.ID{1}.String()}}
	case strings.HasSuffix(r.Path, "/sandbox/handset"):
		return url.Values{"state": {"on"}}
	}
	return url.Values{}
}

// Routes that are not open lead somebody without a session to the sign-in page,
// and tell a script that fetches a region.
func TestNobodyIsLedToSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	w.console.SessionOf = func(*shell.Visit, string) (*people.Session, error) {
		return nil, &people.Refusal{Code: people.SessionOver}
	}
	for i := range Routes {
		r := &Routes[i]
		if r.For == shell.Everyone {
			continue
		}
		q := request(r.Method, w.address(r, w.client.ID, w.client.ID.String()), formOf(r))
		a := w.do(q)
		if a.Code != http.StatusSeeOther || !strings.HasPrefix(a.Header().Get("Location"), "/console/enter") {
			t.Errorf("%s %s: %d to %q", r.Method, r.Path, a.Code, a.Header().Get("Location"))
		}
	}
	q := request(http.MethodGet, w.path("/payments"), nil)
	q.Header.Set("Till-Region", "list")
	if a := w.do(q); a.Code != http.StatusUnauthorized {
		t.Errorf("a region without a session: %d", a.Code)
	}
}

// A cashier sees the last two days.
func TestACashierSeesTwoDays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	id := w.pay("242061230003", 2500, "ORDER-1042", "loaves").String()
	w.be(till.RoleCashier, "en")
	if page := w.get(w.path("/payments")); !strings.Contains(page, id) {
		t.Error("a cashier does not see a payment of today")
	}
	w.console.Now = func() till.Time { return w.store.Now().Add(3 * 24 * time.Hour) }
	if page := w.get(w.path("/payments?range=all")); strings.Contains(page, id) {
		t.Error("a cashier sees a payment from before two days")
	}
	if a := w.do(request(http.MethodGet, w.path("/payments/"+id), nil)); a.Code != http.StatusNotFound {
		t.Errorf("an old payment is answered %d", a.Code)
	}
	if page := w.get(w.path("/search?q=ORDER-1042")); strings.Contains(page, id) {
		t.Error("a cashier finds a payment from before two days")
	}
	w.be(till.RoleOwner, "en")
	if page := w.get(w.path("/payments?range=all")); !strings.Contains(page, id) {
		t.Error("an owner does not see it")
	}
}

// The headers of every answer are exactly those of the policy.
func TestHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; " +
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types till",
		"Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "publickey-credentials-get=(self), camera=(), microphone=(), geolocation=()",
	}
	for _, path := range []string{w.path("/payments"), shell.Prefix + "/nothing", assets.Path("console.css"), shell.Prefix + "/"} {
		a := w.do(request(http.MethodGet, path, nil))
		for name, value := range want {
			if got := a.Header().Get(name); got != value {
				t.Errorf("%s: %s is %q, want %q", path, name, got, value)
			}
		}
		cache := a.Header().Get("Cache-Control")
		if asset := strings.Contains(path, "/assets/"); asset != strings.Contains(cache, "immutable") || !asset && cache != "no-store" {
			t.Errorf("%s: Cache-Control is %q", path, cache)
		}
		if a.Header().Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: plain HTTP asks for HTTPS", path)
		}
	}
	w.console.Secure = true
	if a := w.do(request(http.MethodGet, w.path("/payments"), nil)); a.Header().Get("Strict-Transport-Security") == "" {
		t.Error("HTTPS does not ask for HTTPS")
	}
}

// Posts of other sites are refused, framing is forbidden, and plain HTTP is for
// this machine only, under its own name.
func TestForeignersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	for name, change := range map[string]func(r *http.Request){
		"cross-site":      func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"foreign origin":  func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "https://evil.example") },
		"null origin":     func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "null") },
		"another machine": func(r *http.Request) { r.RemoteAddr = "192.0.2.1:5000" },
		"another name":    func(r *http.Request) { r.Host = "evil.example" },
	} {
		r := request(http.MethodPost, w.path("/search"), url.Values{"q": {"x"}})
		change(r)
		if a := w.do(r); a.Code != http.StatusForbidden {
			t.Errorf("%s: %d, want 403", name, a.Code)
		}
	}
	if a := w.do(request(http.MethodPost, w.path("/search"), url.Values{"q": {"x"}})); a.Code != http.StatusSeeOther {
		t.Errorf("our own form: %d", a.Code)
	}
	big := request(http.MethodPost, w.path("/search"), url.Values{"q": {strings.Repeat("x", 100_000)}})
	if a := w.do(big); a.Code >= 500 {
		t.Errorf("a body that is too large: %d", a.Code)
	}
}

func TestOwnPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/console/c/1?x=2": "/console/c/1?x=2", "https://evil.example/console/": "/console/", "//evil.example/console/": "/console/", "javascript:alert(1)": "/console/",
		"/console/../v1": "/console/", "/v1/payments": "/console/", "": "/console/", "/console/\\evil": "/console/", "/consolex": "/console/",
	} {
		if got := shell.OwnPath(path); got != want {
			t.Errorf("%q leads to %q, want %q", path, got, want)
		}
	}
}

// A region is the same markup as in its page, and one that did not change costs
// a line.
func TestRegions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	id := w.pay("242061230001", 5000, "ORDER-1", "loaves")
	w.until(id, till.Success)
	for _, c := range []struct{ path, region string }{{"/payments?upto=" + fmt.Sprint(int64(w.store.Now())), "list"}, {"/payments/" + id.String(), "subject"},
		{"/checkouts/" + w.makeOrder("700", "", "").String(), "checkout"}, {"/checkouts?upto=" + fmt.Sprint(int64(w.store.Now())), "list"}, {"/collect/mine", "mine"}, {"/wallets", "wallets"}, {"/wallets/XAF", "wallet"}} {
		page := w.get(w.path(c.path))
		q := request(http.MethodGet, w.path(c.path), nil)
		q.Header.Set("Till-Region", c.region)
		a := w.do(q)
		if a.Code != http.StatusOK || !strings.Contains(page, strings.TrimSpace(a.Body.String())) {
			t.Errorf("%s: %d, and the region is not a part of its page", c.path, a.Code)
		}
		q = request(http.MethodGet, w.path(c.path), nil)
		q.Header.Set("Till-Region", c.region)
		q.Header.Set("If-None-Match", a.Header().Get("ETag"))
		if again := w.do(q); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s: what did not change is answered %d with %d bytes", c.path, again.Code, again.Body.Len())
		}
		q.Header.Set("Till-Region", "layout-of-another")
		if a := w.do(q); a.Code != http.StatusNotFound || a.Body.Len() != 0 {
			t.Errorf("%s: an unknown region is answered %d", c.path, a.Code)
		}
	}
	// A list does not jump: what is new is counted.
	upto := int64(w.store.Now())
	w.pay("242061230003", 700, "ORDER-2", "coffee")
	page := w.get(w.path("/payments?upto=" + fmt.Sprint(upto)))
	if strings.Contains(page, "ORDER-2") || !strings.Contains(page, "1 new · show") {
		t.Error("a new payment jumps into the list, or is not told")
	}
}

// Weights, from the real handler, in bytes of gzip.
func TestWeights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	for range 60 {
		w.pay("242061230003", 5000, "ORDER-"+till.NewID(w.store.Now()).String(), "loaves and coffee")
	}
	id := w.pay("242061230003", 700, "ORDER-2", "coffee")
	w.until(id, till.Processing)
	order, link := "", w.makeLink("Table 4", "").String()
	for range 60 {
		order = w.makeOrder("5 000", "ORDER-"+till.NewID(w.store.Now()).String(), "loaves and coffee").String()
	}
	weigh := func(path string) int {
		q := request(http.MethodGet, path, nil)
		q.Header.Set("Accept-Encoding", "gzip")
		a := w.do(q)
		if a.Code != http.StatusOK || a.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %d %q", path, a.Code, a.Header().Get("Content-Encoding"))
		}
		z, err := gzip.NewReader(bytes.NewReader(a.Body.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, z); err != nil {
			t.Fatal(err)
		}
		return a.Body.Len()
	}
	own, all := 0, 0
	for _, name := range []string{"console.css", "paper.css", "live.js", "keys.js", "idiomorph.js", "sprite.svg"} {
		n := weigh(assets.Path(name))
		t.Logf("%s: %d bytes", name, n)
		if all += n; strings.HasSuffix(name, ".js") && name != "idiomorph.js" {
			own += n
		}
		if most := map[string]int{"console.css": 9 << 10, "paper.css": 2 << 10, "sprite.svg": 3 << 10, "idiomorph.js": 4 << 10}[name]; most > 0 && n > most {
			t.Errorf("%s has %d bytes, at most %d", name, n, most)
		}
	}
	if own > 8<<10 {
		t.Errorf("own scripts have %d bytes, at most %d", own, 8<<10)
	}
	for _, path := range []string{"/home", "/home?range=30d", "/figures?range=30d", "/payments/export", "/payments", "/payments/" + id.String(), "/search", "/collect", "/collect/mine", "/wallets", "/wallets/XAF",
		"/payouts", "/refunds", "/checkouts", "/checkouts/new", "/checkouts/" + order, "/links", "/links/new", "/links/" + link, "/links/" + link + "/print?paper=tent", "/payments/" + id.String() + "/refund", "/webhooks", "/keys", "/people", "/audit", "/settings", "/sandbox", "/search?q=ORDER", shell.Prefix + "/house", shell.Prefix + "/house/search?q=ORDER", shell.Prefix + "/house/audit", shell.Prefix + "/house/people"} {
		role := till.RoleOwner
		if strings.HasPrefix(path, shell.Prefix) {
			role = till.RoleAdmin
		} else {
			path = w.path(path)
		}
		w.be(role, "en")
		n := weigh(path)
		t.Logf("%s: %d bytes, first visit %d", path, n, n+all)
		if n > 15<<10 || n+all > 45<<10 {
			t.Errorf("%s has %d bytes, and %d on a first visit; at most %d and %d", path, n, n+all, 15<<10, 45<<10)
		}
	}
}

// The table is the whole set of filtered rows, and nothing in it runs in a
// spreadsheet.
func TestCSV(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{{"=1+1", "'=1+1"}, {"+242", "'+242"}, {"a=b", "a=b"}, {"", ""}, {"\tx", "'\tx"}, {"x;=1+1", "x;'=1+1"}, {"x,=1+1", "x,'=1+1"}, {"＝1", "'＝1"}, {`a"b`, `a""b`}} {
		for comma, want := range map[byte]string{',': `"` + c.want + `","y"` + "\r\n", ';': `"` + c.want + `";"y"` + "\r\n"} {
			if got := string(list.AppendRow(nil, comma, []string{c.in, "y"})); got != want {
				t.Errorf("%q became %s", c.in, got)
			}
		}
	}
	if got := list.PlainAmount(till.Money{Minor: 125050, Currency: "KES"}); got != "1250.50" {
		t.Errorf("an amount is written %q", got)
	}
}
