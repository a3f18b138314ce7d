package cli

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"till"
	"till/books"
	"till/internal/escape"
)

// Digest writes the SHA-256 of evidence, "" if there is none.
func Digest(sum []byte) string {
	if len(sum) == 0 {
		return ""
	}
	return "sha256:" + hex.EncodeToString(sum)
}

// TimeOrNull is a time in JSON, null if it is unset.
func TimeOrNull(t till.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.String()
	return &s
}

// TimeOr is a time as text, or a word if it is unset.
func TimeOr(t till.Time, unset string) string {
	if t.IsZero() {
		return unset
	}
	return t.String()
}

// TextOrNull is a text in JSON, null if it is empty.
func TextOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// PlainCell makes other people's text safe on a terminal and in a spreadsheet,
// which would run a formula.
func PlainCell(s string) string { return books.Guard(escape.Text(s)) }

func TimeText(t till.Time) string { return TimeOr(t, "") }

func Minor(n int64) string { return strconv.FormatInt(n, 10) }

// Major returns an amount in units of its currency, with a point.
func Major(n int64, currency string) string {
	decimals, _ := till.CurrencyDecimals(currency)
	sign, digits := "", strconv.FormatInt(n, 10)
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	if decimals == 0 {
		return sign + digits
	}
	if len(digits) <= decimals {
		digits = strings.Repeat("0", decimals+1-len(digits)) + digits
	}
	return sign + digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
}

// IsPlainLine reports whether a text is 1 to longest printable characters.
func IsPlainLine(text string, longest int) bool {
	n := utf8.RuneCountInString(text)
	return 0 < n && n <= longest && utf8.ValidString(text) && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

type Money struct {
	Value    string `json:"value"`
	Currency string `json:"currency"`
}

func MoneyOrNull(m till.Money) *Money {
	if m.Currency == "" {
		return nil
	}
	return &Money{m.Value(), m.Currency}
}

// OrDash is a cell of a table, "-" if it is empty.
func OrDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// IDOrNull is an id in JSON, null if it is unset.
func IDOrNull(id till.ID) *string {
	if id.IsZero() {
		return nil
	}
	s := id.String()
	return &s
}
