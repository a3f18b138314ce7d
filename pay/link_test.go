package pay

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"till"
	"till/checkout"
	"till/engine"
	"till/internal/jsonx"
	"till/store"
	"till/store/checkouts"
)

// link makes a link and returns the path of its page.
func (w *world) link(more string) (string, *till.Link) {
	w.t.Helper()
	r := &checkout.LinkRequest{}
	body := `{"title":"Alms","idempotency_key":"` + till.NewID(till.TimeOf(time.Now())).String() + `"` + more + `}`
	if err := jsonx.Decode([]byte(body), r); err != nil {
		w.t.Fatal(err)
	}
	who := engine.Client{Client: w.client, Actor: "api:test", Enabled: func(string) bool { return true }}
	c, err := w.checkouts.CreateLink(context.Background(), who, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return Prefix + c.Link.Token, c.Link
}

const anyAmount = `,"open_amount":{"currency":"XAF","min":"500","max":"50000","suggested":["1000","2000"]}`

// opened counts the checkouts that a link has opened.
func (w *world) opened(l *till.Link) (n int64) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		_, n, err = checkouts.List(context.Background(), tx, l.ClientID, checkouts.Filter{Link: l.ID}, store.Page{Limit: 1})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// payOn fills in a link's form and says that the number is right. It returns the address of the
// ask.
func (w *world) payOn(path string, form url.Values) string {
	w.t.Helper()
	form.Set("form", w.formOf(w.get(path)))
	time.Sleep(5 * time.Second)
	a := w.do(http.MethodPost, path, form)
	if a.status != http.StatusOK || !strings.Contains(a.body, `name="sure"`) {
		w.t.Fatalf("%d, not asked whether it is right: %s", a.status, textOf(a.body))
	}
	return w.yes(path, a)
}

var ownPage = regexp.MustCompile(`^/p/[0-9a-z]{20}/1-[0-9a-z]{12}$`)

// P7: an amount that the payer types, below, above and as nobody can read it; a suggested one.
// Two payers do not see each other.
func TestALinkWithAnOpenAmount(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, l := w.link(anyAmount + `,"description":"For the roof","ask_reference":{"label":"Your name","required":true}`)
		first := w.get(path)
		sound(t, "the form", first, maxFirst)
		has(t, "the form", first, "Pay Boulangerie Mapassa", "Alms", "For the roof", "Amount in FCFA", "From 500 FCFA to 50,000 FCFA", "Your name", `inputmode="numeric"`, `href="`+path+`?amount=1000"`,
			">1,000 FCFA<", `<meta property="og:title" content="Pay Boulangerie Mapassa: Alms">`, "Continue", "MTN MoMo")
		hasNot(t, "the form", first, "you like")
		for _, c := range []struct{ amount, name, want string }{
			{"499", "Ada", "Choose an amount from 500 FCFA to 50,000 FCFA."},
			{"50001", "Ada", "Choose an amount from 500 FCFA to 50,000 FCFA."},
			{"99999999999999999999999", "Ada", "This amount cannot be read. Write it in digits, as in 500."},
			{"1,50", "Ada", "This amount cannot be read."},
			{"1.50", "Ada", "This amount cannot be read."},
			{"", "Ada", "This amount cannot be read."},
			{"-700", "Ada", "This amount cannot be read."},
			{"700 francs", "Ada", "This amount cannot be read."},
			{"700", "", "Please fill in: Your name."},
			{"700", strings.Repeat("é", 65), "Your name: at most 64 characters."},
		} {
			form := url.Values{"form": {w.formOf(w.get(path))}, "amount": {c.amount}, "reference": {c.name}, "phone": {number}, "sure": {number}}
			time.Sleep(2 * time.Second)
			a := w.do(http.MethodPost, path, form)
			if a.status != http.StatusOK {
				t.Errorf("%q: %d to %s", c.amount, a.status, a.header.Get("Location"))
			}
			has(t, c.amount, a, c.want, `role="alert"`, `value="`+c.amount+`"`, `value="`+number+`"`)
		}
		if n, asked := w.opened(l), w.way.submits.Load(); n != 0 || asked != 0 {
			t.Fatalf("%d checkouts were opened, %d requests sent", n, asked)
		}
		has(t, "the suggestion", w.get(path+"?amount=1000"), `name="amount" inputmode="numeric" autocomplete="off" maxlength="24" value="1000"`)

		ada := w.payOn(path, url.Values{"amount": {"5 000"}, "reference": {"  Ada <b>L</b> "}, "phone": {asks}})
		prompt := w.until(ada, "Look at your phone")
		sound(t, "the prompt", prompt, maxOther, asks, number)
		has(t, "the prompt", prompt, "Type your PIN there to pay 5,000 FCFA")
		has(t, "her shared page", w.get(ada[:23]), "Somebody is paying this now.")
		w.approve()
		w.until(ada, "<title>✓ Paid")
		ben := w.payOn(path, url.Values{"amount": {"1000"}, "reference": {"Ben"}, "phone": {number}})
		if !ownPage.MatchString(ada) || !ownPage.MatchString(ben) || ada[:23] == ben[:23] || strings.HasPrefix(ada, path) {
			t.Fatalf("they were sent to %s and %s", ada, ben)
		}
		paid := w.until(ben, "<title>✓ Paid")
		sound(t, "the receipt", paid, maxOther, asks, number)
		has(t, "the receipt", paid, "✓ Paid 1,000 FCFA", "Alms – For the roof", "Ben")
		again := w.get(path)
		sound(t, "the link", again, maxFirst, asks, number)
		for name, a := range map[string]answer{"the link": again, "Ada's page": w.get(ada), "her shared page": w.get(ada[:23]), "Ben's shared page": w.get(ben[:23])} {
			hasNot(t, name, a, "<b>L</b>", "•••"+"234", `name="go_on"`)
			if name != "Ben's shared page" {
				hasNot(t, name, a, "Ben", ben[:23])
			}
			if !strings.Contains(name, "shared") && name != "Ada's page" || name == "Ben's shared page" {
				hasNot(t, name, a, "Ada", ada[:23])
			}
		}
		has(t, "the link", again, "Pay Boulangerie Mapassa", `name="phone"`)
		if n, asked := w.opened(l), w.way.submits.Load(); n != 2 || asked != 2 {
			t.Errorf("%d checkouts, %d requests", n, asked)
		}
	})
}

// A double click opens one checkout and asks once. Who goes back and changes the amount sees what
// is under way; once that has ended, a new form.
func TestALinkPostedTwice(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, l := w.link(anyAmount)
		form := w.formOf(w.get(path))
		time.Sleep(3 * time.Second)
		sent := url.Values{"form": {form}, "amount": {"700"}, "phone": {"061230002"}, "market": {"mtn_momo.CG"}, "sure": {"242061230002"}}
		own := w.do(http.MethodPost, path, sent).header.Get("Location")
		if !ownPage.MatchString(own) {
			t.Fatalf("sent to %q", own)
		}
		for range 3 {
			if got := w.do(http.MethodPost, path, sent).header.Get("Location"); got != own {
				t.Errorf("posted again, it leads to %q", got)
			}
		}
		sent.Set("amount", "800")
		if got := w.do(http.MethodPost, path, sent).header.Get("Location"); got != own[:23] {
			t.Errorf("another amount while the first is asked leads to %q", got)
		}
		w.until(own, "<title>✗ Not paid")
		changed := w.do(http.MethodPost, path, sent)
		has(t, "another amount once the first has ended", changed, "You changed what you pay.", `value="800"`)
		if w.formOf(changed) == form {
			t.Error("the new form opens the old checkout")
		}
		if n, asked := w.opened(l), w.way.submits.Load(); n != 1 || asked != 1 {
			t.Errorf("%d checkouts, %d requests", n, asked)
		}
	})
}

// Opening a link, fifty times and more, stores nothing; so do programs that post.
func TestALinkStoresNothingByItself(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, l := w.link(`,"amount":{"value":"5000","currency":"XAF"}`)
		fixed := w.get(path)
		has(t, "the form", fixed, "Pay 5,000 FCFA to Boulangerie Mapassa")
		hasNot(t, "the form", fixed, `name="amount"`, `name="reference"`)
		for range 50 {
			w.get(path)
		}
		for _, target := range []string{path, path + "?amount=1", strings.ToUpper(path), path + "/qr.svg"} {
			if a := w.do(http.MethodHead, target, nil); a.status != http.StatusOK {
				t.Errorf("HEAD %s: %d", target, a.status)
			}
		}
		for _, wrong := range []string{path + "/1-000000000000", path + "/x", Prefix + checkout.NewToken()} {
			if a := w.get(wrong); a.status != http.StatusNotFound {
				t.Errorf("%s: %d", wrong, a.status)
			}
		}
		full := func(form string) url.Values {
			return url.Values{"form": {form}, "phone": {number}, "market": {"mtn_momo.CG"}, "sure": {number}}
		}
		fresh := w.formOf(w.get(path))
		has(t, "a form sent at once", w.do(http.MethodPost, path, full(fresh)), "was sent too fast")
		time.Sleep(3 * time.Second)
		checkoutPath := w.open("")
		ofCheckout := w.formOf(w.get(checkoutPath))
		time.Sleep(3 * time.Second)
		for _, form := range []string{"", "AAAA", ofCheckout} {
			if a := w.do(http.MethodPost, path, full(form)); a.status != http.StatusOK {
				t.Errorf("form %q: %d", form, a.status)
			}
		}
		if a := w.do(http.MethodPost, checkoutPath, full(fresh)); a.status != http.StatusOK {
			t.Errorf("a link's form on a checkout: %d", a.status)
		}
		if a := w.do(http.MethodPost, path, full(fresh), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }); a.status != http.StatusForbidden {
			t.Errorf("from another site: %d", a.status)
		}
		sure := w.do(http.MethodPost, path, url.Values{"form": {fresh}, "phone": {number}})
		has(t, "the question", sure, "Yes, ask for 5,000 FCFA", "+242 06 555 12 34", "Alms")
		if n, asked := w.opened(l), w.way.submits.Load(); n != 0 || asked != 0 {
			t.Errorf("%d checkouts, %d requests", n, asked)
		}
		own := w.yes(path, sure)
		w.until(own, "<title>✓ Paid")
	})
}

// A link that is switched off, or over, takes nothing and says so; what it has opened goes on.
func TestALinkThatTakesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, l := w.link(anyAmount)
		own := w.payOn(path, url.Values{"amount": {"700"}, "phone": {asks}})
		form := w.formOf(w.get(path))
		time.Sleep(2 * time.Second)
		sent := url.Values{"form": {form}, "amount": {"700"}, "phone": {number}, "sure": {number}}
		second := w.do(http.MethodPost, path, sent).header.Get("Location")
		late := w.formOf(w.get(path))
		time.Sleep(2 * time.Second)
		ref := store.Ref{Client: l.ClientID, ID: l.ID}
		off, on, end := false, true, w.store.Now().Add(time.Hour)
		if _, err := w.checkouts.ChangeLink(context.Background(), ref, checkout.LinkChange{Active: &off}, "api:test"); err != nil {
			t.Fatal(err)
		}
		a := w.get(path)
		sound(t, "switched off", a, maxOther)
		has(t, "switched off", a, "This address takes no payments just now.", "what was asked or paid before stays as it is. Ask Boulangerie Mapassa how to pay.")
		hasNot(t, "switched off", a, `name="phone"`, "Nothing was taken")
		if got := w.do(http.MethodPost, path, sent).header.Get("Location"); got != second[:23] {
			t.Errorf("a double click leads to %q", got)
		}
		sent.Set("form", late)
		if a := w.do(http.MethodPost, path, sent); a.status != http.StatusOK || strings.Contains(a.body, `name="phone"`) {
			t.Errorf("a form from before: %d %s", a.status, textOf(a.body))
		}
		w.approve()
		w.until(own, "<title>✓ Paid")
		if _, err := w.checkouts.ChangeLink(context.Background(), ref, checkout.LinkChange{Active: &on, ExpiresAt: &end}, "api:test"); err != nil {
			t.Fatal(err)
		}
		has(t, "on again", w.get(path), `name="phone"`)
		time.Sleep(time.Hour)
		a = w.do(http.MethodGet, path, nil, func(r *http.Request) { r.Header.Set("Accept-Language", "fr") })
		has(t, "over", a, "Le délai pour payer ici est dépassé.", "Demandez à Boulangerie Mapassa comment payer.")
		if n := w.opened(l); n != 2 {
			t.Errorf("%d checkouts", n)
		}
	})
}

// Thirty unpaid openings in ten minutes, and three more for each that was paid. It is said of the
// page, not of the number, and nothing is opened.
func TestALinkHasALimit(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, l := w.link(anyAmount)
		good, paid := w.link(anyAmount)
		n := 100
		try := func(path string) answer {
			n++
			form := w.formOf(w.get(path))
			time.Sleep(time.Second + time.Millisecond)
			phone := fmt.Sprintf("24206%03d0003", n) // nobody answers
			return w.do(http.MethodPost, path, url.Values{"form": {form}, "amount": {"700"}, "phone": {phone}, "market": {"mtn_momo.CG"}, "sure": {phone}})
		}
		other, _ := w.link(anyAmount)
		upTo := func(path string, l *till.Link, most int64) {
			t.Helper()
			for i := range 5 { // so the merchant's links are not slowed
				w.until(w.payOn(other, url.Values{"amount": {"700"}, "phone": {fmt.Sprintf("24206555%04d", 6000+100*most+int64(i))}}), "<title>✓ Paid")
			}
			for w.opened(l) < most {
				if a := try(path); a.status != http.StatusSeeOther {
					t.Fatalf("after %d: %d %s", w.opened(l), a.status, textOf(a.body))
				}
			}
			a := try(path)
			if a.status != http.StatusTooManyRequests || w.opened(l) != most {
				t.Fatalf("%d, %d checkouts: %s", a.status, w.opened(l), textOf(a.body))
			}
			has(t, "the limit", a, "Too many requests on this page. Nothing was asked.", "Again at ", `value="700"`)
		}
		upTo(path, l, 30)
		w.until(w.payOn(good, url.Values{"amount": {"700"}, "phone": {number}}), "<title>✓ Paid")
		upTo(good, paid, 1+30+3)
		time.Sleep(10 * time.Minute)
		if a := try(path); a.status != http.StatusSeeOther {
			t.Errorf("it is limited for ever: %d", a.status)
		}
	})
}
