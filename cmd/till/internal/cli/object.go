package cli

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"till"
)

// Object is an object of JSON, as names and values in turn, in the order in which they are
// printed. What is unset is null: a time, an id, an amount without currency, bytes, which are
// printed in hexadecimal. A list is never null. OrNull is for the rest.
type Object []any

// Objects are the objects of items.
func Objects[T any](items []T, object func(T) Object) []Object {
	out := make([]Object, len(items))
	for i, item := range items {
		out[i] = object(item)
	}
	return out
}

// With is an object with more members.
func (o Object) With(more ...any) Object { return append(o[:len(o):len(o)], more...) }

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	if len(o)%2 != 0 {
		return nil, errors.New("a member has no value")
	}
	var b bytes.Buffer
	for i := 0; i < len(o); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := PrintJSON(&b, o[i]); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := PrintJSON(&b, member(o[i+1])); err != nil {
			return nil, err
		}
	}
	return append(append([]byte{'{'}, b.Bytes()...), '}'), nil
}

// member is a value as it is printed in an object.
func member(v any) any {
	switch x := v.(type) {
	case json.RawMessage:
		return x
	case till.Money:
		if x.Currency == "" {
			return nil
		}
		return Object{"value", x.Value(), "currency", x.Currency}
	case till.ID:
		if x.IsZero() {
			return nil
		}
		return x.String()
	case till.Time:
		if x.IsZero() {
			return nil
		}
		return x.String()
	case []byte:
		if len(x) == 0 {
			return nil
		}
		return hex.EncodeToString(x)
	}
	if x, ok := v.(fmt.Stringer); ok {
		return x.String()
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Slice && r.IsNil() {
		return []any{}
	}
	return v
}

// OrNull is a value, nil if it is unset. Object prints nil as null, Table as "-".
func OrNull[T comparable](v T) any {
	var unset T
	if v == unset {
		return nil
	}
	return v
}
