package pay

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"till"
	"till/console/look"
	"till/privacy"
	"till/store"
	"till/store/checkouts"
)

const (
	maxFirst       = 6 << 10 // bytes of the first page
	maxFirstZipped = 3 << 10
	maxOther       = 4 << 10
)

// sound checks what holds of every page: its weight, its headers, no script, no cookie, no
// other request, no whole number.
func sound(t *testing.T, name string, a answer, most int, numbers ...string) {
	t.Helper()
	if len(a.body) > most {
		t.Errorf("%s has %d bytes, at most %d are allowed", name, len(a.body), most)
	}
	if most == maxFirst && a.zipped > maxFirstZipped {
		t.Errorf("%s has %d bytes compressed", name, a.zipped)
	}
	for header, want := range map[string]string{"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
		"X-Robots-Tag": "noindex", "Strict-Transport-Security": "max-age=31536000", "Set-Cookie": ""} {
		if got := a.header.Get(header); got != want {
			t.Errorf("%s: %s is %q, want %q", name, header, got, want)
		}
	}
	for _, bad := range []string{"<script", " onload", "src=", "@import", "url(", "<link", "<img", "{{", "ZgotmplZ", "%!"} {
		if strings.Contains(a.body, bad) {
			t.Errorf("%s has %q: %s", name, bad, textOf(a.body))
		}
	}
	if !strings.Contains(a.body, "<style>"+style+"</style>") {
		t.Errorf("%s has another style than its policy allows", name)
	}
	for _, n := range numbers {
		for _, text := range []string{n, n[3:], n[3:5] + " " + n[5:8] + " " + n[8:10]} {
			if strings.Contains(strings.ReplaceAll(a.body, "\u00a0", " "), text) {
				t.Errorf("%s shows the number %s: %s", name, text, textOf(a.body))
			}
		}
	}
}

// textOf is a page without its style.
func textOf(body string) string { return strings.ReplaceAll(body, style, "") }

func has(t *testing.T, name string, a answer, texts ...string) {
	t.Helper()
	body := strings.NewReplacer("\u00a0", " ", "\u202f", " ", "&#39;", "'", "&#43;", "+").Replace(a.body)
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%s does not say %q: %s", name, text, textOf(body))
		}
	}
}

func hasNot(t *testing.T, name string, a answer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("%s says %q", name, text)
		}
	}
}

// number is a payer's; it is no example.
const number = "242065551234"

// asks is a number whose owner decides in approve.
const asks = "242061230000"

// A customer pays: the form, the number in full, the prompt, the receipt. Who only has the
// shared address sees that it is paid, and nothing of who paid.
func TestPaid(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open(`,"description":"Two loaves","return_url":"https://shop.example/done?a=1"`)
		first := w.get(path)
		sound(t, "the form", first, maxFirst)
		has(t, "the form", first, "Pay 5,000 FCFA to Boulangerie Mapassa", "Two loaves", "ORDER-1042", `inputmode="tel"`, `autocomplete="tel-national"`, "MTN MoMo",
			`<meta property="og:title" content="Pay 5,000 FCFA to Boulangerie Mapassa">`, "Run by pay.till.test", "Merchant in Congo", "Test: no real money")
		time.Sleep(4 * time.Second)
		sure := w.do(http.MethodPost, path, url.Values{"form": {w.formOf(first)}, "phone": {"06 123-00 00"}})
		sound(t, "the question", sure, maxOther)
		has(t, "the question", sure, "Is this your number?", "+242 06 123 00 00", "Yes, ask for 5,000 FCFA", "MTN MoMo", "Change")
		if w.way.submits.Load() != 0 {
			t.Fatal("it was asked before the number was looked at")
		}
		own := w.yes(path, sure)
		prompt := w.until(own, "Look at your phone")
		sound(t, "the prompt", prompt, maxOther, asks)
		has(t, "the prompt", prompt, "Type your PIN there to pay 5,000 FCFA. You have until ", "Check now", `http-equiv="refresh" content="3;url=`+own, "242 ••• 000", "<title>◔ Look at your phone")
		busy := w.get(path)
		sound(t, "the shared page", busy, maxOther, asks)
		has(t, "the shared page", busy, "Somebody is paying this now.", "Do not pay again.")
		hasNot(t, "the shared page", busy, "•••", own)
		w.approve()
		paid := w.until(own, "<title>✓ Paid")
		sound(t, "the receipt", paid, maxOther, asks)
		has(t, "the receipt", paid, "✓ Paid 5,000 FCFA", "SBX", "242 ••• 000", "Keep this page", "Back to shop.example", `content="5;url=https://shop.example/done?a=1&amp;till_checkout=`, "till_state=paid")
		hasNot(t, "the receipt", paid, "<form method=\"post\" action=\""+path+"\"")
		done := w.get(path)
		sound(t, "the shared page", done, maxOther, asks)
		has(t, "the shared page", done, "✓ Paid on ", "<title>✓ Paid")
		hasNot(t, "the shared page", done, "•••", "SBX", `name="phone"`)
		if n := w.way.submits.Load(); n != 1 {
			t.Errorf("%d requests reached the operator", n)
		}
	})
}

// Declined: the page says why and that nothing was taken, and takes another number.
func TestAnotherNumber(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open("")
		own := w.fill(path, "242061230002")
		again := w.until(own, "<title>✗ Not paid")
		sound(t, "the page", again, maxFirst, "242061230002")
		has(t, "the page", again, "The request was declined on the phone.", "Nothing was taken. Try again, or use another number.", `name="phone"`, `<form method="post" action="`+path+`"`)
		second := w.fill(path, "06 555 12 34")
		if second == own {
			t.Fatal("the second ask has the address of the first")
		}
		w.until(second, "<title>✓ Paid")
		has(t, "the first ask's page", w.get(own), "✓ Paid on ")
		if n := w.way.submits.Load(); n != 2 {
			t.Errorf("%d requests reached the operator", n)
		}
	})
}

// Posted twice, from two tabs, with another number: one prompt. Who typed the number gets to
// its page, nobody else does.
func TestPostedTwice(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open("")
		form := w.formOf(w.get(path))
		time.Sleep(3 * time.Second)
		sent := url.Values{"form": {form}, "phone": {"065551234"}, "market": {"mtn_momo.CG"}, "sure": {number}}
		own := w.do(http.MethodPost, path, sent).header.Get("Location")
		if !strings.HasPrefix(own, path+"/1-") {
			t.Fatalf("sent to %q", own)
		}
		for range 3 {
			if got := w.do(http.MethodPost, path, sent).header.Get("Location"); got != own {
				t.Errorf("posted again, it leads to %q", got)
			}
		}
		sent.Set("phone", "061230009")
		sent.Set("sure", "242061230009")
		if got := w.do(http.MethodPost, path, sent).header.Get("Location"); got != path {
			t.Errorf("another number leads to %q", got)
		}
		w.until(own, "<title>✓ Paid")
		if got := w.do(http.MethodPost, path, sent).header.Get("Location"); got != path {
			t.Errorf("after it was paid, another number leads to %q", got)
		}
		if n := w.way.submits.Load(); n != 1 {
			t.Errorf("%d requests reached the operator", n)
		}
	})
}

// The operator is silent past the window: nothing is asked again and the page says so; then it
// says that nobody approved.
func TestSilent(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open("")
		own := w.fill(path, "242061230014")
		form := w.formOf(w.get(w.open(""))) // of another page
		wait := w.until(own, "<title>◔ Not certain yet")
		sound(t, "the page", wait, maxOther, "242061230014")
		has(t, "the page", wait, "It is not certain yet whether this is paid.", "Do not pay again: it is being checked with MTN MoMo.", "You may close this page and come back.", "Check now")
		hasNot(t, "the page", wait, "Nothing was taken", `name="phone"`)
		for _, f := range []string{form, "", "x"} {
			if a := w.do(http.MethodPost, path, url.Values{"form": {f}, "phone": {"065551234"}, "market": {"mtn_momo.CG"}, "sure": {number}}); a.status != http.StatusSeeOther || a.header.Get("Location") != path {
				t.Errorf("a form while it is not known: %d to %q", a.status, a.header.Get("Location"))
			}
		}
		if n := w.way.submits.Load(); n != 1 {
			t.Errorf("%d requests reached the operator", n)
		}
	})
}

// What the operator says later is what the page says then: nobody answered, money that came
// late, money that was taken back, another amount than was asked for.
func TestWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			phone string
			says  []string // one after the other
			never string
		}{
			{"242061230003", []string{"<title>✗ Not paid"}, ""},
			{"242061230004", []string{"There is not enough money in this account."}, ""},
			{"242061230005", []string{"There is no account with this number."}, ""},
			{"242061230007", []string{"The PIN was wrong."}, ""},
			{"242061230011", []string{"<title>✓ Paid"}, "Nothing was taken"},
			{"242061230012", []string{"<title>✓ Paid"}, "Nothing was taken"},
			{"242061230013", []string{"<title>✗ Not paid", "<title>✓ Paid"}, ""},
			{"242061230018", []string{"The request was declined on the phone."}, "<title>✓"},
			{"242061230019", []string{"It is not certain yet whether this is paid."}, "Nothing was taken"},
			{"242061230021", []string{"<title>✓ Paid", "MTN MoMo has taken this payment back."}, "Nothing was taken"},
		} {
			path := w.open("")
			own := w.fill(path, c.phone)
			for _, what := range c.says {
				a := w.until(own, what)
				sound(t, c.phone, a, maxFirst, c.phone)
				if c.never != "" {
					hasNot(t, c.phone, a, c.never)
				}
			}
			sound(t, c.phone+" at the shared address", w.get(path), maxFirst, c.phone)
		}
	})
}

// Previews, scanners and programs start nothing.
func TestNothingStartsByItself(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open("")
		for range 50 {
			if a := w.get(path); a.status != http.StatusOK {
				t.Fatalf("%d", a.status)
			}
		}
		if a := w.do(http.MethodHead, path, nil); a.status != http.StatusOK {
			t.Errorf("HEAD: %d", a.status)
		}
		fresh := w.formOf(w.get(path))
		full := func(form string) url.Values {
			return url.Values{"form": {form}, "phone": {number}, "market": {"mtn_momo.CG"}, "sure": {number}}
		}
		a := w.do(http.MethodPost, path, full(fresh))
		has(t, "a form sent at once", a, "was sent too fast", `value="`+number+`"`)
		w.do(http.MethodPost, path, full(""))
		w.do(http.MethodPost, path, full("AAAA"))
		w.do(http.MethodPost, path, nil)
		other := w.formOf(w.get(w.open("")))
		time.Sleep(3 * time.Second)
		w.do(http.MethodPost, path, full(other))
		for header, value := range map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"} {
			a := w.do(http.MethodPost, path, full(fresh), func(r *http.Request) { r.Header.Set(header, value) })
			if a.status != http.StatusForbidden {
				t.Errorf("a form with %s %s: %d", header, value, a.status)
			}
			has(t, "the refusal", a, "Nothing was asked.", "Rien n’a été demandé.")
		}
		if a := w.do(http.MethodPost, path, full(fresh), func(r *http.Request) { r.Header.Set("Origin", "null") }); a.status != http.StatusForbidden {
			t.Errorf("a form of no origin: %d", a.status)
		}
		time.Sleep(2 * time.Hour)
		has(t, "an old form", w.do(http.MethodPost, path, full(fresh)), "open for a long time", `value="`+number+`"`)
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if a := w.do(method, path, nil); a.status != http.StatusMethodNotAllowed {
				t.Errorf("%s: %d", method, a.status)
			}
		}
		if n := w.way.submits.Load(); n != 0 {
			t.Errorf("%d requests reached the operator", n)
		}
	})
}

// What is typed wrongly is said at the field and first on the page, and is kept.
func TestWrong(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open("")
		form := w.formOf(w.get(path))
		time.Sleep(3 * time.Second)
		for _, c := range []struct{ phone, market, want string }{
			{"", "", "This is no mobile number that can pay here."},
			{"12", "mtn_momo.CG", "This is no number of MTN MoMo"},
			{"<b>06</b>", "", "This is no mobile number that can pay here."},
			{"065551234", "airtel_money.CG", "This is a number of MTN MoMo"},
			{"065551234", "wave.SN", "This is no mobile number"},
			{strings.Repeat("9", 10_000), "", "This is no mobile number"},
		} {
			a := w.do(http.MethodPost, path, url.Values{"form": {form}, "phone": {c.phone}, "market": {c.market}})
			if c.market == "wave.SN" {
				c.want = "Choose the method of this number."
			}
			has(t, fmt.Sprintf("%.20q %s", c.phone, c.market), a, c.want, `role="alert"`)
			sound(t, c.phone, a, maxFirst+512)
		}
		if n := w.way.submits.Load(); n != 0 {
			t.Errorf("%d requests reached the operator", n)
		}
	})
}

// Whatever leads nowhere has one answer, and after twenty nothing is looked up for that network.
// A page that is known here goes on.
func TestUnknownAddresses(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open("")
		w.get(path)
		fresh := w.open("")
		var first answer
		for i, p := range []string{Prefix + "00000000000000000000", Prefix + "x", Prefix, Prefix + "u0000000000000000000", path + "/1-000000000000", path + "/x", path + "/1/2", Prefix + "0000000000000000000é"} {
			a := w.get(p)
			if a.status != http.StatusNotFound {
				t.Errorf("%s: %d", p, a.status)
			}
			if i == 0 {
				first = a
				has(t, "no page", a, "There is no page at this address.", "Il n’y a pas de page à cette adresse.")
			} else if a.body != first.body {
				t.Errorf("%s has another answer", p)
			}
		}
		if a := w.get(strings.ToUpper(path)); a.status != http.StatusOK {
			t.Errorf("in capitals: %d", a.status)
		}
		for range 25 {
			w.get(Prefix + "11111111111111111111")
		}
		if a := w.get(path); a.status != http.StatusOK {
			t.Errorf("a page that is known: %d", a.status)
		}
		if a := w.get(fresh); a.status != http.StatusNotFound {
			t.Errorf("it was looked up: %d", a.status)
		}
		w.from = "198.51.100.7:1"
		if a := w.get(fresh); a.status != http.StatusOK {
			t.Errorf("from another network: %d", a.status)
		}
		w.from = "203.0.113.7:1"
		time.Sleep(time.Hour)
		if a := w.get(Prefix + "11111111111111111112"); a.status != http.StatusNotFound {
			t.Errorf("later: %d", a.status)
		}
	})
}

// Texts of the shop are texts.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open(`,"description":"<script>alert(1)</script><b>\u202e\u200b ` + strings.Repeat("lo ", 60) + `"`)
		a := w.get(path)
		sound(t, "the form", answer{a.status, a.header, strings.ReplaceAll(a.body, "&lt;script", ""), a.zipped}, maxFirst)
		has(t, "the form", a, "&lt;script&gt;alert(1)&lt;/script&gt;&lt;b&gt;")
		hasNot(t, "the form", a, "\u202e", "\u200b")
	})
}

// The database is away: a page in both languages says what is certain, and asks nothing.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open("")
		form := w.formOf(w.get(path))
		link, _ := w.link(anyAmount)
		of := w.formOf(w.get(link))
		own := w.fill(w.open(""), number)
		time.Sleep(time.Minute)
		before := w.way.submits.Load()
		w.operator.Close()
		w.store.Close()
		w.away = true
		for name, a := range map[string]answer{
			"the form":   w.get(path),
			"its answer": w.do(http.MethodPost, path, url.Values{"form": {form}, "phone": {number}, "sure": {number}}),
			"the ask":    w.get(own),
			"the link":   w.get(link),
			"its form":   w.do(http.MethodPost, link, url.Values{"form": {of}, "amount": {"700"}, "phone": {number}, "market": {"mtn_momo.CG"}, "sure": {number}}),
			"to go on":   w.do(http.MethodPost, path, url.Values{"form": {form}, "go_on": {"1"}}),
			"the code":   w.get(path + "/qr.svg"),
			"a report":   w.do(http.MethodPost, path+"/report", url.Values{}),
		} {
			if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
				t.Errorf("%s: %d %v", name, a.status, a.header)
			}
			sound(t, name, a, maxOther)
			has(t, name, a, "What was asked before stays asked", "do not pay again, here or elsewhere", "Ce qui a déjà été demandé reste demandé")
			hasNot(t, name, a, "Nothing was taken")
		}
		if w.way.submits.Load() != before {
			t.Error("it was asked though nothing could be written down")
		}
	})
}

// A merchant that is suspended, or whose name pages may not show, cannot be paid; who was asked
// already still reads what became of it.
func TestOff(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, other := w.open(""), w.open("")
		own := w.fill(path, "065551234")
		if err := w.accounts.Suspend(context.Background(), w.client.ID, "command:test"); err != nil {
			t.Fatal(err)
		}
		off := w.get(other)
		has(t, "a suspended merchant", off, "Boulangerie Mapassa cannot be paid here just now.", "Nothing was taken.")
		hasNot(t, "a suspended merchant", off, `name="phone"`)
		w.until(own, "<title>✓ Paid")
	})
}

// The fourth prompt to a number has to wait, whatever the order; another number does not, and
// nor does a number that the shop named.
func TestPromptsToANumber(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 3 {
			own := w.fill(w.open(""), "242061230006")
			w.until(own, "<title>✗ Not paid")
			if i < 2 {
				time.Sleep(6 * time.Minute)
			}
		}
		time.Sleep(6 * time.Minute)
		path := w.open("")
		form := w.formOf(w.get(path))
		time.Sleep(2 * time.Second)
		before := w.way.submits.Load()
		a := w.do(http.MethodPost, path, url.Values{"form": {form}, "phone": {"242061230006"}, "market": {"mtn_momo.CG"}, "sure": {"242061230006"}})
		if a.status != http.StatusTooManyRequests || w.way.submits.Load() != before {
			t.Fatalf("%d: %s", a.status, textOf(a.body))
		}
		has(t, "the fourth", a, "Too many requests to this number.", "Nothing was taken. Again at ", "or use another number.", `name="phone"`, "<title>✗ Too many requests")
		sound(t, "the fourth", a, maxFirst)
		w.until(w.fill(path, "065551234"), "<title>✓ Paid")
		named := w.open(`,"phone":"242061230006","phone_fixed":true`)
		page := w.get(named)
		sound(t, "a fixed number", page, maxFirst, "242061230006")
		has(t, "a fixed number", page, "The request goes to 242 ••• 006.")
		time.Sleep(2 * time.Second)
		if b := w.do(http.MethodPost, named, url.Values{"form": {w.formOf(page)}, "market": {"mtn_momo.CG"}}); b.status != http.StatusSeeOther {
			t.Errorf("a number that the shop named: %d %s", b.status, b.body)
		}
	})
}

// A number that the shop named, and may be changed, stays masked: who has the address
// would read it.
func TestNamedNumber(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open(`,"phone":"` + number + `"`)
		first := w.get(path)
		sound(t, "the form", first, maxFirst, number)
		has(t, "the form", first, "Leave it empty to pay with 242 ••• 234.")
		time.Sleep(2 * time.Second)
		sure := w.do(http.MethodPost, path, url.Values{"form": {w.formOf(first)}, "phone": {""}})
		sound(t, "the question", sure, maxOther, number)
		has(t, "the question", sure, "242 ••• 234", "Yes, ask for")
		w.until(w.yes(path, sure), "<title>✓ Paid")
	})
}

// The code, with its tag; the report, three times.
func TestCodeAndReport(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open("")
		code := w.get(path + "/qr.svg")
		if code.status != http.StatusOK || !strings.HasPrefix(code.body, "<svg xmlns=") || code.header.Get("Content-Type") != "image/svg+xml" {
			t.Errorf("%d %v: %.80s", code.status, code.header, code.body)
		}
		tag := code.header.Get("ETag")
		if a := w.do(http.MethodGet, path+"/qr.svg", nil, func(r *http.Request) { r.Header.Set("If-None-Match", tag) }); a.status != http.StatusNotModified || tag == "" {
			t.Errorf("with its tag %q: %d", tag, a.status)
		}
		for i := range 4 {
			a := w.do(http.MethodPost, path+"/report", url.Values{})
			want := "A person will look at this page."
			if i == 3 {
				want = "This page was reported already."
			}
			has(t, "a report", a, want, "changes nothing about a payment", "Back to the page")
			sound(t, "a report", a, maxOther)
		}
	})
}

// The way back is signed with the secret that only the shop has.
func TestLanguages(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, fixed := w.open(""), w.open(`,"language":"fr"`)
		has(t, "by the browser", w.get(path), `<html lang="en">`, "Pay 5,000 FCFA")
		has(t, "chosen", w.get(path+"?l=fr"), `<html lang="fr">`, "Payer 5 000 FCFA à Boulangerie Mapassa", `action="`+path+`?l=fr"`)
		has(t, "the checkout's", w.get(fixed), `<html lang="fr">`)
		has(t, "chosen against it", w.get(fixed+"?l=en"), `<html lang="en">`)
		w.language = "fr-CG,fr;q=0.9,en;q=0.1"
		first := w.get(path)
		has(t, "by the browser", first, `<html lang="fr">`)
		sound(t, "the form", first, maxFirst)
		w.language = "ln, sw;q=0.5"
		has(t, "of neither", w.get(path), `<html lang="en">`)
	})
}

// Who pays is forgiven: a customer of many orders is never slowed. Who declined rests at that
// merchant for ten minutes.
func TestPaidForgivesAndDeclinedRests(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		for range 10 {
			w.until(w.fill(w.open(""), number), "<title>✓ Paid")
		}
		declines := "242061230002"
		w.until(w.fill(w.open(""), declines), "<title>✗ Not paid")
		path := w.open("")
		form := w.formOf(w.get(path))
		time.Sleep(2 * time.Second)
		sent := url.Values{"form": {form}, "phone": {declines}, "market": {"mtn_momo.CG"}, "sure": {declines}}
		if a := w.do(http.MethodPost, path, sent); a.status != http.StatusTooManyRequests {
			t.Errorf("right after it declined: %d", a.status)
		}
		time.Sleep(11 * time.Minute)
		if a := w.do(http.MethodPost, path, sent); a.status != http.StatusSeeOther {
			t.Errorf("after ten minutes: %d %s", a.status, textOf(a.body))
		}
	})
}

// Who asks and never looks at the answer rings a telephone that declines no sooner again.
func TestADeclineCountsAlsoIfNobodyReadsIt(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		sent := func() answer {
			path := w.open("")
			form := w.formOf(w.get(path))
			time.Sleep(2 * time.Second)
			return w.do(http.MethodPost, path, url.Values{"form": {form}, "phone": {"242061230002"}, "market": {"mtn_momo.CG"}, "sure": {"242061230002"}})
		}
		if a := sent(); a.status != http.StatusSeeOther {
			t.Fatalf("the first: %d %s", a.status, textOf(a.body))
		}
		time.Sleep(7 * time.Minute) // declined, no page was read, and no prompt is on its screen any more
		if a := sent(); a.status != http.StatusTooManyRequests {
			t.Errorf("minutes after it declined: %d", a.status)
		}
		time.Sleep(5 * time.Minute)
		if a := sent(); a.status != http.StatusSeeOther {
			t.Errorf("after ten minutes: %d %s", a.status, textOf(a.body))
		}
	})
}

// A crash between the two commits leaves an ask without a payment: the page offers to go on,
// and makes that ask as it was written down, once.
func TestAnAskThatWasOnlyWrittenDown(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open("")
		early := w.formOf(w.get(path))
		ctx := context.Background()
		v, err := w.checkouts.Find(ctx, strings.TrimPrefix(path, Prefix))
		if err != nil {
			t.Fatal(err)
		}
		c := v.Checkout
		err = w.store.Update(ctx, func(tx *store.Tx) error {
			if _, err := tx.LockHeads(ctx, []till.ID{c.ClientID}); err != nil {
				return err
			}
			return checkouts.InsertAsk(ctx, tx, &till.Ask{ClientID: c.ClientID, CheckoutID: c.ID, N: 1, Key: w.checkouts.Keys().Ask(c.ClientID, c.IdempotencyKey, 1), Method: "mtn_momo", Country: "CG", Amount: c.Amount, Phone: number, AskedAt: tx.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}
		own := path + "/1-" + w.checkouts.Keys().AskMAC(c.ClientID, c.ID, 1)
		has(t, "right after it", w.get(own), "We are calling MTN MoMo")
		hasNot(t, "right after it", w.get(own), "go_on")
		time.Sleep(8 * time.Second)
		shared := w.get(path)
		sound(t, "the shared page", shared, maxOther, number)
		has(t, "the shared page", shared, "Somebody is paying this now.", "The request was begun and may not be finished.", "Send it now")
		hasNot(t, "the shared page", shared, "Nothing was taken", `name="phone"`)
		// Another number does not take its place.
		if a := w.do(http.MethodPost, path, url.Values{"form": {early}, "phone": {"242065550009"}, "market": {"mtn_momo.CG"}, "sure": {"242065550009"}}); a.status != http.StatusSeeOther || w.way.submits.Load() != 0 {
			t.Errorf("another number: %d", a.status)
		}
		page := w.get(own)
		has(t, "its own page", page, "Send it now", "242 ••• 234")
		time.Sleep(2 * time.Second)
		for range 2 {
			if a := w.do(http.MethodPost, path, hiddenOf(page)); a.status != http.StatusSeeOther {
				t.Fatalf("%d: %s", a.status, textOf(a.body))
			}
		}
		w.until(own, "<title>✓ Paid")
		if n := w.way.submits.Load(); n != 1 {
			t.Errorf("%d requests reached the operator", n)
		}
	})
}

// The page of a checkout whose person was erased shows nothing of the number, nor what stands
// for it.
func TestAnErasedCheckout(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path := w.open(`,"description":"for Mado","phone":"` + asks + `"`)
		own := w.fill(path, asks)
		w.until(own, "Look at your phone")
		w.approve()
		has(t, "the receipt", w.until(own, "<title>✓ Paid"), "242 ••• 000", "for Mado")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.checkouts.Follow(ctx); close(done) }()
		time.Sleep(time.Minute)
		cancel()
		<-done
		got, err := privacy.Erase(t.Context(), w.store, privacy.EraseRequest{Secret: []byte(secret), Erasures: []privacy.Erasure{{Phone: asks, Texts: true}}, By: "Awa", Reason: "a letter"})
		if err != nil || *got != (privacy.EraseResult{Payments: 1, Checkouts: 1}) {
			t.Fatalf("erased %+v, %v", got, err)
		}
		token := privacy.ErasedToken([]byte(secret), asks)
		for _, p := range []string{path, own} {
			a := w.get(p)
			has(t, p, a, "✓ Paid")
			hasNot(t, p, a, look.Mask(asks), asks, token, token[1:], "Mado")
		}
	})
}

// The end of an ask's address is known to who asked, and to nobody else: any other leads nowhere.
func TestAnAsksAddressIsNotGuessed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, other := w.open(""), w.open("")
		own := w.fill(path, number)
		w.until(own, "<title>✓ Paid")
		otherOwn := w.fill(other, "242069876543")
		at, rest := path+"/", strings.TrimPrefix(own, path+"/")
		mac := strings.TrimPrefix(rest, "1-")
		if len(mac) != 12 {
			t.Fatalf("the address of an ask is %s", own)
		}
		flipped := "0"
		if mac[11] == '0' {
			flipped = "1"
		}
		for what, wrong := range map[string]string{
			"another last character": at + "1-" + mac[:11] + flipped, "cut": at + "1-" + mac[:11], "longer": own + "0", "none": at + "1-", "no ask": at + "1",
			"of the second ask": at + "2-" + mac, "written otherwise": at + "01-" + mac, "of another checkout": at + strings.TrimPrefix(otherOwn, other+"/"),
		} {
			w.from = "203.0.113." + strconv.Itoa(len(what)) + ":1000" // each is looked up
			if a := w.get(wrong); a.status != http.StatusNotFound || strings.Contains(a.body, "Paid") {
				t.Errorf("%s: %d", what, a.status)
			}
		}
		w.from = "203.0.113.99:1000"
		if a := w.get(own); a.status != http.StatusOK {
			t.Errorf("its own address: %d", a.status)
		}
	})
}
