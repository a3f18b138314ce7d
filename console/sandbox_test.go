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
	"till/provider/sandbox"
)

// post sends a form and returns where it leads.
func (w *world) post(path string, form url.Values) string {
	w.t.Helper()
	a := w.do(request(http.MethodPost, path, form))
	if a.Code != http.StatusSeeOther {
		w.t.Fatalf("POST %s: %d %s", path, a.Code, a.Body)
	}
	return a.Header().Get("Location")
}

var (
	hiddenAt  = regexp.MustCompile(`name="at" value="([^"]*)"`)
	hiddenKey = regexp.MustCompile(`name="key" value="([^"]*)"`)
	payForm   = regexp.MustCompile(`name="payment" value="([^"]*)"`)
)

func fieldOf(t testing.TB, re *regexp.Regexp, page string) string {
	t.Helper()
	m := re.FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("the page has no %s:\n%s", re, page)
	}
	return strings.ReplaceAll(m[1], "&amp;", "&")
}

func TestFromTheShopToAPaidOrder(t *testing.T) {
	w := newWorld(t, sqlite())
	page := w.get(w.path("/sandbox"))
	at := fieldOf(t, hiddenAt, page)
	form := url.Values{"at": {at}, "key": {fieldOf(t, hiddenKey, page)}, "phone": {"06 999 00 02"}}
	to := w.post(w.path("/sandbox/order"), form)
	if again := w.post(w.path("/sandbox/order"), form); orderOf(t, again) != orderOf(t, to) {
		t.Errorf("one form sent twice is two orders: %s, %s", to, again)
	}
	if strings.Contains(to, "9990002") {
		t.Errorf("the address holds the phone: %s", to)
	}
	w.eventually(to, "asks for")
	page = w.eventually(to, "payment.processing") // the phone may ask before the answer is recorded
	for _, want := range []string{"1,500 FCFA", "Boulangerie Mapassa", "/v1/payments"} {
		if !strings.Contains(strings.ReplaceAll(page, "\u202f", " "), want) && !strings.Contains(strings.ReplaceAll(page, "\u00a0", " "), want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	answer := url.Values{"at": {to}, "payment": {fieldOf(t, payForm, page)}, "pin": {"0000"}, "do": {"ok"}}
	w.eventually(w.post(w.path("/sandbox/answer"), answer), "2 tries are left")
	answer.Set("pin", sandbox.PIN)
	w.post(w.path("/sandbox/answer"), answer)
	id, _ := till.ParseID(orderOf(t, to))
	w.until(id, till.Success)
	page = w.eventually(to, "hands over the bread")
	if !strings.Contains(page, "You paid") || strings.Contains(page, "asks for") {
		t.Errorf("the phone shows no message, or still asks:\n%s", page)
	}
	w.post(w.path("/sandbox/answer"), answer) // a prompt that is answered already is no mistake of the person
	w.console.Now = func() till.Time { return w.store.Now().Add(3 * 24 * time.Hour) }
	if page = w.get(to); strings.Contains(page, "hands over the bread") {
		t.Error("an order from before two days is shown")
	}
}

func orderOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Query().Get("order") == "" {
		t.Fatalf("no order in %s", address)
	}
	return u.Query().Get("order")
}

func TestAStoryPlaysByItself(t *testing.T) {
	w := newWorld(t, sqlite())
	page := w.get(w.path("/sandbox"))
	to := w.post(w.path("/sandbox/choose"), url.Values{"at": {fieldOf(t, hiddenAt, page)}, "story": {"declined"}, "market": {"airtel_money.CG.XAF"}})
	page = w.get(to)
	if !strings.Contains(page, "plays its story") || !strings.Contains(page, "Airtel") || !strings.Contains(page, `<p class="tip" id="tells"><b>…0002 declines</b> Ends as Failed.`) {
		t.Fatalf("the page does not say that it plays a story, or how that ends:\n%s", page)
	}
	// Another wallet plays the same story; an empty one is none.
	if to := w.post(w.path("/sandbox/choose"), url.Values{"at": {to}, "market": {"mtn_momo.CG.XAF"}}); !strings.Contains(to, "story=declined") || !strings.Contains(to, "mtn_momo") {
		t.Errorf("another wallet leads to %s", to)
	}
	if to := w.post(w.path("/sandbox/choose"), url.Values{"at": {to}, "story": {""}}); strings.Contains(to, "story=") || !strings.Contains(to, "airtel_money") {
		t.Errorf("no story leads to %s", to)
	}
	to = w.post(w.path("/sandbox/order"), url.Values{"at": {fieldOf(t, hiddenAt, page)}, "key": {fieldOf(t, hiddenKey, page)}, "phone": {"whatever"}})
	id, _ := till.ParseID(orderOf(t, to))
	w.until(id, till.Failed)
	w.eventually(to, "The customer declined")
}

func TestAPhoneThatIsOffNeverAnswers(t *testing.T) {
	w := newWorld(t, sqlite())
	page := w.get(w.path("/sandbox"))
	at := fieldOf(t, hiddenAt, page)
	to := w.post(w.path("/sandbox/handset"), url.Values{"at": {at}, "state": {"off"}})
	if page = w.get(to); !strings.Contains(page, "The phone is off") {
		t.Errorf("the phone is not off:\n%s", page)
	}
	to = w.post(w.path("/sandbox/order"), url.Values{"at": {at}, "key": {fieldOf(t, hiddenKey, page)}, "phone": {"06 123 45 67"}})
	id, _ := till.ParseID(orderOf(t, to))
	w.until(id, till.Processing)
	if page = w.get(to); strings.Contains(page, "asks for") || !strings.Contains(page, "The phone is off") {
		t.Errorf("a phone that is off shows a prompt:\n%s", page)
	}
	prompts, err := w.operator.Prompts(context.Background(), w.client.ID, 10)
	if err != nil || len(prompts) != 1 {
		t.Errorf("prompts %v, %v", prompts, err)
	}
}

func TestAPhoneWithoutNetworkAsksWhenItIsBack(t *testing.T) {
	w := newWorld(t, sqlite())
	page := w.get(w.path("/sandbox"))
	at := fieldOf(t, hiddenAt, page)
	w.post(w.path("/sandbox/handset"), url.Values{"at": {at}, "state": {"no_network"}})
	to := w.post(w.path("/sandbox/order"), url.Values{"at": {at}, "key": {fieldOf(t, hiddenKey, page)}, "phone": {"06 123 45 67"}})
	id, _ := till.ParseID(orderOf(t, to))
	w.until(id, till.Processing)
	if page = w.get(to); strings.Contains(page, "asks for") || !strings.Contains(page, "No network. Requests wait") {
		t.Errorf("a phone without network shows a prompt, or does not say that it has none:\n%s", page)
	}
	if page = w.get(w.post(w.path("/sandbox/handset"), url.Values{"at": {to}, "state": {"on"}})); !strings.Contains(page, "asks for") {
		t.Errorf("the network is back, and the phone does not ask:\n%s", page)
	}
}

func TestTheShopRefusesWhatIsNoNumber(t *testing.T) {
	w := newWorld(t, sqlite())
	page := w.get(w.path("/sandbox"))
	form := url.Values{"at": {fieldOf(t, hiddenAt, page)}, "key": {fieldOf(t, hiddenKey, page)}}
	for _, typed := range []string{"", "12", "05 123 45 67", hostile, strings.Repeat("9", 24)} {
		form.Set("phone", typed)
		a := w.do(request(http.MethodPost, w.path("/sandbox/order"), form))
		if a.Code != http.StatusOK || !strings.Contains(a.Body.String(), "This is no number of MTN") {
			t.Errorf("%q: %d %s", typed, a.Code, a.Body)
		}
		checkPage(t, typed, a.Body.String())
	}
	for path, form := range map[string]url.Values{
		"/sandbox/answer":  {"payment": {"no id"}},
		"/sandbox/handset": {"state": {"broken"}},
		"/sandbox/order":   {"phone": {strings.Repeat("9", 1000)}},
	} {
		if a := w.do(request(http.MethodPost, w.path(path), form)); a.Code != http.StatusBadRequest {
			t.Errorf("POST %s: %d", path, a.Code)
		}
	}
}

// A live merchant has no handset: nothing there may look like money.
func TestALiveMerchantHasNoHandset(t *testing.T) {
	w := newWorld(t, sqlite())
	live, _, err := w.accounts.CreateClient(context.Background(), "Pharmacie", till.Live, "a test")
	if err != nil {
		t.Fatal(err)
	}
	w.visitor.Memberships[0].Client = live.ID
	for i := range Routes {
		if r := &Routes[i]; strings.Contains(r.Path, "/sandbox") {
			if a := w.do(request(r.Method, w.address(r, live.ID, ""), formOf(r))); a.Code != http.StatusNotFound {
				t.Errorf("%s %s: %d", r.Method, r.Path, a.Code)
			}
		}
	}
}
