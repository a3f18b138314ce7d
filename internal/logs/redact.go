package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"till"
)

// New returns a logger that writes lines of text or of JSON to w and masks keys,
// secrets and phone numbers in all of them.
func New(w io.Writer, json bool, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if json {
		return slog.New(&redactor{next: slog.NewJSONHandler(w, o)})
	}
	return slog.New(&redactor{next: slog.NewTextHandler(w, o)})
}

// redactor is a handler that masks private data, at any depth. It is the last protection:
// code must not log such data in the first place.
type redactor struct {
	next     slog.Handler
	personal bool // inside a group about a person
}

// Enabled implements slog.Handler.
func (h *redactor) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// Handle implements slog.Handler.
func (h *redactor) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, Redact(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(redactAttr(a, h.personal))
		return true
	})
	return h.next.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (h *redactor) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &redactor{h.next.WithAttrs(redactAttrs(attrs, h.personal)), h.personal}
}

// WithGroup implements slog.Handler.
func (h *redactor) WithGroup(name string) slog.Handler {
	return &redactor{h.next.WithGroup(name), h.personal || isPersonal(name)}
}

func redactAttrs(attrs []slog.Attr, personal bool) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = redactAttr(a, personal)
	}
	return out
}

func redactAttr(a slog.Attr, personal bool) slog.Attr {
	personal = personal || isPersonal(a.Key)
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(redactAttrs(v.Group(), personal)...)}
	case slog.KindBool, slog.KindDuration, slog.KindTime:
		return slog.Attr{Key: a.Key, Value: v}
	case slog.KindString:
		return slog.String(a.Key, redact(v.String(), personal))
	case slog.KindAny:
		return slog.String(a.Key, redact(textOf(v.Any()), personal))
	}
	// A number stays a number unless it is personal.
	text := v.String()
	if clean := redact(text, personal); clean != text {
		return slog.String(a.Key, clean)
	}
	return slog.Attr{Key: a.Key, Value: v}
}

// textOf formats any value as it will be written, so that it can be masked.
func textOf(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case error:
		return x.Error()
	case fmt.Stringer:
		return x.String()
	case []byte:
		return string(x)
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.String { // a named string type; JSON would add quotes
		return r.String()
	}
	if b, err := json.Marshal(v); err == nil {
		return string(b)
	}
	return fmt.Sprintf("%+v", v)
}

// personalWords are found in the names of personal values.
var personalWords = []string{"phone", "msisdn", "customer", "payer", "payee", "recipient", "subscriber"}

func isPersonal(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc(personalWords, func(w string) bool { return strings.Contains(key, w) })
}

var (
	keyText     = regexp.MustCompile(`(?i)\btill_(live|test)_[0-9a-z_]{4,}`)
	webhookText = regexp.MustCompile(`(?i)\bwhsec_[0-9a-z+/=_-]{4,}`)
)

// Redact returns the text with API keys, webhook secrets and phone numbers masked. A phone
// number is a separate run of digits with the calling code and the length of some country's
// numbers.
func Redact(text string) string { return redact(text, false) }

// redact masks every long run of digits if the text is about a person.
func redact(text string, personal bool) string {
	if strings.Contains(text, "_") {
		text = keyText.ReplaceAllString(text, "till_${1}_***")
		text = webhookText.ReplaceAllString(text, "whsec_***")
	}
	return maskPhones(text, personal)
}

// The shortest and the longest phone number, in digits (E.164).
const (
	minPhone = 9
	maxPhone = 15
)

func maskPhones(text string, personal bool) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(text); {
		if !isDigit(text[i]) {
			i++
			continue
		}
		end := i
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		if isPhone(text, i, end, personal) {
			b.WriteString(text[done:i])
			b.WriteString(till.MaskPhone(text[i:end]))
			done = end
		}
		i = end
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// isPhone reports whether to mask the run of digits from i to end.
func isPhone(text string, i, end int, personal bool) bool {
	n := end - i
	switch {
	case n < minPhone:
		return false
	case isEndOfID(text, end):
		return false
	case personal:
		return true
	case n > maxPhone:
		return false
	case i > 0 && (isLetter(text[i-1]) || text[i-1] == '.'), end < len(text) && isLetter(text[end]):
		return false // part of a longer word: a hash, a fraction
	}
	for _, c := range countries() {
		if strings.HasPrefix(text[i:end], c.CallingCode) && slices.Contains(c.Lengths, n) {
			return true
		}
	}
	return false
}

// isEndOfID reports whether a UUID ends here: its last part may be all digits.
func isEndOfID(text string, end int) bool {
	if end < 36 {
		return false
	}
	_, err := till.ParseID(text[end-36 : end])
	return err == nil
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

// countries lists every country whose numbers are known.
var countries = sync.OnceValue(func() []*till.Country {
	var out []*till.Country
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			if c, ok := till.CountryOf(string([]rune{a, b})); ok {
				out = append(out, c)
			}
		}
	}
	return out
})
