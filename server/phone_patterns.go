package server

import (
	"context"
	"fmt"
	"strings"

	"till"
)

// newerPhoneRanges are mobile ranges that libphonenumber has added since the release of our
// country table (9.0.32; these are of 9.0.37). A number that a newer table accepts must not
// be rejected meanwhile.
var newerPhoneRanges = map[string]string{
	"CM": `(?:24[23]|6(?:[25-9]\d|4[0-2]))\d{6}`,
	"KE": `(?:1(?:0[0-8]|[18]\d|2[014]|30|4[0-5])|7\d\d)\d{6}`,
	"MW": `(?:2[12]|31|77|[89][89])\d{7}|111\d{6}`,
	"MZ": `8[2-9]\d{7}`,
	"TG": `(?:7[0-389]|9[0-36-9])\d{6}`,
	"TZ": `(?:6[1-35-9]|7\d)\d{7}`,
	"UG": `7(?:[014-8]\d|2[01467]|3[0167]|9[0-589])\d{6}|7(?:28|34)0\d{5}`,
	"ZW": `7(?:[1278]\d|3[1-9]|9[01])\d{6}`,
}

// extendPhonePatterns adds the ranges that are newer than the table, and those that the
// configuration gives as COUNTRY=PATTERN.
func (s *Server) extendPhonePatterns(context.Context) error {
	for country, pattern := range newerPhoneRanges {
		if err := till.ExtendPhonePatterns(country, []string{pattern}); err != nil {
			return err
		}
	}
	for _, p := range s.c.PhonePatterns {
		country, pattern, ok := strings.Cut(p, "=")
		if !ok {
			return fmt.Errorf("a phone pattern must look like CG=06\\d{7}: the country and a pattern of the national number")
		}
		if err := till.ExtendPhonePatterns(country, []string{pattern}); err != nil {
			return err
		}
	}
	return nil
}
