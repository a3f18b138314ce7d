package lookup

import (
	"slices"
	"strings"
	"unicode"

	"till"
	"till/internal/request"
)

// What people type is compared without capitals, accents and punctuation: "commande no 1042" finds
// COMMANDE-1042, and "kintele" Kintélé.

// The limits of what a row is found by.
const (
	minPart         = 3  // characters that a part of a text has, to be looked for
	maxStarts       = 12 // places of a reference at which a part of it may begin
	maxWords        = 12 // words of a description
	maxRunes        = 64 // of a reference or a word that count
	minIDPart       = 6  // characters of an id's beginning
	idTail          = 8  // characters of an id's end, as lists show it where there is no reference
	maxAnchors      = 3  // pieces of a text that are looked for in the index
	maxInRange      = 2_000
	descriptionName = "description"
)

// plain has the letters that people also write without their accents.
var plain = strings.NewReplacer("à", "a", "â", "a", "ä", "a", "á", "a", "ã", "a", "å", "a", "ç", "c", "é", "e", "è", "e", "ê", "e", "ë", "e",
	"î", "i", "ï", "i", "í", "i", "ì", "i", "ñ", "n", "ô", "o", "ö", "o", "ó", "o", "ò", "o", "õ", "o", "û", "u", "ü", "u", "ú", "u", "ù", "u",
	"ý", "y", "ÿ", "y", "œ", "oe", "æ", "ae", "ß", "ss")

// foldedWords returns the runs of letters and digits of a text, folded.
func foldedWords(text string) []string {
	text = strings.ToLower(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
		text = plain.Replace(text)
	}
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// squeezed returns a text folded, in one piece.
func squeezed(text string) string { return strings.Join(foldedWords(text), "") }

// Text is what somebody looks for: any part of a reference or a receipt, beginnings of words
// of a description, the last digits of a phone, the beginning or the shown end of an id.
type Text struct {
	words  []string
	joined string
	digits bool   // only digits
	id     string // the part of an id that it can be, without dashes
}

// NewText returns what a text looks for. One of less than three letters and digits finds only a
// whole reference.
func NewText(text string) Text {
	t := Text{words: foldedWords(text)}
	t.joined = strings.Join(t.words, "")
	t.digits = t.joined != "" && strings.Trim(t.joined, "0123456789") == ""
	if hex := strings.ReplaceAll(strings.ToLower(strings.Trim(text, " .…")), "-", ""); len(hex) >= minIDPart && len(hex) <= 32 && strings.Trim(hex, "0123456789abcdef") == "" {
		t.id = hex
	}
	return t
}

// IsExact reports whether a text is looked for as it stands in a row, but for capitals and the
// like.
func (t Text) IsExact(reference string) bool {
	return t.joined != "" && reference != "" && squeezed(reference) == t.joined
}

// Finds reports whether a row has the text.
func (t Text) Finds(r *WordRow) bool {
	if t.joined == "" {
		return false
	}
	if len([]rune(t.joined)) < minPart {
		return t.IsExact(r.Reference)
	}
	if strings.Contains(squeezed(r.Reference), t.joined) || strings.Contains(squeezed(r.Receipt), t.joined) || t.digits && strings.HasSuffix(r.Phone, t.joined) {
		return true
	}
	if t.id != "" {
		if id := strings.ReplaceAll(r.ID.String(), "-", ""); strings.HasPrefix(id, t.id) || len(t.id) >= idTail && strings.HasSuffix(id, t.id) {
			return true
		}
	}
	reference, said := foldedWords(r.Reference), foldedWords(request.MemberText(r.Document, descriptionName))
	whole := strings.Join(reference, "")
	for _, w := range t.words {
		short := len([]rune(w)) < minPart // is in everything, so it must be a word
		if short && (slices.Contains(reference, w) || slices.Contains(said, w)) || !short && strings.Contains(whole, w) {
			continue
		}
		if short || !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, w) }) {
			return false
		}
	}
	return true
}

// idRange returns the ids that begin with the text, false if it is no such beginning.
func (t Text) idRange() (from, to till.ID, ok bool) {
	if t.id == "" {
		return from, to, false
	}
	fill := func(with string) till.ID {
		h := t.id + strings.Repeat(with, 32-len(t.id))
		id, err := till.ParseID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
		ok = ok && err == nil
		return id
	}
	ok = true
	from, to = fill("0"), fill("f")
	return from, to, ok
}

// anchors returns the pieces of the text that the index is asked for: all of it, its longest word, and
// the digits at its end. Whatever they find is compared with the whole text.
func (t Text) anchors() (out []string) {
	longest := ""
	for _, w := range t.words {
		if len([]rune(w)) > len([]rune(longest)) {
			longest = w
		}
	}
	end := t.joined[len(strings.TrimRight(t.joined, "0123456789")):]
	for _, a := range []string{t.joined, longest, end} {
		if !slices.Contains(out, a) && len(out) < maxAnchors && (a == t.joined || len([]rune(a)) >= minPart) {
			out = append(out, a)
		}
	}
	return out
}

// starts returns what a reference is found by: it, and its rest from each word, each change between
// letters and digits, and each digit on. A rest is found by its beginning.
func starts(reference string) (out []string) {
	var all []rune
	var at []int
	for _, word := range foldedWords(reference) {
		for i, r := range []rune(word) {
			digit := unicode.IsDigit(r)
			if i == 0 || digit || unicode.IsDigit(all[len(all)-1]) {
				at = append(at, len(all))
			}
			all = append(all, r)
		}
	}
	all = all[:min(len(all), maxRunes)]
	for _, i := range at {
		if i == 0 || i+minPart <= len(all) {
			out = append(out, string(all[i:]))
		}
	}
	if len(out) > maxStarts {
		out = append(out[:1], out[len(out)-maxStarts+1:]...) // the ends are what people remember
	}
	return out
}

// wordsOf returns what a row is found by as a text.
func wordsOf(r *WordRow) (out []string) {
	out = starts(r.Reference)
	if r.Reference == "" {
		id := r.ID.String()
		out = append(out, id[len(id)-idTail:])
	}
	n := 0
	for _, w := range foldedWords(request.MemberText(r.Document, descriptionName)) {
		if runes := []rune(w); len(runes) >= minPart && n < maxWords && !slices.Contains(out, w) {
			out, n = append(out, string(runes[:min(len(runes), maxRunes)])), n+1
		}
	}
	return out
}

// reversed returns a phone's digits from the last one on: its ends are beginnings then.
func reversed(digits string) string {
	b := []byte(digits)
	slices.Reverse(b)
	return string(b)
}
