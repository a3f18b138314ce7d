package api

import (
	"strconv"

	"till"
	"till/internal/jsonx"
)

// The answers are encoded by hand: the frequent ones for speed, the others for uniformity.

// appendMinor appends an amount as the API does: a string of digits.
func appendMinor(b []byte, n int64) []byte {
	b = append(b, '"')
	b = strconv.AppendInt(b, n, 10)
	return append(b, '"')
}

func appendMoney(b []byte, m till.Money) []byte {
	b = append(b, `{"value":`...)
	b = appendMinor(b, m.Minor)
	b = append(b, `,"currency":`...)
	b = jsonx.AppendString(b, m.Currency)
	return append(b, '}')
}

// appendItems appends {"items":[…] and leaves the object open.
func appendItems[T any](b []byte, items []T, one func(b []byte, item T) []byte) []byte {
	return appendArray(append(b, `{"items":`...), items, one)
}

// appendArray appends items as a JSON array.
func appendArray[T any](b []byte, items []T, one func(b []byte, item T) []byte) []byte {
	b = append(b, '[')
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
