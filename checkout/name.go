package checkout

import (
	"slices"
	"strings"
	"unicode/utf8"

	"till"
)

// MaxName is how many characters the name of a merchant may have on a page.
const MaxName = 40

// NameRule is a rule that a name on a page breaks; "" is none.
type NameRule string

// The rules. Pages live on trust: who reads "MTN MoMo" above a field for a number
// believes that the operator asks.
const (
	NameEmpty   NameRule = "empty"   // there is no letter in it
	NameLong    NameRule = "long"    // more than MaxName characters
	NameLetters NameRule = "letters" // something else than Latin letters, digits and . , ' & -
	NameTaken   NameRule = "taken"   // a word of it is an operator, a method, this service, "wallet" or "PIN"
)

// Words returns what a rule asks for, for those who can mend the name.
func (r NameRule) Words() string {
	switch r {
	case NameEmpty:
		return "must have at least one letter"
	case NameLong:
		return "must have at most 40 characters"
	case NameLetters:
		return "must be of Latin letters, digits, spaces and . , ' & -"
	case NameTaken:
		return `must not have the name of an operator, of a payment method or of this service, "wallet" or "PIN" as a word in it`
	case NameTwin:
		return "must not look like that of another merchant"
	}
	return ""
}

// CheckName returns the first rule that a name breaks.
func CheckName(name string) NameRule {
	if utf8.RuneCountInString(name) > MaxName {
		return NameLong
	}
	letters := 0
	for _, r := range name {
		folded, ok := fold(r)
		if !ok {
			return NameLetters
		}
		if folded != " " && !strings.Contains(nameMarks, folded) {
			letters++
		}
	}
	switch {
	case letters == 0:
		return NameEmpty
	case hasTakenWord(name):
		return NameTaken
	}
	return ""
}

// nameMarks are the marks that a name may have.
const nameMarks = ".,'&-"

// Skeleton returns what two names have in common that a hurried reader takes for
// one: letters without case and accents, 0 as o, 1 and i as l, without spaces and marks.
func Skeleton(name string) string { return strings.Join(nameWords(name), "") }

// nameWords returns the skeletons of a name's words.
func nameWords(name string) []string {
	var b strings.Builder
	for _, r := range name {
		if folded, ok := fold(r); ok {
			b.WriteString(folded)
		}
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return r == ' ' || strings.ContainsRune(nameMarks, r) })
}

// hasTakenWord reports whether a word of the name, or some that follow each other,
// are a name that is not the merchant's to use: "M.T.N", "M-Pesa" and "0range Money" are
// found, "Tillabéri" is not.
func hasTakenWord(name string) bool {
	words, taken := nameWords(name), takenNames()
	for i := range words {
		joined := ""
		for _, w := range words[i:] {
			if joined += w; slices.Contains(taken, joined) {
				return true
			}
		}
	}
	return false
}

// otherNames are names of operators, of brands and of this service that are not
// names of methods.
var otherNames = []string{
	"MTN", "MoMo", "Airtel", "Orange", "Moov", "Vodafone", "Telecel", "Safaricom", "Vodacom", "Tigo", "Yas", "Mixx", "AirtelTigo",
	"Wave", "TNM", "Mpamba", "Zamtel", "Halotel", "Viettel", "Movitel", "Onatel", "Warid", "Mobicash", "mKesh", "pawaPay",
	"Mobile Money", "Till", "wallet", "PIN",
}

// takenNames returns the skeletons of all names that a merchant may not use. The
// catalogue is read each time: a configuration may add methods to it.
func takenNames() []string {
	var out []string
	for _, name := range otherNames {
		out = append(out, Skeleton(name))
	}
	for _, m := range till.Methods() {
		out = append(out, Skeleton(m.Name), Skeleton(strings.ReplaceAll(m.Code, "_", " ")))
		for _, country := range m.Countries() {
			out = append(out, Skeleton(m.NameIn(country)))
		}
	}
	return out
}

// fold returns a character of a name in its simplest form: a small letter without
// accent, l for what looks like it, o for 0. It reports false for what a name may not
// have. Letters of other scripts and letters that are only drawn otherwise (ＭＴＮ, 𝗠𝗧𝗡) are
// not in its table, and nor is anything that is not seen.
func fold(r rune) (string, bool) {
	switch {
	case r == '0':
		return "o", true
	case r == '1':
		return "l", true
	case r >= '2' && r <= '9', r == ' ', strings.ContainsRune(nameMarks, r):
		return string(r), true
	case r == '\u2019': // ’, as telephones type the apostrophe
		return "'", true
	case r >= 'A' && r <= 'Z':
		r += 'a' - 'A'
		fallthrough
	case r >= 'a' && r <= 'z':
		if r == 'i' {
			r = 'l'
		}
		return string(r), true
	}
	simple, ok := accented[r]
	return simple, ok
}

// accented has the letters beside those of ASCII: those of European languages, and the
// hooked and open ones that African languages are written with.
var accented = func() map[rune]string {
	table := map[rune]string{}
	for simple, letters := range map[string]string{
		"a": "ÀÁÂÃÄÅĀĂĄàáâãäåāăąẠạ", "c": "ÇĆĈĊČçćĉċč", "d": "ÐĎĐƊðďđɗ", "e": "ÈÉÊËĒĔĖĘĚƐƎẸèéêëēĕėęěɛǝẹ",
		"g": "ĜĞĠĢĝğġģ", "h": "ĤĦĥħ", "l": "ÌÍÎÏĨĪĬĮİỊìíîïĩīĭįıịĹĻĽĿŁĺļľŀł", "j": "Ĵĵ", "k": "ĶƘķƙ", "n": "ÑŃŅŇŊñńņňŋƝɲ",
		"o": "ÒÓÔÕÖØŌŎŐƆỌòóôõöøōŏőɔọ", "r": "ŔŖŘŕŗř", "s": "ŚŜŞŠȘṢśŝşšșṣ", "t": "ŢŤŦȚţťŧț", "u": "ÙÚÛÜŨŪŬŮŰŲỤùúûüũūŭůűųụ",
		"w": "Ŵŵ", "y": "ÝŶŸƳýŷÿƴ", "z": "ŹŻŽźżž", "b": "Ɓɓ", "ae": "Ææ", "oe": "Œœ", "ss": "ß", "th": "Þþ",
	} {
		for _, r := range letters {
			table[r] = simple
		}
	}
	return table
}()
