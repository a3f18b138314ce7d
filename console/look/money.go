package look

import (
	"strconv"
	"strings"

	"till"
)

// The languages that people are served in.
const (
	English = "en"
	French  = "fr"
)

// Spaces that do not break: the narrow one groups digits in French, the other
// is between a number and its unit.
const (
	narrowSpace = "\u202f"
	wideSpace   = "\u00a0"
	minusSign   = "\u2212"
)

// marks returns what groups digits and what begins decimals.
func marks(lang string) (group, decimal string) {
	if lang == French {
		return narrowSpace, ","
	}
	return ",", "."
}

// Count returns a whole number with its digits in groups of three.
func Count(lang string, n int64) string {
	group, _ := marks(lang)
	sign, digits := "", strconv.FormatInt(n, 10)
	if n < 0 {
		sign, digits = minusSign, digits[1:]
	}
	return sign + grouped(digits, group)
}

func grouped(digits, group string) string {
	first := len(digits) % 3
	var b strings.Builder
	b.WriteString(digits[:first])
	for i := first; i < len(digits); i += 3 {
		if i > 0 {
			b.WriteString(group)
		}
		b.WriteString(digits[i : i+3])
	}
	return b.String()
}

// Amount returns an amount without its currency: 1,250.50 or 5 000. A currency
// that we do not know is shown in its minor units.
func Amount(lang string, m till.Money) string {
	decimals, _ := till.CurrencyDecimals(m.Currency)
	if decimals == 0 {
		return Count(lang, m.Minor)
	}
	group, point := marks(lang)
	sign, digits := "", strconv.FormatInt(m.Minor, 10)
	if m.Minor < 0 {
		sign, digits = minusSign, digits[1:]
	}
	if len(digits) <= decimals {
		digits = strings.Repeat("0", decimals+1-len(digits)) + digits
	}
	whole, part := digits[:len(digits)-decimals], digits[len(digits)-decimals:]
	if strings.Trim(part, "0") == "" {
		return sign + grouped(whole, group)
	}
	return sign + grouped(whole, group) + point + part
}

// Money returns an amount with its currency behind it: 5,000 XAF.
func Money(lang string, m till.Money) string { return Amount(lang, m) + wideSpace + m.Currency }

// MoneyInUse is Money as people on the street write it, for receipts and
// phones: both CFA francs are FCFA there.
func MoneyInUse(lang string, m till.Money) string {
	if m.Currency == "XAF" || m.Currency == "XOF" {
		return Amount(lang, m) + wideSpace + "FCFA"
	}
	return Money(lang, m)
}

// Percent returns the share of a part in hundredths, rounded down, as people
// read it: 61 %. A whole of 0 has no share.
func Percent(part, whole int64) string {
	if whole <= 0 {
		return "\u2014"
	}
	return strconv.FormatInt(percent(part, whole), 10) + wideSpace + "%"
}

// percent divides without leaving int64: a sum of money times 100 might.
func percent(part, whole int64) int64 {
	if part > (1<<63-1)/100 {
		return part / (whole / 100)
	}
	return part * 100 / whole
}

// ParseAmount reads an amount as people type it into minor units: digits in
// groups or not, and one decimal mark where the currency has decimals. "1,50" is
// never 150, and what could be read in two ways is not read.
func ParseAmount(text, currency string) (int64, bool) {
	decimals, known := till.CurrencyDecimals(currency)
	if !known {
		return 0, false
	}
	text = strings.Map(func(r rune) rune {
		if r == ' ' || r == '\u00a0' || r == '\u202f' || r == '\'' {
			return -1
		}
		return r
	}, strings.TrimSpace(text))
	whole, part := text, ""
	if i := strings.LastIndexAny(text, ".,"); i >= 0 && len(text)-i-1 != 3 {
		whole, part = text[:i], text[i+1:]
		if len(part) == 0 || len(part) > decimals {
			return 0, false
		}
	} else if i >= 0 && decimals == 3 {
		return 0, false // 1.250 dinars, or 1 250?
	}
	whole, ok := ungroup(whole)
	if !ok {
		return 0, false
	}
	return till.ParseMinor(strings.TrimLeft(whole+part+strings.Repeat("0", decimals-len(part)), "0"))
}

// ungroup removes marks that part groups of three.
func ungroup(s string) (string, bool) {
	mark := strings.IndexAny(s, ".,")
	if mark < 0 {
		return s, s != ""
	}
	groups := strings.Split(s, s[mark:mark+1])
	if len(groups[0]) == 0 || len(groups[0]) > 3 {
		return "", false
	}
	for _, g := range groups[1:] {
		if len(g) != 3 {
			return "", false
		}
	}
	joined := strings.Join(groups, "")
	return joined, !strings.ContainsAny(joined, ".,")
}
