package wire

import (
	"strings"
	"unicode/utf8"
)

// asciiFor maps letters of our customers' languages, which some operators do not accept, to
// ASCII.
var asciiFor = map[rune]string{
	'à': "a", 'á': "a", 'â': "a", 'ã': "a", 'ä': "a", 'å': "a", 'ā': "a",
	'ç': "c", 'č': "c", 'ć': "c", 'ð': "d", 'ɖ': "d", 'ɗ': "d",
	'è': "e", 'é': "e", 'ê': "e", 'ë': "e", 'ē': "e", 'ẹ': "e", 'ɛ': "e", 'ə': "e",
	'ƒ': "f", 'ɣ': "g", 'ğ': "g",
	'ì': "i", 'í': "i", 'î': "i", 'ï': "i", 'ī': "i", 'ɩ': "i",
	'ƙ': "k", 'ł': "l", 'ñ': "n", 'ŋ': "n", 'ń': "n", 'ɲ': "n",
	'ò': "o", 'ó': "o", 'ô': "o", 'õ': "o", 'ö': "o", 'ø': "o", 'ō': "o", 'ọ': "o", 'ɔ': "o",
	'ś': "s", 'š': "s", 'ş': "s", 'ṣ': "s", 'ß': "ss",
	'ù': "u", 'ú': "u", 'û': "u", 'ü': "u", 'ū': "u", 'ʋ': "v", 'ŵ': "w",
	'ý': "y", 'ÿ': "y", 'ƴ': "y", 'ž': "z", 'æ': "ae", 'œ': "oe", 'þ': "th",
}

// PlainASCII returns a text that every operator accepts: at most n ASCII letters, digits
// and single spaces. Accents are dropped and any other character becomes a space, so "L'été
// & l'école" is "L ete l ecole".
func PlainASCII(s string, n int) string {
	var b strings.Builder
	gap := false
	put := func(t string) {
		if gap && b.Len() > 0 {
			t = " " + t
		}
		if b.Len()+len(t) > n {
			n = b.Len() // full: no shorter text may follow
			return
		}
		b.WriteString(t)
		gap = false
	}
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf && alphanumeric(byte(r)):
			put(string(r))
		case asciiFor[r] != "":
			put(asciiFor[r])
		case asciiFor[lower(r)] != "":
			put(strings.ToUpper(asciiFor[lower(r)]))
		case r >= 0x300 && r <= 0x36f: // a combining accent
		default:
			gap = true
		}
	}
	return b.String()
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func lower(r rune) rune {
	for _, l := range strings.ToLower(string(r)) {
		return l
	}
	return r
}
