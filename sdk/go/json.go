package till

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Timestamp is a moment as the service writes it, RFC 3339 in UTC with six
// decimals. It stays a text, so that it can be sent back exactly as it came.
type Timestamp string

// Time returns the moment; the zero time if the text is none.
func (t Timestamp) Time() time.Time {
	at, err := time.Parse(time.RFC3339Nano, string(t))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// At returns a moment as the service reads it.
func At(t time.Time) Timestamp {
	return Timestamp(t.UTC().Format("2006-01-02T15:04:05.000000Z"))
}

// Decimal is a number by its own digits, as a quantity: "1.5". Eighteen digits
// do not fit a float.
type Decimal string

var decimalForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// MarshalJSON writes the digits as a JSON number.
func (d Decimal) MarshalJSON() ([]byte, error) {
	if !decimalForm.MatchString(string(d)) {
		return nil, errors.New("till: a decimal has digits and at most one point")
	}
	return []byte(d), nil
}

// UnmarshalJSON keeps the digits of a JSON number.
func (d *Decimal) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*d = Decimal(n)
	return nil
}

// Value returns what a nullable member points to, the zero value for null.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Ptr returns a pointer to v, for members that may be absent.
func Ptr[T any](v T) *T { return &v }

// keep returns a copy of an object as it came, nil for null.
func keep(b []byte) json.RawMessage {
	if string(b) == "null" {
		return nil
	}
	return bytes.Clone(b)
}

// merge writes an object with the members of raw that its type does not know.
func merge(known any, raw json.RawMessage) ([]byte, error) {
	b, err := json.Marshal(known)
	if err != nil || len(raw) == 0 {
		return b, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	for _, name := range memberNames(reflect.TypeOf(known)) {
		delete(all, name)
	}
	if len(all) == 0 {
		return b, nil
	}
	extra, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	if string(b) == "{}" {
		return extra, nil
	}
	return slices.Concat(b[:len(b)-1], []byte(","), extra[1:]), nil
}

// memberNames are the names that a struct has on the wire.
func memberNames(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			names = append(names, name)
		}
	}
	return names
}
