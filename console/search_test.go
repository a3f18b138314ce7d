package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"till"
	"till/store"
	"till/store/storetest"
	"till/upkeep"
)

// searches are what people type, and which of the payments of TestWhatPeopleType it finds: a is ORDER-1042, b is
// CMD-2026/0077-B, c has no reference; "" is none of them. {…} is filled in from the payment.
var searches = []struct{ typed, finds string }{
	// What the third look typed.
	{"ORDER-1042", "a"}, {"06 123 45 67", "a"}, {"5000", "a"}, {"{receipt}", "a"}, {"{id}", "a"},
	{"order-1042", "a"}, {"1042", "a"}, {"5 000 FCFA", "a"}, {"567", "a"}, {"{small receipt}", "a"}, {"Loemba", "a"}, {"{id's beginning}", "a"}, {"till_test_nobody_knows_it", ""},
	// And more.
	{"5.000", "a"}, {"5,000 XAF", "a"}, {"5 000 XAF", "a"}, {"5000 F CFA", "a"}, {"5\u202f000 FCFA", "a"}, {"5 000 KES", ""},
	{"order 1042", "a"}, {"ORDER_1042", "a"}, {"042", "a"}, {"orde", "a"}, {"loem", "a"}, {"kintele", "a"}, {"KINTÉLÉ", "a"}, {"pains loemba", "a"}, {"loemba 1042", "a"}, {"4567", "a"}, {"34567", "a"},
	{"+242 06 123 45 67", "a"}, {"242061234567", "a"}, {"cmd-2026", "b"}, {"0077", "b"}, {"77-b", "b"}, {"2026/0077", "b"}, {"cmd 2026 0077 b", "b"}, {"gateau", "b"}, {"anniv", "b"}, {"810", "b"},
	{"7 500", "b"}, {"{key}", "b"}, {"{id's end}", "c"}, {"12.500 FCFA", "c"},
	{"1043", ""}, {"loemba gateau", ""}, {"568", ""}, {"LIKE %", ""}, {"zzz", ""},
}

// What people type finds what they mean, among the newest rows and by the index, on each engine; and no address
// has what was typed.
func TestWhatPeopleType(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			ids := map[string]till.ID{
				"a": w.pay("242061234567", 5000, "ORDER-1042", "Deux pains, M. Loemba (Kintélé)"),
				"b": w.pay("242069876810", 7500, "CMD-2026/0077-B", "Gâteau d'anniversaire"),
				"c": w.pay("242069870999", 12500, "", ""),
			}
			w.payFor(w.other, "242061234567", 5000, "ORDER-1042")
			w.until(ids["a"], till.Success)
			w.untilIndexed(t, 3)
			w.types(t, "among the newest", ids)
			// Rows enough to push them out of the newest.
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					for n := range 20 { // no number has the digits of a search
						w.pay("242069999999", int64(20000+n), fmt.Sprintf("OTHER-%c-%d", 'g'+i, 711100+n), "")
					}
				})
			}
			all.Wait()
			w.types(t, "beyond the newest, before they are in the index", ids)
			w.untilIndexed(t, 323)
			w.types(t, "by the index", ids)
		})
	}
}

// untilIndexed fills the index of words up to now.
func (w *world) untilIndexed(t *testing.T, atLeast int) {
	t.Helper()
	n, err := upkeep.IndexWords(context.Background(), w.store, w.console.Marks, w.store.Now().Add(time.Second))
	if err != nil || n < atLeast-3 {
		t.Fatalf("%d rows entered the index: %v", n, err)
	}
}

// types makes each search of the table.
func (w *world) types(t *testing.T, when string, ids map[string]till.ID) {
	t.Helper()
	receipt, _ := w.receiptAndEvent(w.client.ID, ids["a"])
	key := w.row(ids["b"]).IdempotencyKey
	fill := strings.NewReplacer("{receipt}", receipt, "{small receipt}", strings.ToLower(receipt), "{id}", ids["a"].String(), "{id's beginning}", ids["a"].String()[:13], "{key}", key,
		"{id's end}", ids["c"].String()[28:])
	for _, s := range searches {
		typed := fill.Replace(s.typed)
		a := w.do(request(http.MethodPost, w.path("/search"), url.Values{"q": {typed}}))
		at := a.Header().Get("Location")
		if a.Code != http.StatusSeeOther || !sealedAddress(at, w.path("/search")) {
			t.Fatalf("%s: %q is answered %d %s", when, typed, a.Code, at)
		}
		page := w.get(at)
		if s.typed == "{id's beginning}" { // ids of one minute begin alike
			if !strings.Contains(page, `/payments/`+ids["a"].String()+`"`) {
				t.Errorf("%s: %q does not find a", when, typed)
			}
			continue
		}
		for name, id := range ids {
			found := strings.Contains(page, `/payments/`+id.String()+`"`)
			if found && w.receiptHas(id, typed) { // its receipt is made of random digits
				continue
			}
			if found != (name == s.finds) {
				t.Errorf("%s: %q finds %s: %t", when, typed, name, found)
			}
		}
	}
}

// sealedAddress reports whether an address has the text that was typed as nothing but its seal, or only the way to take it.
func sealedAddress(at, path string) bool {
	u, err := url.Parse(at)
	if err != nil || u.Path != path {
		return false
	}
	for name, values := range u.Query() {
		if name == "who" && len(values) == 1 && len(values[0]) > 40 || name == "as" && slices.Equal(values, []string{"secret"}) {
			continue
		}
		return false
	}
	return true
}

// receiptHas reports whether a text happens to be a part of a payment's receipt.
func (w *world) receiptHas(id till.ID, text string) bool {
	receipt := strings.ToLower(w.row(id).ProviderReference)
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return receipt != "" && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(receipt, word) })
}

// row reads a payment.
func (w *world) row(id till.ID) (p *store.PaymentRow) {
	w.t.Helper()
	err := w.store.View(context.Background(), func(tx *store.Tx) (err error) {
		p, err = tx.Payment(context.Background(), store.Ref{Client: w.client.ID, ID: id})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// While somebody types, the merchant's page answers with what was found; the house's does not, because each of its
// searches is noted. A secret is not looked at.
func TestASearchWhileItIsTyped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite())
	id := w.pay("242061234567", 5000, "ORDER-1042", "Deux pains")
	typed := func(path, text string) string {
		t.Helper()
		r := request(http.MethodPost, path, url.Values{"q": {text}})
		r.Header.Set("Till-Region", "found")
		a := w.do(r)
		if a.Code != http.StatusOK || strings.Contains(a.Body.String(), "<html") {
			t.Fatalf("%q is answered %d", text, a.Code)
		}
		return a.Body.String()
	}
	for _, lang := range []string{"en", "fr"} {
		w.be(till.RoleCashier, lang)
		if page := typed(w.path("/search"), "1042"); !strings.Contains(page, id.String()) || strings.Contains(page, "1234567") {
			t.Errorf("%s: typed: %s", lang, page)
		}
		for _, text := range []string{"", "till_test_abc", "1043"} {
			if page := typed(w.path("/search"), text); strings.Contains(page, id.String()) {
				t.Errorf("%q finds it: %s", text, page)
			}
		}
	}
	w.be(till.RoleSupport, "en")
	if page := typed("/console/house/search", "1042"); strings.Contains(page, id.String()) {
		t.Error("the house's page answers what is typed")
	}
}
