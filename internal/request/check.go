package request

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"till"
)

// Validator collects all mistakes of a body.
type Validator struct {
	Fields    []till.FieldError
	BadNumber bool // an amount is missing or wrong
}

// Add adds a mistake.
func (c *Validator) Add(pointer string, code till.Code, detail string) {
	c.Fields = append(c.Fields, till.FieldError{Pointer: pointer, Code: code, Detail: detail})
}

// has reports whether a member has a mistake already.
func (c *Validator) has(pointer string) bool {
	return slices.ContainsFunc(c.Fields, func(f till.FieldError) bool { return f.Pointer == pointer })
}

// Refusal returns the error that lists the mistakes.
func (c *Validator) Refusal() *till.Error {
	return &till.Error{Code: till.CodeValidationFailed, Detail: "the body has mistakes; see errors", Fields: c.Fields}
}

// Text checks a member of 1 to max characters and returns it, "" if absent.
func (c *Validator) Text(pointer string, s *string, max int, required bool) string {
	switch {
	case s == nil:
		if required {
			c.Add(pointer, till.FieldRequired, "is required")
		}
		return ""
	case *s == "":
		c.Add(pointer, till.FieldInvalidFormat, "must not be empty; leave it out instead")
	case len(*s) > max && utf8.RuneCountInString(*s) > max:
		c.Add(pointer, till.FieldTooLong, "must have at most "+strconv.Itoa(max)+" characters")
	}
	return *s
}

// Minor checks an amount in minor units.
func (c *Validator) Minor(pointer string, s *string, required bool) (int64, bool) {
	if s == nil {
		if required {
			c.BadNumber = true
			c.Add(pointer, till.FieldRequired, "is required")
		}
		return 0, false
	}
	n, ok := till.ParseMinor(*s)
	if !ok {
		c.BadNumber = true
		c.Add(pointer, till.FieldInvalidFormat, "must be a whole number of minor units as a string of 1 to 15 digits without leading zeros, for example \"5000\"")
	}
	return n, ok
}

// letters reports whether s is exactly n capital letters.
func letters(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range n {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}
