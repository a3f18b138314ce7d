package jsonx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error says where a document breaks the rules, and which one. It holds no
// value of the document.
type Error struct {
	Pointer string   // a plain JSON pointer, "/amount/value"; "" is the whole document
	Detail  string   // one short sentence
	Line    int      // where the text is not JSON, from 1; 0 if it is
	Column  int      // in characters, from 1
	Others  []*Error // further values of the wrong type
}

// Error returns the pointer and the sentence in one line.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Sentence()
	}
	return e.Pointer + ": " + e.Sentence()
}

// Sentence returns the detail, and the place in a text that is not JSON.
func (e *Error) Sentence() string {
	if e.Line == 0 {
		return e.Detail
	}
	return fmt.Sprintf("%s Line %d, column %d.", e.Detail, e.Line, e.Column)
}

// The details. They are fixed texts so that no part of the input can enter.
const (
	detailSyntax    = "The text is not valid JSON here."
	detailEnd       = "The text ends too early."
	detailTrailing  = "Something follows the JSON object."
	detailEmpty     = "A JSON object is expected, the text is empty."
	detailObject    = "The text must be a JSON object."
	detailBOM       = "The text must not start with a byte order mark."
	detailUTF8      = "The text is not valid UTF-8."
	detailSurrogate = "The string holds half of a surrogate pair."
	detailNUL       = "The string must not hold a NUL character."
	detailDuplicate = "The object has two members of this name."
	detailType      = "The value does not have the expected form."
	detailRange     = "The number is out of range or of the wrong form."
)

var detailDepth = fmt.Sprintf("The value is nested too deep; at most %d levels are read.", maxDepth)

// syntaxError returns the error of text that is not JSON.
func syntaxError(data []byte, err *jsontext.SyntacticError) *Error {
	before := data[:min(max(err.ByteOffset, 0), int64(len(data)))]
	e := newError(err.JSONPointer, syntaxDetail(data, err))
	e.Line = 1 + bytes.Count(before, []byte("\n"))
	e.Column = 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
	return e
}

// syntaxDetail chooses the sentence for text that is not JSON.
func syntaxDetail(data []byte, err *jsontext.SyntacticError) string {
	rest := data[min(max(err.ByteOffset, 0), int64(len(data))):]
	switch {
	case errors.Is(err.Err, jsontext.ErrDuplicateName):
		return detailDuplicate
	case errors.Is(err.Err, io.ErrUnexpectedEOF):
		return detailEnd
	case startsBadRune(rest):
		return detailUTF8
	case startsSurrogate(rest):
		return detailSurrogate
	case bytes.HasPrefix(rest, []byte{0}):
		return detailNUL
	case err.JSONPointer == "" && jsontext.Value(data[:len(data)-len(rest)]).IsValid():
		return detailTrailing
	}
	return detailSyntax
}

func startsBadRune(b []byte) bool {
	r, size := utf8.DecodeRune(b)
	return r == utf8.RuneError && size == 1
}

func startsSurrogate(b []byte) bool {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return err == nil && 0xd800 <= n && n <= 0xdfff
}

// typeDetail chooses the sentence for JSON of the wrong type.
func typeDetail(err *json.SemanticError) string {
	if errors.Is(err.Err, strconv.ErrRange) || errors.Is(err.Err, strconv.ErrSyntax) {
		return detailRange
	}

	// Any other cause comes from a type that reads itself, so its kind in Go
	// says nothing about the JSON it wants.
	if err.GoType == nil || err.Err != nil {
		return detailType
	}
	t := err.GoType
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(textUnmarshaler) {
		return "The value must be a string."
	}
	switch t.Kind() {
	case reflect.String:
		return "The value must be a string."
	case reflect.Bool:
		return "The value must be true or false."
	case reflect.Struct, reflect.Map:
		return "The value must be an object."
	case reflect.Slice, reflect.Array:
		return "The value must be an array."
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return "The value must be a number."
	}
	return detailType
}

// maxPointer bounds the part of an answer that the sender of a body can choose.
const maxPointer = 200

func newError(p jsontext.Pointer, detail string) *Error {
	return &Error{Pointer: safePointer(string(p)), Detail: detail}
}

// maxDigits is how many digits a name in a pointer may have. An index has
// fewer; a name with more may be somebody's phone number, which no answer repeats.
const maxDigits = 5

func digits(name string) (n int) {
	for _, r := range name {
		if unicode.IsNumber(r) {
			n++
		}
	}
	return n
}

// safePointer returns p up to the first name that is not fit to be shown, or up
// to the last name that keeps it within maxPointer. It cuts only between names,
// so that what is left still points at something in the document.
func safePointer(p string) string {
	end := 0
	for end < len(p) {
		next := end + 1
		if i := strings.IndexByte(p[next:], '/'); i >= 0 {
			next += i
		} else {
			next = len(p)
		}
		if next > maxPointer || !printable(p[end:next]) || digits(p[end:next]) > maxDigits {
			break
		}
		end = next
	}
	return strings.Clone(p[:end])
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) ||
			unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
	}) < 0
}
