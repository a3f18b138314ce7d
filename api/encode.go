package api

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"till"
)

// Payments, payouts, events and the statement are encoded by hand, because they are asked
// for all the time. All other answers are structs, which answer encodes alike.

var encoding = json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.WithMarshalers(json.JoinMarshalers(
	json.MarshalToFunc(func(e *jsontext.Encoder, t till.Time) error { return e.WriteValue(t.AppendJSON(nil)) }),
	json.MarshalToFunc(func(e *jsontext.Encoder, id till.ID) error { return e.WriteValue(id.AppendJSON(nil)) }),
)))

// answer writes a struct as JSON.
func (c *exchange) answer(status int, v any) error {
	b := bytes.NewBuffer(c.buffer())
	if err := json.MarshalWrite(b, v, encoding); err != nil {
		return err
	}
	return c.json(status, b.Bytes())
}

// list is an answer of items.
type list[T any] struct {
	Items []T `json:"items"`
}

// listOf returns the list of what one makes of each item.
func listOf[A, T any](items []A, one func(A) T) list[T] { return list[T]{each(items, one)} }

func each[A, T any](items []A, one func(A) T) (out []T) {
	for _, item := range items {
		out = append(out, one(item))
	}
	return out
}

// orNull returns nil, which is null, for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// appendItems appends {"items":[…] and leaves the object open.
func appendItems[T any](b []byte, items []T, one func(b []byte, item T) []byte) []byte {
	b = append(b, `{"items":[`...)
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, item)
	}
	return append(b, ']')
}

// appendPage ends the object of appendItems with the members of a page.
func appendPage(b []byte, total int64, limit, offset int) []byte {
	b = append(b, `,"total":`...)
	b = strconv.AppendInt(b, total, 10)
	b = append(b, `,"limit":`...)
	b = strconv.AppendInt(b, int64(limit), 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, int64(offset), 10)
	return append(b, '}')
}
