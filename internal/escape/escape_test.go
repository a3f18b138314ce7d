package escape

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"
)

func TestTextStaysOnItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"ORDER-1":                   "ORDER-1",
		"Épicerie 茶 10\u00a0000 F":  "Épicerie 茶 10\u00a0000 F",
		"a\nb\r\nc\td":              `a\nb\r\nc\td`,
		"\x1b[2Jgone\x07\x7f":       `\u001b[2Jgone\u0007\u007f`,
		"\u009b31m\u0085":           `\u009b31m\u0085`,
		"\u202e005\u202c":           `\u202e005\u202c`,
		"\u2066a\u2069\u200e":       `\u2066a\u2069\u200e`,
		"a\u200b\u200d\ufeff\u00ad": `a\u200b\u200d\ufeff\u00ad`,
		"a\u2028b\u2029":            `a\u2028b\u2029`,
		"\u3164\u115f\u034f\ufe0f":  `\u3164\u115f\u034f\ufe0f`,
		"\U000e0041":                `\udb40\udc41`,
		"\xff\x9b31m":               `\ufffd\ufffd31m`,
		`back\slash`:                `back\slash`,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// TestAWriterLetsNothingThrough writes in all sorts of pieces: characters come
// apart at the borders of buffers.
func TestAWriterLetsNothingThrough(t *testing.T) {
	const text = "é\r\nline\t2\x1b[2J \u202e茶\U000e0041\u2028\r\xff end\u200b\n"
	const want = "é\r\nline\t2\\u001b[2J \\u202e茶\\udb40\\udc41\\u2028\\r\\ufffd end\\u200b\n"
	for size := 1; size <= len(text); size++ {
		var out bytes.Buffer
		w := NewWriter(&out)
		for b := []byte(text); len(b) > 0; b = b[min(size, len(b)):] {
			n := min(size, len(b))
			if wrote, err := w.Write(b[:n]); wrote != n || err != nil {
				t.Fatal(wrote, err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("in pieces of %d it is %q", size, out.String())
		}
	}
	w := NewWriter(iotest.TruncateWriter(&bytes.Buffer{}, 100))
	w.Write([]byte("half \xe2\x80"))
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
}

func FuzzJSONStaysWhatItWas(f *testing.F) {
	f.Add("ORDER-1\u202e\n\x1b\u2028\U000e0041\xff")
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		w := NewWriter(&out)
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		if err := e.Encode(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != strings.ToValidUTF8(text, "\ufffd") && utf8.ValidString(text) {
			t.Errorf("%q is %q, %v", text, back, err)
		}
		for _, r := range strings.TrimSuffix(out.String(), "\n") {
			if !isVisible(r) || unicode.Is(unicode.Cf, r) || unicode.IsControl(r) {
				t.Errorf("%q has %q in it", out.String(), r)
			}
		}
	})
}
