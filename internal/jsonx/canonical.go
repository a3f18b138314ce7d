package jsonx

import (
	"bytes"
	"math/big"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical appends to dst a form of v that is equal for equal values and
// different for different ones. Values are equal when they differ only in white
// space, in the order of members, in members that are null, in how a string is
// escaped, or in how a number is written (1e3, 1000 and 1000.0). No value at
// all counts as null.
//
// The form is for comparing and hashing, not for reading as JSON. Every value
// begins with its type, and ends itself:
//
//	n t f            null, true, false
//	d-15e3;  d0;     a number: sign, digits without outer zeros, power of ten
//	s5:hello         a string: bytes and their count
//	a…]              an array
//	o…}              an object: a string and a value for each member, by name
//
// An error means that v is not valid JSON or deeper than MaxDepth; dst is then
// returned as it was.
func Canonical(dst []byte, v jsontext.Value) ([]byte, error) {
	if len(v) == 0 {
		return append(dst, 'n'), nil
	}
	// Depth first: each level reads its members twice, so depth costs time.
	if Depth(v) > maxDepth {
		return dst, &Error{Detail: detailDepth}
	}
	if !v.IsValid() {
		return dst, &Error{Detail: detailSyntax}
	}
	text := trim(v)
	return appendValue(dst, text[:skipValue(text)]), nil
}

// appendValue appends the form of v, which is valid and trimmed.
func appendValue(dst, v []byte) []byte {
	switch v[0] {
	case 'n', 't', 'f':
		return append(dst, v[0])
	case '"':
		return appendString(dst, unquote(v))
	case '{':
		return appendObject(dst, v)
	case '[':
		dst = append(dst, 'a')
		for v = trim(v[1:]); v[0] != ']'; {
			end := skipValue(v)
			dst = appendValue(dst, v[:end])
			v = skipComma(v[end:])
		}
		return append(dst, ']')
	}
	return appendNumber(dst, v)
}

func appendString(dst, s []byte) []byte {
	dst = append(dst, 's')
	dst = strconv.AppendInt(dst, int64(len(s)), 10)
	dst = append(dst, ':')
	return append(dst, s...)
}

type member struct{ name, value []byte }

func appendObject(dst, v []byte) []byte {
	var few [16]member // most objects need no allocation
	members := few[:0]
	for v = trim(v[1:]); v[0] != '}'; {
		end, _ := skipString(v, 0)
		name := unquote(v[:end])
		v = trim(trim(v[end:])[1:]) // the colon
		end = skipValue(v)
		if v[0] != 'n' {
			members = append(members, member{name, v[:end]})
		}
		v = skipComma(v[end:])
	}

	// The order of UTF-8 bytes is the order of code points.
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	dst = append(dst, 'o')
	for _, m := range members {
		dst = appendString(dst, m.name)
		dst = appendValue(dst, m.value)
	}
	return append(dst, '}')
}

// appendNumber appends the form of a number. It works on the text: the exponent
// is never carried out, so 1e1000000000 costs no more than its twelve bytes.
func appendNumber(dst, v []byte) []byte {
	mantissa, exponent := v, []byte(nil)
	if i := bytes.IndexAny(v, "eE"); i >= 0 {
		mantissa, exponent = v[:i], v[i+1:]
	}
	negative := mantissa[0] == '-'
	if negative {
		mantissa = mantissa[1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))

	// Outer zeros move into the power of ten. What is left of a fraction alone
	// may begin with zeros too: 0.05 is 5e-2.
	fraction = bytes.TrimRight(fraction, "0")
	power := -int64(len(fraction))
	if len(fraction) == 0 {
		n := len(whole)
		whole = bytes.TrimRight(whole, "0")
		power = int64(n - len(whole))
	}
	if whole = bytes.TrimLeft(whole, "0"); len(whole) == 0 {
		fraction = bytes.TrimLeft(fraction, "0")
	}
	if len(whole)+len(fraction) == 0 {
		return append(dst, "d0;"...) // also -0 and 0e999
	}

	dst = append(dst, 'd')
	if negative {
		dst = append(dst, '-')
	}
	dst = append(dst, whole...)
	dst = append(dst, fraction...)
	dst = append(dst, 'e')
	return append(appendSum(dst, exponent, power), ';')
}

// appendSum appends the decimal sum of an exponent as written and n.
func appendSum(dst, exponent []byte, n int64) []byte {
	if len(exponent) <= 18 { // fits, whatever its digits are
		e, _ := strconv.ParseInt(string(exponent), 10, 64) // "" gives 0
		return strconv.AppendInt(dst, e+n, 10)
	}
	e, _ := new(big.Int).SetString(string(exponent), 10)
	return e.Add(e, big.NewInt(n)).Append(dst, 10)
}

// unquote returns the characters of a string literal, within it if nothing in
// it is escaped.
func unquote(v []byte) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	s, _ := jsontext.AppendUnquote(nil, v) // the literal is known to be valid
	return s
}

// skipValue returns the index after the value that v begins with.
func skipValue(v []byte) int {
	depth := 0
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"':
			end, _ := skipString(v, i)
			if depth == 0 {
				return end
			}
			i = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			// A closing bracket ends the value it closes, or the plain value
			// that is last inside it.
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(v)
}

// skipComma returns what follows a member or element: the next, or the bracket.
func skipComma(v []byte) []byte {
	if v = trim(v); v[0] == ',' {
		v = trim(v[1:])
	}
	return v
}

func trim(v []byte) []byte {
	for len(v) > 0 && (v[0] == ' ' || v[0] == '\t' || v[0] == '\r' || v[0] == '\n') {
		v = v[1:]
	}
	return v
}
