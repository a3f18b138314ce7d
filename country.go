package till

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

//go:generate go -C tools run ./phonegen

// Country is what the service knows about the mobile numbers of a country or
// territory. The table is generated from the data of libphonenumber; see
// country_table.go.
type Country struct {
	Code        string // ISO 3166-1 alpha-2
	CallingCode string
	Lengths     []int  // digits of a mobile number, calling code included, ascending
	Example     string // a mobile number, calling code included
	Portable    bool   // a number may have moved to another operator; that it is not set proves nothing

	// pattern matches a whole national number. Most countries are never asked
	// about in one process, so it is compiled when first needed.
	pattern  string
	once     sync.Once
	compiled *regexp.Regexp

	// extra are the national patterns that the configuration added.
	extra atomic.Pointer[[]*regexp.Regexp]
}

// CountryOf returns the country with the ISO 3166-1 alpha-2 code.
func CountryOf(code string) (*Country, bool) {
	i, found := slices.BinarySearchFunc(countryTable, code, func(c *Country, code string) int {
		return cmp.Compare(c.Code, code)
	})
	if !found {
		return nil, false
	}
	return countryTable[i], true
}

// CountryByCallingCode returns the country, among those with the given ISO
// codes, whose calling code the phone begins with. No calling code begins
// another, but a few territories share one (RE and YT): then it is the first
// for which the phone is good, or the first of all if it is good for none.
func CountryByCallingCode(phone string, among []string) (*Country, bool) {
	var first *Country
	for _, code := range among {
		c, ok := CountryOf(code)
		if !ok || !strings.HasPrefix(phone, c.CallingCode) {
			continue
		}
		if c.accepts(phone) {
			return c, true
		}
		if first == nil {
			first = c
		}
	}
	return first, first != nil
}

// accepts reports whether the phone is a mobile number of the country. The
// first three rules are hard; only the pattern can be extended.
func (c *Country) accepts(phone string) bool {
	if !slices.Contains(c.Lengths, len(phone)) || !strings.HasPrefix(phone, c.CallingCode) {
		return false
	}
	if !allDigits(phone) {
		return false
	}
	national := phone[len(c.CallingCode):]
	c.once.Do(func() { c.compiled = regexp.MustCompile(anchored(c.pattern)) })
	if c.compiled.MatchString(national) {
		return true
	}
	if extra := c.extra.Load(); extra != nil {
		for _, re := range *extra {
			if re.MatchString(national) {
				return true
			}
		}
	}
	return false
}

// anchored makes a pattern match the whole text, whatever alternatives it has.
func anchored(pattern string) string { return "^(?:" + pattern + ")$" }

// allDigits reports whether s is ASCII digits only. unicode.IsDigit would let
// digits of other scripts through, which no operator understands.
func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
