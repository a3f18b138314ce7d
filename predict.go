package till

import "strings"

// PredictMethod returns the method that a number of the country probably belongs
// to, nil if that is not known. It is certain if the number's prefix belongs to that
// operator alone, so that CheckPhone refuses it for other methods. Otherwise the
// prefix was given to the operator once, which is good enough to choose a method
// before the customer does, and for nothing else.
func (c *Country) PredictMethod(phone string) (m *Method, certain bool) {
	if !c.accepts(phone) {
		return nil, false
	}
	national := phone[len(c.CallingCode):]
	for _, m := range Methods() {
		if hasAnyPrefix(national, m.prefixes(c.Code)) {
			return m, true
		}
	}
	for _, other := range Methods() {
		for i := range other.Markets {
			if k := &other.Markets[i]; k.Country != c.Code || !hasAnyPrefix(national, k.Likely) {
				continue
			}
			if m != nil && m != other {
				return nil, false // two claim it
			}
			m = other
		}
	}
	return m, false
}

// ReadPhone returns the number of the country that a person's way of writing means:
// with spaces, dots, hyphens or brackets, a plus or two zeros in front, without the
// calling code, with the zero that some countries dial first, or with the calling
// code twice. It reports false, with the digits, if the text is no mobile number of the
// country. A number that was read so is shown whole before money is asked from it.
func (c *Country) ReadPhone(text string) (phone string, ok bool) {
	if phone, ok = c.ReadInternational(text); ok {
		return phone, true
	}
	digits, clean := phoneDigits(text)
	for _, phone := range []string{c.CallingCode + digits, c.CallingCode + strings.TrimPrefix(digits, "0")} {
		if clean && c.accepts(phone) {
			return phone, true
		}
	}
	return digits, false
}

// ReadInternational is ReadPhone for a text that begins with the calling code.
func (c *Country) ReadInternational(text string) (phone string, ok bool) {
	digits, clean := phoneDigits(text)
	international := strings.TrimPrefix(digits, "00")
	national, found := strings.CutPrefix(international, c.CallingCode)
	for _, phone := range []string{international, national, c.CallingCode + strings.TrimPrefix(national, "0")} {
		if clean && found && c.accepts(phone) {
			return phone, true
		}
	}
	return digits, false
}

// phoneDigits returns the digits of a text, and whether all else is what people put
// between them.
func phoneDigits(text string) (digits string, clean bool) {
	clean = true
	digits = strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9':
			return r
		case !strings.ContainsRune(phonePunctuation, r):
			clean = false
		}
		return -1
	}, text)
	return digits, clean
}

// phonePunctuation is what stands between the digits of numbers that are typed or
// pasted: spaces, also those that do not break, hyphens and dashes, and the marks of
// direction that telephones put around numbers.
const phonePunctuation = " \t\u00a0\u2009\u202f+-.()/\u2010\u2011\u2012\u2013\u200e\u200f\u202a\u202c\u2066\u2068\u2069"
