package api

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"till"
	"till/internal/jsonx"
)

// decodeKnown is decode, and returns the mistakes of members that nobody knows. A live
// client has none of these: its body is taken, and the header says what was ignored. So
// a typing mistake is found on the laptop, and nothing live breaks.
func (c *exchange) decodeKnown(v any) ([]till.FieldError, error) {
	if len(c.body()) == 0 {
		return nil, nil
	}
	unknown, err := jsonx.DecodeKnown(c.body(), v)
	var e *jsonx.Error
	if errors.As(err, &e) {
		refused := malformed(e.Pointer, e.Sentence())
		for _, o := range e.Others {
			refused.Fields = append(refused.Fields, malformed(o.Pointer, o.Sentence()).Fields...)
		}
		return nil, refused
	}
	if err != nil || unknown == nil {
		return nil, err
	}
	mode := c.session.Client.Mode
	c.s.Meter.UnknownMembers(string(mode), len(unknown))
	c.Header()["Till-Warning"] = []string{warningOf(unknown)}
	if mode == till.Live {
		return nil, nil
	}
	return each(unknown, func(u jsonx.Unknown) till.FieldError {
		detail := "is not a member of this object"
		if u.Hidden {
			detail = "has an unknown member, whose name is not repeated here"
		}
		if u.Nearest != "" {
			detail += `; did you mean "` + u.Nearest + `"?`
		}
		return till.FieldError{Pointer: u.Pointer, Code: till.FieldUnknownMember, Detail: detail}
	}), nil
}

// maxWarned is how many members a header names: proxies limit headers.
const maxWarned = 5

// warningOf returns the value of the header Till-Warning. Pointers are percent-encoded,
// as in the fragment of a URI.
func warningOf(unknown []jsonx.Unknown) string {
	var words []string
	for _, u := range unknown[:min(len(unknown), maxWarned)] {
		word := (&url.URL{Path: u.Pointer}).EscapedPath()
		if word == "" {
			word = "/"
		}
		if u.Nearest != "" {
			word += " (" + u.Nearest + "?)"
		}
		words = append(words, word)
	}
	if n := len(unknown) - maxWarned; n > 0 {
		words = append(words, "and "+strconv.Itoa(n)+" more")
	}
	return "unknown_member: " + strings.Join(words, ", ")
}
