package pay

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"till"
	"till/checkout"
	"till/store"
	"till/store/checkouts"
	"till/store/storetest"
)

// openCases lists the open cases of the client: kind and subject, the oldest first.
func (w *world) openCases() (out []string) {
	w.t.Helper()
	storetest.View(w.t, w.store, func(ctx context.Context, tx *store.Tx) error {
		all, err := tx.Cases(ctx, store.CaseFilter{Client: w.client.ID, Limit: 100})
		for _, c := range all {
			out = append(out, c.Kind+" "+c.SubjectID.String())
		}
		return err
	})
	return out
}

// knock asks a number by a link, as somebody does who knows its page.
func (w *world) knock(path, phone string) answer {
	w.t.Helper()
	form := w.formOf(w.get(path))
	time.Sleep(time.Second + time.Millisecond)
	return w.do(http.MethodPost, path, url.Values{"form": {form}, "amount": {"700"}, "phone": {phone}, "market": {"mtn_momo.CG"}, "sure": {phone}})
}

// A merchant whose links ring twenty numbers in an hour, of which none approves, asks once a
// minute and link from then on, and has a case. Its checkouts go on. One whose customers pay is
// not slowed, however many do not.
func TestAMerchantsLinksAreSlowed(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		one, l := w.link(anyAmount)
		other, m := w.link(anyAmount)
		n := 100
		nobody := func(path string) int { n++; return w.knock(path, fmt.Sprintf("24206%03d0003", n)).status }
		for i := range 20 {
			if got := nobody(one); got != http.StatusSeeOther {
				t.Fatalf("ask %d: %d", i+1, got)
			}
		}
		if all := w.openCases(); len(all) != 0 {
			t.Fatalf("too early: %v", all)
		}
		steps := func(what string, want int, path string) {
			t.Helper()
			if got := nobody(path); got != want {
				t.Errorf("%s: %d, want %d", what, got, want)
			}
		}
		steps("the ask that shows it", http.StatusSeeOther, one)
		steps("the next", http.StatusTooManyRequests, one)
		steps("of the other link", http.StatusSeeOther, other)
		steps("the next of the other link", http.StatusTooManyRequests, other)
		a := w.knock(one, "242061990003")
		has(t, "the page", a, "Too many requests on this page. Nothing was asked.", "Again at ", `value="700"`)
		if got := strings.Join(w.openCases(), ", "); got != "page_abuse "+l.ID.String()+", page_abuse "+m.ID.String() {
			t.Errorf("cases: %s", got)
		}
		w.until(w.fill(w.open(""), "065551234"), "<title>✓ Paid") // an order goes on
		time.Sleep(time.Minute)
		steps("a minute later", http.StatusSeeOther, one)
		steps("right after", http.StatusTooManyRequests, one)

		time.Sleep(time.Hour) // what was asked before no longer counts
		for i := range 5 {
			if a := w.knock(other, fmt.Sprintf("24206555%04d", 4000+i)); a.status != http.StatusSeeOther {
				t.Fatalf("who pays: %d %s", a.status, textOf(a.body))
			}
		}
		for range 26 {
			steps("beside customers who pay", http.StatusSeeOther, other)
			time.Sleep(time.Minute)
		}
	})
}

// Numbers that approve, and numbers that are asked again and again, are not many numbers.
func TestTheSameNumbersSlowNoLink(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, _ := w.link(anyAmount)
		for i := range 19 {
			if a := w.knock(path, fmt.Sprintf("24206%03d0003", 100+i)); a.status != http.StatusSeeOther {
				t.Fatal(a.status)
			}
		}
		time.Sleep(11 * time.Minute) // the link's own limit
		for i := range 12 {
			if a := w.knock(path, fmt.Sprintf("24206%03d0003", 100+i)); a.status != http.StatusSeeOther {
				t.Fatalf("again %d: %d %s", i, a.status, textOf(a.body))
			}
		}
		if all := w.openCases(); len(all) != 0 {
			t.Errorf("nineteen numbers: %v", all)
		}
	})
}

// Numbers that were asked more than an hour ago count no more, though the merchant went on asking.
func TestNumbersCountForAnHour(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, _ := w.link(anyAmount)
		n := 100
		some := func(most int) {
			t.Helper()
			for range most {
				n++
				if a := w.knock(path, fmt.Sprintf("24206%03d0003", n)); a.status != http.StatusSeeOther {
					t.Fatalf("number %d: %d", n-100, a.status)
				}
			}
		}
		some(15)
		time.Sleep(40 * time.Minute)
		some(4)
		time.Sleep(25 * time.Minute)
		some(5 + 10) // nineteen in the hour
		if all := w.openCases(); len(all) != 0 {
			t.Fatalf("cases: %v", all)
		}
		some(1)
		some(1) // the twentieth was there before this one: it shows
		if all := w.openCases(); len(all) != 1 {
			t.Errorf("twenty in an hour: %v", all)
		}
	})
}

// Somebody reports a page: one case, of the checkout or the link.
func TestAReportIsACase(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		path, l := w.link(anyAmount)
		report := func(path, want string) {
			t.Helper()
			has(t, "a report", w.do(http.MethodPost, path+"/report", url.Values{}), want)
		}
		for range 3 {
			report(path, "A person will look at this page.")
		}
		if got := strings.Join(w.openCases(), ", "); got != "page_reported "+l.ID.String() {
			t.Fatalf("cases: %s", got)
		}
		ref := store.Ref{Client: w.client.ID, ID: l.ID}
		if err := w.store.Update(context.Background(), func(tx *store.Tx) error {
			return tx.CloseCases(context.Background(), []store.CaseClosure{{Ref: ref, By: "person:A", At: tx.Now(), Reason: "looked"}})
		}); err != nil {
			t.Fatal(err)
		}
		report(path, "This page was reported already.")
		if all := w.openCases(); len(all) != 0 {
			t.Errorf("the fourth of a day: %v", all)
		}
		order := w.open("")
		report(order, "A person will look at this page.")
		time.Sleep(24 * time.Hour)
		report(path, "A person will look at this page.")
		if all := w.openCases(); len(all) != 2 || !strings.HasPrefix(all[0], "page_reported ") || all[1] != "page_reported "+l.ID.String() {
			t.Errorf("cases: %v", all)
		}
	})
}

// A number that the house has blocked is asked by no page, not even if the shop named it, and the page says
// what to do and not why. It is asked again when it is let go.
func TestABlockedNumber(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		limits := w.pages.c.Limits
		for i, want := range []bool{true, false} {
			if changed, err := limits.Block(ctx, w.store, number, true, "person:Awa", "the owner asked"); err != nil || changed != want {
				t.Fatalf("block %d: %t %v", i, changed, err)
			}
		}
		try := func(path string, more url.Values) answer {
			form := w.formOf(w.get(path))
			time.Sleep(2 * time.Second)
			more.Set("form", form)
			return w.do(http.MethodPost, path, more)
		}
		typed := url.Values{"phone": {number}, "market": {"mtn_momo.CG"}, "sure": {number}}
		path := w.open("")
		a := try(path, typed)
		has(t, "a blocked number", a, "This page cannot ask this number. Nothing was asked. Use another number, or ask Boulangerie Mapassa how else to pay.", `name="phone"`)
		hasNot(t, "a blocked number", a, "the owner asked", "blocked")
		named := try(w.open(`,"phone":"`+number+`","phone_fixed":true`), url.Values{"market": {"mtn_momo.CG"}})
		has(t, "a blocked number that the shop named", named, "Nothing was asked. Ask Boulangerie Mapassa how else to pay.")
		link, _ := w.link(anyAmount)
		has(t, "a blocked number on a link", w.knock(link, number), "This page cannot ask this number.")
		if n := w.way.submits.Load(); n != 0 {
			t.Fatalf("%d prompts", n)
		}
		w.until(w.fill(path, "06 555 99 88"), "<title>✓ Paid")
		if changed, err := limits.Block(ctx, w.store, number, false, "person:Awa", "they wrote again"); err != nil || !changed {
			t.Fatal(changed, err)
		}
		w.until(w.fill(w.open(""), number), "<title>✓ Paid")
		storetest.View(t, w.store, func(ctx context.Context, tx *store.Tx) error {
			if all, err := checkouts.Blocks(ctx, tx, 10); err != nil || len(all) != 0 {
				t.Errorf("%v %v", all, err)
			}
			return nil
		})
	})
}

// Pages that are switched off take nothing new, on every way in; what was asked before goes on.
func TestPagesSwitchedOff(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprintf("all=%t", all), func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				who := w.client.ID
				if all {
					who = store.EveryClient
				}
				path, second := w.open(""), w.open("")
				link, _ := w.link(anyAmount)
				own := w.fill(path, asks)
				w.until(own, "Look at your phone")
				forms := []string{w.formOf(w.get(second)), w.formOf(w.get(link))}
				time.Sleep(2 * time.Second)
				for range 2 {
					if err := checkout.SwitchPages(ctx, w.store, who, true, "person:Awa", "a leaked poster"); err != nil {
						t.Fatal(err)
					}
				}
				for i, p := range []string{second, link} {
					a := w.do(http.MethodPost, p, url.Values{"form": {forms[i]}, "amount": {"700"}, "phone": {number}, "market": {"mtn_momo.CG"}, "sure": {number}})
					if to := a.header.Get("Location"); i == 0 && to != p {
						t.Errorf("a form from before leads to %q", to)
					} else if i == 1 {
						has(t, "a form from before", a, "Boulangerie Mapassa cannot be paid here just now.")
					}
					off := w.get(p)
					has(t, "the page", off, "Boulangerie Mapassa cannot be paid here just now.")
					hasNot(t, "the page", off, `name="phone"`, "poster")
				}
				if _, err := w.create("", w.client); till.ErrorCode(err) != till.CodePagesNotAvailable || !strings.Contains(err.Error(), "switched your pages off") {
					t.Errorf("a new checkout: %v", err)
				}
				if n := w.way.submits.Load(); n != 1 {
					t.Errorf("%d prompts", n)
				}
				w.approve()
				w.until(own, "<title>✓ Paid")
				if err := checkout.SwitchPages(ctx, w.store, who, false, "person:Awa", "a new poster"); err != nil {
					t.Fatal(err)
				}
				w.until(w.fill(second, number), "<title>✓ Paid")
			})
		})
	}
}

// An ask that was written down before its number was blocked, or the pages were switched off, and
// whose payment was not made yet, makes none.
func TestAnUnmadeAskIsNotMadeWhenPagesAreOff(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		path := w.open("")
		v, err := w.checkouts.Find(ctx, path[len(Prefix):])
		if err != nil {
			t.Fatal(err)
		}
		c := v.Checkout
		a := &till.Ask{ClientID: c.ClientID, CheckoutID: c.ID, N: 1, Key: w.checkouts.Keys().Ask(c.ClientID, c.IdempotencyKey, 1), Method: "mtn_momo", Country: "CG", Amount: c.Amount,
			Phone: number, AskedAt: w.store.Now()}
		if err := w.store.Update(ctx, func(tx *store.Tx) error {
			if _, err := tx.LockHeads(ctx, []till.ID{c.ClientID}); err != nil {
				return err
			}
			return checkouts.InsertAsk(ctx, tx, a)
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.pages.c.Limits.Block(ctx, w.store, number, true, "person:Awa", "the owner asked"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		busy := w.get(path)
		time.Sleep(2 * time.Second)
		w.do(http.MethodPost, path, hiddenOf(busy))
		time.Sleep(time.Minute)
		if n := w.way.submits.Load(); n != 0 {
			t.Errorf("%d prompts", n)
		}
		has(t, "the page", w.get(path), `name="phone"`)
	})
}

// Twenty asks of one merchant in a moment; the next come again a second later, and nothing was
// sent for them.
func TestACrowdIsToldToPressAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		var paths, forms []string
		for i := range crowdAsks + 1 {
			p := w.open(fmt.Sprintf(`,"phone":"242065%06d","phone_fixed":true`, 550_000+i))
			paths, forms = append(paths, p), append(forms, w.formOf(w.get(p)))
		}
		link, _ := w.link(anyAmount)
		of := w.formOf(w.get(link))
		time.Sleep(2 * time.Second)
		post := func(i int) answer {
			return w.do(http.MethodPost, paths[i], url.Values{"form": {forms[i]}, "market": {"mtn_momo.CG"}})
		}
		for i := range crowdAsks {
			if a := post(i); a.status != http.StatusSeeOther {
				t.Fatalf("ask %d: %d %s", i, a.status, textOf(a.body))
			}
		}
		a := post(crowdAsks)
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "1" {
			t.Fatalf("%d, Retry-After %q", a.status, a.header.Get("Retry-After"))
		}
		has(t, "one too many", a, "Very many people are paying here just now, so nothing was sent. Press the button again in a few seconds.", "<button>Pay 5,000 FCFA</button>")
		sound(t, "one too many", a, maxFirst)
		typed := url.Values{"form": {of}, "amount": {"700"}, "phone": {number}, "market": {"mtn_momo.CG"}, "sure": {number}}
		if a := w.do(http.MethodPost, link, typed); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, `value="700"`) {
			t.Errorf("of a link: %d %s", a.status, textOf(a.body))
		}
		time.Sleep(2 * time.Second)
		if a := post(crowdAsks); a.status != http.StatusSeeOther {
			t.Errorf("pressed again: %d", a.status)
		}
		first := w.do(http.MethodPost, link, typed)
		if first.status != http.StatusSeeOther {
			t.Fatalf("of a link, pressed again: %d", first.status)
		}
		for range crowdAsks { // a double click in a crowd leads to what the first has opened
			w.pages.rush.crowds.Take(w.client.ID, time.Now())
		}
		if to := w.do(http.MethodPost, link, typed).header.Get("Location"); to == "" || !strings.HasPrefix(first.header.Get("Location"), to) {
			t.Errorf("of a link, pressed twice: %q, and before %q", to, first.header.Get("Location"))
		}
	})
}

// From an address with many asks each number is looked at before it is asked, even one that the
// shop named. Nobody is refused, and other addresses are not concerned.
func TestAnAddressWithManyAsks(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world) {
		n := 0
		ask := func() answer {
			n++
			path := w.open(fmt.Sprintf(`,"phone":"242065%06d","phone_fixed":true`, 550_000+n))
			form := w.formOf(w.get(path))
			time.Sleep(time.Second + time.Millisecond)
			a := w.do(http.MethodPost, path, url.Values{"form": {form}, "market": {"mtn_momo.CG"}})
			if a.status == http.StatusOK {
				if b := w.do(http.MethodPost, path, hiddenOf(a)); b.status != http.StatusSeeOther {
					t.Fatalf("ask %d, looked at: %d %s", n, b.status, textOf(b.body))
				}
			}
			return a
		}
		for n < sourceAsks {
			if a := ask(); a.status != http.StatusSeeOther {
				t.Fatalf("ask %d: %d %s", n, a.status, textOf(a.body))
			}
		}
		looked := false
		for range 20 { // meanwhile some come back
			if a := ask(); a.status == http.StatusOK {
				looked = true
				has(t, "many asks", a, "Is this your number?")
			}
		}
		if !looked {
			t.Error("a number was never looked at")
		}
		for range 20 {
			ask()
		}
		w.from = "203.0.113.8:1000"
		if a := ask(); a.status != http.StatusSeeOther {
			t.Errorf("from another address: %d", a.status)
		}
	})
}
