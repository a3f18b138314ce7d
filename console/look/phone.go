package look

import (
	"regexp"
	"strings"

	"till"
)

// Mask returns a phone as pages show it: 242 ••• 567. What till.MaskPhone shows
// nothing of, this shows nothing of either.
func Mask(phone string) string {
	masked := till.MaskPhone(phone)
	start, end := strings.IndexByte(masked, '*'), strings.LastIndexByte(masked, '*')
	if start <= 0 {
		return "•••"
	}
	return masked[:start] + wideSpace + "•••" + wideSpace + masked[end+1:]
}

// masked is a phone in a text, as till.MaskPhone writes it.
var masked = regexp.MustCompile(`\b([0-9]{3})\*+([0-9]{3})\b`)

// MaskedIn returns a text with its masked phones as Mask shows them.
func MaskedIn(text string) string {
	return masked.ReplaceAllString(text, "$1"+wideSpace+"•••"+wideSpace+"$2")
}

// Phone returns a whole phone in groups: +242 06 123 45 67. What is not a number
// of ours is returned as it is.
func Phone(phone string) string {
	code := callingCode(phone)
	if code == "" {
		return phone
	}
	national := phone[len(code):]
	var groups []string
	for n := len(national); n > 0; n = len(national) {
		size := 2
		if n%2 == 1 && n <= 7 {
			size = 3
		}
		if n < size {
			size = n
		}
		groups = append(groups, national[:size])
		national = national[size:]
	}
	return "+" + code + wideSpace + strings.Join(groups, wideSpace)
}

// callingCode returns the calling code of a country in the catalogue that the
// phone begins with, "" if there is none.
func callingCode(phone string) string {
	for _, m := range till.Methods() {
		if c, ok := till.CountryByCallingCode(phone, m.Countries()); ok {
			return c.CallingCode
		}
	}
	return ""
}
