package jsonx

import (
	"github.com/go-json-experiment/json/jsontext"
)

// AppendString appends s to b as a JSON string with the fewest escapes: '<' and
// U+2028 stay as they are, since we serve JSON, not script. The string s must
// be UTF-8; a byte that is not becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			b, _ = jsontext.AppendQuote(b, s) // its only error is the U+FFFD above
			return b
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// AppendStringOrNull is AppendString, with null for the empty string.
func AppendStringOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return AppendString(b, s)
}

// Depth returns how deep v nests: 0 for a plain value, 1 for an object or array
// of plain values. The value must be valid, as Decode leaves it.
func Depth(v jsontext.Value) int {
	depth, deepest := 0, 0
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"':
			end, _ := skipString(v, i)
			i = end - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// Members returns how many members the object v has, not counting those of
// objects inside it, and 0 if v is not an object. The value must be valid, as
// Decode leaves it.
func Members(v jsontext.Value) int {
	if !startsObject(v) {
		return 0
	}
	depth, n := 0, 0
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"':
			end, _ := skipString(v, i)
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ':':
			if depth == 1 {
				n++
			}
		}
	}
	return n
}
