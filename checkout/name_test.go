package checkout_test

import (
	"strings"
	"testing"

	"till/checkout"
)

func TestNamesOnPages(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]checkout.NameRule{
		"Boulangerie Mapassa":            "",
		"Chez L'Étoile & Fils, S.A.R.L.": "",
		"Ɔkɔmfo Anɔkye 24-7":             "",
		"Tillabéri Transport":            "",
		"Pinson":                         "", // PIN is only the beginning of a word
		"Waveland":                       "",
		"7":                              "",

		"":                      checkout.NameEmpty,
		" - & - ":               checkout.NameEmpty,
		strings.Repeat("é", 40): "",
		strings.Repeat("é", 41): checkout.NameLong,

		"МТN":                checkout.NameLetters, // Cyrillic М and Т
		"Οrange":             checkout.NameLetters, // Greek Ο
		"ＭＴＮ":                checkout.NameLetters, // letters of full width
		"𝗠𝗧𝗡 Shop":           checkout.NameLetters, // bold letters of mathematics
		"Shop\u202eNTM":      checkout.NameLetters, // what follows is read backwards
		"Sho\u200bp":         checkout.NameLetters, // a space without width
		"Cafe\u0301":         checkout.NameLetters, // an accent of its own
		"Shop\x00":           checkout.NameLetters,
		"<b>Shop</b>":        checkout.NameLetters,
		"shop.example/pay":   checkout.NameLetters,
		"Shop\u00a0Mapassa":  checkout.NameLetters,
		"متجر":               checkout.NameLetters,
		"Pay ✓":              checkout.NameLetters,
		"Shop\xff":           checkout.NameLetters,
		"MTN":                checkout.NameTaken,
		"My mtn Shop":        checkout.NameTaken,
		"M.T.N. Shop":        checkout.NameTaken,
		"M T N":              checkout.NameTaken,
		"MTN-MoMo":           checkout.NameTaken,
		"Órange":             checkout.NameTaken,
		"0RANGE m0ney":       checkout.NameTaken,
		"A1rtel":             checkout.NameTaken,
		"M-Pesa agent":       checkout.NameTaken,
		"mpesa":              checkout.NameTaken,
		"E mola":             checkout.NameTaken,
		"Mixx by Yas":        checkout.NameTaken,
		"Telecel":            checkout.NameTaken,
		"Your Wallet":        checkout.NameTaken,
		"Wa11et":             checkout.NameTaken,
		"Type your PIN":      checkout.NameTaken,
		"T1ll":               checkout.NameTaken,
		"Mobile Money Congo": checkout.NameTaken,
	} {
		got := checkout.CheckName(name)
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
		if (got == "") != (got.Words() == "") {
			t.Errorf("%q: the rule %q says %q", name, got, got.Words())
		}
	}
}

// Two names that a reader takes for one have one skeleton, and others have not.
func TestSkeletons(t *testing.T) {
	t.Parallel()
	for _, same := range [][2]string{
		{"Boulangerie Mapassa", "B0ULANGER1E MAPASSA"}, {"Boulangerie Mapassa", "Boulangerie-Mapassa."},
		{"Élite", "elite"}, {"Étoile", "Eto1le"}, {"Œuf", "OEUF"}, {"Bili", "B1l1"},
	} {
		if a, b := checkout.Skeleton(same[0]), checkout.Skeleton(same[1]); a != b || a == "" {
			t.Errorf("%q is %q and %q is %q", same[0], a, same[1], b)
		}
	}
	if checkout.Skeleton("Mapassa") == checkout.Skeleton("Mapasa") {
		t.Error("two names have one skeleton")
	}
}

func FuzzNames(f *testing.F) {
	f.Add("Boulangerie Mapassa")
	f.Add("M.T.N\u202e")
	f.Fuzz(func(t *testing.T, name string) {
		if checkout.CheckName(name) != "" {
			return
		}
		if strings.ContainsAny(name, "<>\"/\x00\u202e\u200b\n") {
			t.Errorf("%q is a name", name)
		}
		if checkout.CheckName(name+" MTN") == "" {
			t.Errorf("%q is a name with the operator's behind it", name)
		}
	})
}
