package escape

import (
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns a text that stays on its line and shows all that it contains. It escapes
// control characters, line and paragraph separators, direction and zero-width characters,
// and bytes that are not UTF-8.
func Text(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return string(appendText(make([]byte, 0, len(s)+16), s))
		}
	}
	return s
}

func appendText(b []byte, s string) []byte {
	for _, r := range s { // a byte that is no UTF-8 is U+FFFD here
		b = appendRune(b, r)
	}
	return b
}

func appendRune(b []byte, r rune) []byte {
	switch {
	case r == '\n':
		return append(b, `\n`...)
	case r == '\t':
		return append(b, `\t`...)
	case r == '\r':
		return append(b, `\r`...)
	case isVisible(r):
		return utf8.AppendRune(b, r)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(b, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(b, `\u%04x`, r)
}

// isVisible reports whether a character is visible as itself: a letter, mark, number, sign
// or space that readers do not ignore.
func isVisible(r rune) bool {
	return r != utf8.RuneError && unicode.IsGraphic(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Writer writes to another writer and lets through only what Text does, new lines and tabs.
// It is safe for concurrent use.
type Writer struct {
	mu      sync.Mutex
	w       io.Writer
	pending []byte // the beginning of an incomplete character
	out     []byte
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Raw returns the underlying writer, for what the program itself draws.
func (e *Writer) Raw() io.Writer { return e.w }

// Write implements io.Writer.
func (e *Writer) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.pending) == 0 && isPlain(p) {
		return e.w.Write(p)
	}
	b := append(e.pending, p...)
	e.out = e.out[:0]
	for len(b) > 0 {
		if !utf8.FullRune(b) || b[0] == '\r' && len(b) == 1 {
			break
		}
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '\n' || r == '\t' || r == '\r' && b[1] == '\n':
			e.out = append(e.out, byte(r))
		default:
			e.out = appendRune(e.out, r)
		}
		b = b[n:]
	}
	e.pending = append([]byte(nil), b...)
	if _, err := e.w.Write(e.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes an incomplete character.
func (e *Writer) Flush() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := appendText(nil, string(e.pending))
	e.pending = nil
	if len(out) == 0 {
		return nil
	}
	_, err := e.w.Write(out)
	return err
}

func isPlain(p []byte) bool {
	for _, c := range p {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}
