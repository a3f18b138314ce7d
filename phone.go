package till

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// CheckPhone reports whether phone is a mobile number of the country: ASCII
// digits only, beginning with the calling code, of the country's length, in
// its numbering plan. If not, hint says the rule with an example and never
// the bad value. A number is never repaired: a zero put in or left out by
// guess asks a stranger for money.
func CheckPhone(country *Country, phone string) (ok bool, hint string) {
	if country.accepts(phone) {
		return true, ""
	}
	return false, country.PhoneRule()
}

// CheckPhone is the same for a number that is to pay or be paid by the method.
// Where an operator's prefixes are known, a number that begins with those of
// another one is refused, too: the operator would only find out after the
// customer was sent to approve. The hint then names the method that the number
// belongs to. Where they are not known, nothing is refused for its prefix.
func (m *Method) CheckPhone(c *Country, phone string) (ok bool, hint string) {
	if !c.accepts(phone) {
		return false, c.phoneRule(m.PhoneExample(c))
	}
	own := m.prefixes(c.Code)
	national := phone[len(c.CallingCode):]
	if len(own) == 0 || hasAnyPrefix(national, own) {
		return true, ""
	}
	for _, other := range Methods() {
		if other.Code != m.Code && hasAnyPrefix(national, other.prefixes(c.Code)) {
			return false, "is a number of " + other.NameIn(c.Code) + ", whose method is " + other.Code + "; numbers of " + m.NameIn(c.Code) +
				" begin with " + c.CallingCode + strings.Join(own, " or "+c.CallingCode)
		}
	}
	return true, ""
}

// PhoneExample returns a number that could be one of the method's in the
// country.
func (m *Method) PhoneExample(c *Country) string {
	own := m.prefixes(c.Code)
	if hasAnyPrefix(c.Example[len(c.CallingCode):], own) {
		return c.Example
	}
	for _, p := range own {
		if n := len(c.CallingCode) + len(p); n < len(c.Example) {
			if phone := c.CallingCode + p + c.Example[n:]; c.accepts(phone) {
				return phone
			}
		}
	}
	return c.Example
}

// prefixes are those of the method's numbers in a country, none if they are not
// known.
func (m *Method) prefixes(country string) []string {
	for i := range m.Markets {
		if k := &m.Markets[i]; k.Country == country && len(k.Prefixes) > 0 {
			return k.Prefixes
		}
	}
	return nil
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// PhoneRule returns the form of the country's mobile numbers in words, such
// as "digits only: 242 followed by 9 digits, for example 242061234567".
func (c *Country) PhoneRule() string { return c.phoneRule(c.Example) }

func (c *Country) phoneRule(example string) string {
	var b strings.Builder
	b.WriteString("digits only: ")
	b.WriteString(c.CallingCode)
	b.WriteString(" followed by ")
	for i, n := range c.Lengths {
		switch {
		case i == 0:
		case i == len(c.Lengths)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n - len(c.CallingCode)))
	}
	b.WriteString(" digits, for example ")
	b.WriteString(example)
	return b.String()
}

// ExtendPhonePatterns adds patterns of national numbers to a country, for
// ranges that were assigned after the table was made. The hard rules still
// hold: digits, calling code, length. Either all patterns are added or none.
// It is for the start of a program, before phones are checked.
func ExtendPhonePatterns(code string, patterns []string) error {
	c, ok := CountryOf(code)
	if !ok {
		return fmt.Errorf("phone patterns: no country %q", code)
	}
	var all []*regexp.Regexp
	if old := c.extra.Load(); old != nil {
		all = append(all, *old...)
	}
	for _, p := range patterns {
		if p == "" {
			return fmt.Errorf("phone patterns of %s: a pattern is empty", code)
		}
		// The pattern must compile on its own: "a)|(b" would compile only
		// inside the brackets that anchor it, and mean something else there.
		if _, err := regexp.Compile(p); err != nil {
			return fmt.Errorf("phone patterns of %s: %w", code, err)
		}
		re, err := regexp.Compile(anchored(p))
		if err != nil {
			return fmt.Errorf("phone patterns of %s: %w", code, err)
		}
		all = append(all, re)
	}
	c.extra.Store(&all)
	return nil
}

// The shortest phone that is shown in part, so that at least three digits
// stay hidden, and the longest that exists (E.164).
const (
	minMaskedPhone = 9
	maxPhone       = 15
)

// MaskPhone returns the phone as logs may show it: 242******567. What is not
// a phone of ordinary length is stars altogether.
func MaskPhone(phone string) string {
	n := len(phone)
	if n < minMaskedPhone || n > maxPhone || !allDigits(phone) {
		return strings.Repeat("*", min(n, maxPhone))
	}
	return phone[:3] + strings.Repeat("*", n-6) + phone[n-3:]
}
