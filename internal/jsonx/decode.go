package jsonx

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxBody is the most bytes a body may have. Decode does not check it: the
// reader of the body must stop there, before the memory is spent.
const MaxBody = 64 << 10

// maxDepth is how deep objects and arrays may nest; the outermost object is
// depth 1.
const maxDepth = 8

// Decode reads data, which must be exactly one JSON object, into v, a pointer
// to a struct or map. Null leaves a pointer nil, as if the member were absent; a
// jsontext.Value then holds the text null, and any other field its zero value.
// Every failure is an *Error, and v is then half filled and must not be used.
func Decode(data []byte, v any) error {
	if !startsObject(data) {
		return notAnObject(data)
	}
	if !scan(data) {
		return locate(data)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return mistakes(data, v, explain(data, err))
	}
	return nil
}

// startsObject reports whether the first byte that is not white space opens an
// object. It keeps null from Unmarshal, which would take it for any type.
func startsObject(data []byte) bool {
	for _, c := range data {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '{'
		}
	}
	return false
}

// scan reports whether data keeps the two rules that Unmarshal does not know:
// at most MaxDepth levels, and no escaped NUL. (A raw NUL is no valid JSON
// anywhere.) On text that is not JSON its answer means nothing, which is safe:
// Unmarshal refuses that text anyway.
func scan(data []byte) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			end, clean := skipString(data, i)
			if !clean {
				return false
			}
			i = end - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return false
			}
		case '}', ']':
			depth--
		}
	}
	return true
}

// skipString returns the index after the string that opens at data[start], or
// len(data) if it does not end, and whether it is free of an escaped NUL.
func skipString(data []byte, start int) (end int, clean bool) {
	for i := start + 1; i < len(data); i++ {
		c := data[i]
		if c == '"' {
			return i + 1, true
		}
		if c == '\\' {
			return skipEscaped(data, i)
		}
	}
	return len(data), true
}

// skipEscaped is skipString from the first backslash on.
func skipEscaped(data []byte, start int) (end int, clean bool) {
	clean = true
	for i := start; i < len(data); i++ {
		switch data[i] {
		case '"':
			return i + 1, clean
		case '\\':
			// Stepping over the escaped byte is what distinguishes "\\u0000", a
			// backslash and five letters, from "\u0000".
			if bytes.HasPrefix(data[i:], []byte(`\u0000`)) {
				clean = false
			}
			i++
		}
	}
	return len(data), clean
}

// locate finds what scan refused. It reads token by token, which is slow but
// knows the pointer, and stops at the first mistake of any kind.
func locate(data []byte) *Error {
	d := jsontext.NewDecoder(bytes.NewBuffer(data))
	for {
		tok, err := d.ReadToken()
		if err != nil {
			return explain(data, err)
		}
		switch tok.Kind() {
		case '{', '[':
			if d.StackDepth() > maxDepth {
				return newError(d.StackPointer(), detailDepth)
			}
		case '"':
			if strings.Contains(tok.String(), "\x00") {
				return newError(d.StackPointer(), detailNUL)
			}
		}
	}
}

// explain turns an error of the JSON library into ours. Nothing of its text is
// kept, because that text quotes the input.
func explain(data []byte, err error) *Error {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &syntactic):
		return syntaxError(data, syntactic)
	case errors.As(err, &semantic):
		return newError(semantic.JSONPointer, typeDetail(semantic))
	}
	return newError("", detailSyntax)
}

// notAnObject says why data cannot be an object at all.
func notAnObject(data []byte) *Error {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return newError("", detailBOM)
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return newError("", detailUTF8)
	case len(bytes.TrimSpace(data)) == 0:
		return newError("", detailEmpty)
	}
	return newError("", detailObject)
}
