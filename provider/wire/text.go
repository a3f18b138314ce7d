package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text is a member that operators send as a string or as a number: its text,
// "" if it is null or absent.
type Text string

// UnmarshalJSON accepts a string, a number, a boolean or null.
func (t *Text) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || bytes.Equal(b, []byte("null")):
		*t = ""
		return nil
	case b[0] == '"' && len(b) > 1 && bytes.IndexByte(b, '\\') < 0:
		// The decoder has checked the bytes, and there are no escapes.
		*t = Text(b[1 : len(b)-1])
		return nil
	case b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*t = Text(s)
		return nil
	case b[0] == '{' || b[0] == '[':
		return fmt.Errorf("a text was expected")
	}
	*t = Text(b)
	return nil
}

// Decode decodes an operator's JSON. It is lenient about what is harmless (unknown members,
// order). It is strict about the rest: the whole body must be one object or one array, of
// valid UTF-8.
func Decode(body []byte, v any) error {
	b := bytes.TrimSpace(body)
	if len(b) == 0 || b[0] != '{' && b[0] != '[' {
		return fmt.Errorf("the answer is not JSON")
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("the answer is not UTF-8")
	}
	err := json.Unmarshal(b, v)
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		// The error's own text quotes numbers, and a number may be a phone number.
		value, _, _ := strings.Cut(typed.Value, " ")
		return fmt.Errorf("the answer has a %s and not a %s in %q", value, typed.Type, typed.Field)
	}
	return err
}

// ParseMinor parses a decimal text as minor units of a currency with the given number of
// decimals: "100.00" is 100 of a currency without decimals. It reports false if the text is
// no amount, or one that the currency cannot express.
func ParseMinor(text string, decimals int) (int64, bool) {
	whole, part, _ := strings.Cut(strings.TrimSpace(text), ".")
	for len(part) > decimals && strings.HasSuffix(part, "0") {
		part = part[:len(part)-1]
	}
	if len(part) > decimals || whole == "" || len(whole) > 15 {
		return 0, false
	}
	digits := whole + part + strings.Repeat("0", decimals-len(part))
	var n int64
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' || n > (1<<62)/10 {
			return 0, false
		}
		n = n*10 + int64(digits[i]-'0')
	}
	return n, true
}

// FormatMinor formats minor units in the shortest form, which every operator accepts:
// "1000", "10.5".
func FormatMinor(minor int64, decimals int) string {
	s := fmt.Sprintf("%0*d", decimals+1, minor)
	if decimals == 0 {
		return s
	}
	whole, part := s[:len(s)-decimals], strings.TrimRight(s[len(s)-decimals:], "0")
	if part == "" {
		return whole
	}
	return whole + "." + part
}

// Truncate returns at most n characters of an operator's text.
func Truncate(s string, n int) string {
	s = strings.ToValidUTF8(s, "")
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
