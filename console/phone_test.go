package console

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"till"
	"till/console/shell"
)

var phoneLink = regexp.MustCompile(`value="http://localhost:8080(/phone/[^"]*)"`)

// ownPhone returns the address of the handset for a second device.
func (w *world) ownPhone(query string) string {
	w.t.Helper()
	page := w.get(w.path("/sandbox/phone" + query))
	checkPage(w.t, "own phone", page)
	if !strings.Contains(page, `<svg class="qr"`) {
		w.t.Error("the page has no QR code")
	}
	return fieldOf(w.t, phoneLink, page)
}

// stranger is a request of a device without a session, from another machine.
func stranger(method, path string, form url.Values) *http.Request {
	r := request(method, path, form)
	r.Header.Del("Cookie")
	r.RemoteAddr = "192.0.2.7:40000"
	return r
}

// E18: the handset on a second device.
func TestAHandsetOnASecondDevice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	link := w.ownPhone("")
	if strings.Contains(link, "06123") || strings.Contains(w.get(w.path("/sandbox")), "/phone/") {
		t.Errorf("the link has the number, or stands where nobody asked for it: %s", link)
	}
	get := func() string {
		a := w.do(stranger(http.MethodGet, link, nil))
		if a.Code != http.StatusOK {
			t.Fatalf("the handset: %d %s", a.Code, a.Body)
		}
		checkPage(t, "phone", a.Body.String())
		return a.Body.String()
	}
	page := get()
	if !strings.Contains(page, "Nothing to approve") || !strings.Contains(page, "TEST") || strings.Contains(page, "/console/c/") || strings.Contains(page, "data-stream") {
		t.Errorf("the handset shows:\n%s", page)
	}
	id := w.pay("242061234567", 1500, "ORDER-1", "bread")
	shown := func(text string) string {
		if !comes(func() bool { page = get(); return strings.Contains(page, text) }) {
			t.Fatalf("the handset never shows %q", text)
		}
		return page
	}
	page = shown("asks for")
	form := url.Values{"payment": {fieldOf(t, payForm, page)}, "pin": {"1234"}, "do": {"ok"}}
	if a := w.do(stranger(http.MethodPost, link+"/answer", form)); a.Code != http.StatusSeeOther || a.Header().Get("Location") != link {
		t.Fatalf("the PIN: %d %s", a.Code, a.Header().Get("Location"))
	}
	w.until(id, till.Success)
	shown("You paid")
	for do, reason := range map[string]till.FailureReason{"wrong_pin": till.WrongPIN, "no_funds": till.InsufficientFunds} {
		id := w.pay("242061234567", 700, "ORDER-2", "coffee")
		form.Set("payment", fieldOf(t, payForm, shown("asks for")))
		form.Set("do", do)
		if a := w.do(stranger(http.MethodPost, link+"/answer", form)); a.Code != http.StatusSeeOther {
			t.Fatalf("%s: %d", do, a.Code)
		}
		w.until(id, till.Failed)
		w.eventually(w.path("/payments/"+id.String()), map[till.FailureReason]string{till.WrongPIN: "Wrong PIN", till.InsufficientFunds: "Not enough money"}[reason])
	}
	if a := w.do(stranger(http.MethodPost, link+"/handset?lang=fr", url.Values{"state": {"off"}})); a.Code != http.StatusSeeOther || a.Header().Get("Location") != link+"?lang=fr" {
		t.Errorf("off: %d %s", a.Code, a.Header().Get("Location"))
	}
	shown("The phone is off")
	q := stranger(http.MethodGet, link, nil)
	q.Header.Set("Till-Region", "handset")
	if a := w.do(q); a.Code != http.StatusOK || strings.Contains(a.Body.String(), "<html") {
		t.Errorf("the region: %d", a.Code)
	}
}

// A token opens one number of one test merchant, for a day.
func TestATokenOpensNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	link := w.ownPhone("")
	// Another merchant's prompt is not answered with it.
	w.be(till.RoleOwner, "en")
	mine := w.client
	w.client = w.other
	w.visitor.Memberships[0].Client = w.other.ID
	foreign := w.ownPhone("")
	if a := w.do(stranger(http.MethodGet, foreign, nil)); a.Code != http.StatusOK {
		t.Fatalf("the other's handset: %d", a.Code)
	}
	id := w.pay("242061234567", 500, "ORDER-9", "bread")
	w.until(id, till.Processing)
	form := url.Values{"payment": {id.String()}, "pin": {"1234"}, "do": {"ok"}}
	if a := w.do(stranger(http.MethodPost, link+"/answer", form)); a.Code != http.StatusSeeOther {
		t.Errorf("an answer to another merchant's prompt: %d", a.Code)
	}
	prompts, err := w.operator.Prompts(context.Background(), w.other.ID, 10)
	if err != nil || len(prompts) != 1 {
		t.Errorf("the prompt of the other merchant was answered: %v, %v", prompts, err)
	}
	if page := w.do(stranger(http.MethodGet, link, nil)).Body.String(); strings.Contains(page, "asks for") {
		t.Error("a handset shows another merchant's prompt")
	}
	// Nor is the prompt of another number of the same merchant.
	otherNumber := strings.TrimPrefix(foreign, shell.PhonePrefix+"/")
	text, err := w.console.Phones.Open(mustDecode(t, otherNumber), []byte("handset"))
	if err != nil {
		t.Fatal(err)
	}
	otherNumber = base64.RawURLEncoding.EncodeToString(w.console.Phones.Seal([]byte(strings.Replace(string(text), "242061234567", "242061234568", 1)), []byte("handset")))
	if a := w.do(stranger(http.MethodPost, shell.PhonePrefix+"/"+otherNumber+"/answer", form)); a.Code != http.StatusSeeOther {
		t.Errorf("an answer to another number's prompt: %d", a.Code)
	}
	if prompts, err := w.operator.Prompts(context.Background(), w.other.ID, 10); err != nil || len(prompts) != 1 {
		t.Errorf("the prompt of another number was answered: %v, %v", prompts, err)
	}
	w.client = mine
	// Tokens that were changed, cut, or sealed for something else.
	token := strings.TrimPrefix(link, shell.PhonePrefix+"/")
	broken := []byte(token)
	broken[len(broken)/2] ^= 1
	live, _, err := w.accounts.CreateClient(context.Background(), "Pharmacie", till.Live, "a test")
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(text string) string {
		return base64.RawURLEncoding.EncodeToString(w.console.Phones.Seal([]byte(text), []byte("handset")))
	}
	market, phone := "mtn_momo.CG.XAF", "242061234567"
	v := &shell.Visit{Console: w.console, Client: w.client}
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"whole":            {token, 200},
		"changed":          {string(broken), 404},
		"cut":              {token[:len(token)-4], 404},
		"none":             {"x", 404},
		"a search":         {v.SealText(phone), 404},
		"live":             {sealed(live.ID.String() + " 9000000000000000 " + market + " " + phone), 404},
		"nobody's":         {sealed(till.ID{1}.String() + " 9000000000000000 " + market + " " + phone), 404},
		"another market":   {sealed(w.client.ID.String() + " 9000000000000000 mtn_momo.FR.EUR " + phone), 404},
		"no number of it":  {sealed(w.client.ID.String() + " 9000000000000000 " + market + " 33612345678"), 404},
		"over":             {sealed(w.client.ID.String() + " 1 " + market + " " + phone), 410},
		"without its rest": {sealed(w.client.ID.String()), 404},
	} {
		for _, r := range []*http.Request{stranger(http.MethodGet, shell.PhonePrefix+"/"+c.token, nil), stranger(http.MethodPost, shell.PhonePrefix+"/"+c.token+"/handset", url.Values{"state": {"on"}})} {
			a := w.do(r)
			if ok := a.Code == c.want || c.want == 200 && a.Code == http.StatusSeeOther; !ok {
				t.Errorf("%s, %s: %d, want %d", name, r.Method, a.Code, c.want)
			}
		}
	}
	w.console.Now = func() till.Time { return w.store.Now().Add(24*time.Hour + time.Minute) }
	if a := w.do(stranger(http.MethodGet, link, nil)); a.Code != http.StatusGone || !strings.Contains(a.Body.String(), "This link has ended") {
		t.Errorf("after a day: %d", a.Code)
	}
	// Other pages stay where they are.
	if a := w.do(stranger(http.MethodGet, w.path("/payments"), nil)); a.Code != http.StatusForbidden {
		t.Errorf("a page of the console for another machine in plain HTTP: %d", a.Code)
	}
	cross := stranger(http.MethodPost, link+"/handset", url.Values{"state": {"on"}})
	cross.Header.Set("Sec-Fetch-Site", "cross-site")
	if a := w.do(cross); a.Code != http.StatusForbidden {
		t.Errorf("another site's form: %d", a.Code)
	}
}

func mustDecode(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
