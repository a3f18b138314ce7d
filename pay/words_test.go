package pay

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"till"
	"till/checkout"
	"till/console/look"
)

var places = regexp.MustCompile(`\{[a-z_]+\}`)

// Both languages say the same things, with the same places, and each face has its words.
func TestWords(t *testing.T) {
	t.Parallel()
	en, fr := catalogues[look.English], catalogues[look.French]
	if !slices.Equal(en.Keys(), fr.Keys()) {
		t.Fatalf("the languages have other keys: %v and %v", en.Keys(), fr.Keys())
	}
	for _, key := range en.Keys() {
		a, b := places.FindAllString(en.T(key), -1), places.FindAllString(fr.T(key), -1)
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			t.Errorf("%s has the places %v and %v", key, a, b)
		}
		if en.T(key) == "" || fr.T(key) == "" || strings.HasSuffix(en.T(key), " ") {
			t.Errorf("%s is empty, or ends in a space", key)
		}
		if strings.HasPrefix(key, "country.") {
			if _, ok := till.CountryOf(strings.TrimPrefix(key, "country.")); !ok {
				t.Errorf("%s is no country", key)
			}
		}
	}
	for _, f := range checkout.Faces {
		keys := []string{string(f) + ".title", string(f) + ".lead"}
		if f == checkout.FaceForm {
			keys = keys[:1]
		}
		for _, key := range keys {
			if !en.Has(key) {
				t.Errorf("%s is missing", key)
			}
		}
		if templateOf(f) == nil {
			t.Errorf("%s has no template", f)
		}
	}
	for _, m := range till.Methods() {
		for _, c := range m.Countries() {
			if !en.Has("country." + c) {
				t.Errorf("pages have no name for %s", c)
			}
		}
	}
	for _, r := range []till.FailureReason{till.CustomerDeclined, till.CustomerTimeout, till.NotApproved, till.InsufficientFunds, till.FundsOrLimit, till.PayerNotFound, till.PayerLimitReached,
		till.PayerNotAllowed, till.PayerBusy, till.WrongPIN, till.AmountOutOfBounds, till.ProviderUnavailable, till.ProviderRejected, till.ProviderError, till.Unspecified} {
		if !en.Has("reason." + string(r)) {
			t.Errorf("pages have no words for %s", r)
		}
	}
}

// Only faces after which nothing can come say that nothing was taken, in both languages.
func TestNothingWasTaken(t *testing.T) {
	t.Parallel()
	for lang, sentence := range map[string]string{look.English: "Nothing was taken", look.French: "Rien n’a été débité"} {
		for _, key := range catalogues[lang].Keys() {
			face, _, _ := strings.Cut(key, ".")
			said := strings.Contains(catalogues[lang].T(key), sentence)
			if live := checkout.Face(face).Live() || face == "away" || face == "paid" || face == "done" || face == "back" || face == "page" || face == "missing"; said && live {
				t.Errorf("%s: %s says %q", lang, key, sentence)
			}
			if strings.HasSuffix(key, ".body") && slices.Contains([]string{"again", "closed", "spent", "slow", "off"}, face) && !said {
				t.Errorf("%s: %s does not say %q", lang, key, sentence)
			}
		}
	}
}

// Each key is used by a template or by the program.
func TestEachWordIsUsed(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, folder := range []string{".", "html"} {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if name := e.Name(); strings.HasSuffix(name, ".html") || strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
				b, err := os.ReadFile(folder + "/" + name)
				if err != nil {
					t.Fatal(err)
				}
				all.Write(b)
			}
		}
	}
	for _, key := range catalogues[look.English].Keys() {
		table, word, _ := strings.Cut(key, ".")
		derived := table == "country" || table == "reason" || word == "title" || word == "lead" || word == "body"
		if !derived && !strings.Contains(all.String(), `"`+key+`"`) {
			t.Errorf("nothing says %s", key)
		}
	}
}
