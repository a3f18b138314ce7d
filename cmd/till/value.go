package main

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

// digest writes the SHA-256 of evidence, "" if there is none.
func digest(sum []byte) string {
	if len(sum) == 0 {
		return ""
	}
	return "sha256:" + hex.EncodeToString(sum)
}

// timeOrNull is a time in JSON, null if it is unset.
func timeOrNull(t till.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.String()
	return &s
}

// timeOr is a time as text, or a word if it is unset.
func timeOr(t till.Time, unset string) string {
	if t.IsZero() {
		return unset
	}
	return t.String()
}

// textOrNull is a text in JSON, null if it is empty.
func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// plainCell makes other people's text safe on a terminal and in a spreadsheet,
// which would run a formula.
func plainCell(s string) string { return books.Guard(escape.Text(s)) }

func timeText(t till.Time) string { return timeOr(t, "") }

func minor(n int64) string { return strconv.FormatInt(n, 10) }

// major returns an amount in units of its currency, with a point.
func major(n int64, currency string) string {
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

// isPlainLine reports whether a text is 1 to longest printable characters.
func isPlainLine(text string, longest int) bool {
	n := utf8.RuneCountInString(text)
	return 0 < n && n <= longest && utf8.ValidString(text) && strings.TrimSpace(text) == text &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

type moneyJSON struct {
	Value    string `json:"value"`
	Currency string `json:"currency"`
}

func moneyOrNull(m till.Money) *moneyJSON {
	if m.Currency == "" {
		return nil
	}
	return &moneyJSON{m.Value(), m.Currency}
}

// orDash is a cell of a table, "-" if it is empty.
func orDash(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// idOrNull is an id in JSON, null if it is unset.
func idOrNull(id till.ID) *string {
	if id.IsZero() {
		return nil
	}
	s := id.String()
	return &s
}
