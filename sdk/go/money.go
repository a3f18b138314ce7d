package till

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Money is an amount in minor units of its currency, as a text: "5000" is 5 000
// francs of XAF, which has no decimals, and 50 shillings of KES, which has two.
// It is never a float.
type Money struct {
	Value    string `json:"value"`
	Currency string `json:"currency"`
}

// maxMoneyDigits bounds what arithmetic reads and makes.
const maxMoneyDigits = 38

// Mistakes with money.
var (
	ErrBadAmount       = errors.New("till: an amount is digits in minor units, as \"5000\"")
	ErrBadCurrency     = errors.New("till: no currency that is known here")
	ErrOtherCurrency   = errors.New("till: the currencies differ")
	ErrTooManyDecimals = errors.New("till: more decimals than the currency has")
	ErrNotExact        = errors.New("till: the result is not whole minor units")
	ErrNegative        = errors.New("till: the result is less than nothing")
)

// Minor is an amount in minor units. It is checked where it is used; see Check.
func Minor(value, currency string) Money { return Money{value, currency} }

// Major reads an amount in units of the currency: "50.00" of KES is "5000".
func Major(amount, currency string) (Money, error) {
	places, ok := decimals[currency]
	if !ok {
		return Money{}, ErrBadCurrency
	}
	whole, fraction, point := strings.Cut(amount, ".")
	if whole == "" || point && fraction == "" || !digits(whole) || !digits(fraction) || len(whole) > 1 && whole[0] == '0' || len(whole) > maxMoneyDigits {
		return Money{}, ErrBadAmount
	}
	if len(fraction) > places {
		return Money{}, ErrTooManyDecimals
	}
	value := strings.TrimLeft(whole+fraction+strings.Repeat("0", places-len(fraction)), "0")
	if value == "" {
		value = "0"
	}
	return Money{value, currency}, nil
}

// Check returns an error unless m is an amount of a currency.
func (m Money) Check() error {
	_, err := m.minor()
	return err
}

func (m Money) minor() (*big.Int, error) {
	if m.Value == "" || !digits(m.Value) || len(m.Value) > maxMoneyDigits || len(m.Value) > 1 && m.Value[0] == '0' {
		return nil, ErrBadAmount
	}
	if len(m.Currency) != 3 || strings.Trim(m.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return nil, ErrBadCurrency
	}
	n, _ := new(big.Int).SetString(m.Value, 10)
	return n, nil
}

// String is the amount for logs, as "50.00 KES"; in minor units if the currency is not known.
// See Format for people.
func (m Money) String() string {
	text, err := m.Major()
	if err != nil {
		return m.Value + " minor units of " + m.Currency
	}
	return text + " " + m.Currency
}

// both reads two amounts of one currency.
func (m Money) both(other Money) (a, b *big.Int, err error) {
	if a, err = m.minor(); err == nil {
		b, err = other.minor()
	}
	if err == nil && m.Currency != other.Currency {
		err = ErrOtherCurrency
	}
	return a, b, err
}

// result is an amount of m's currency.
func (m Money) result(n *big.Int) (Money, error) {
	switch {
	case n.Sign() < 0:
		return Money{}, ErrNegative
	case len(n.String()) > maxMoneyDigits:
		return Money{}, ErrBadAmount
	}
	return Money{n.String(), m.Currency}, nil
}

// Add returns the sum.
func (m Money) Add(other Money) (Money, error) {
	a, b, err := m.both(other)
	if err != nil {
		return Money{}, err
	}
	return m.result(a.Add(a, b))
}

// Subtract returns the difference, which is not negative.
func (m Money) Subtract(other Money) (Money, error) {
	a, b, err := m.both(other)
	if err != nil {
		return Money{}, err
	}
	return m.result(a.Sub(a, b))
}

// Compare returns -1, 0 or 1.
func (m Money) Compare(other Money) (int, error) {
	a, b, err := m.both(other)
	if err != nil {
		return 0, err
	}
	return a.Cmp(b), nil
}

// Times multiplies by a decimal, as "1.5". The result is exact, or an error.
func (m Money) Times(factor Decimal) (Money, error) {
	n, err := m.minor()
	if err != nil {
		return Money{}, err
	}
	if !decimalForm.MatchString(string(factor)) || len(factor) > maxMoneyDigits {
		return Money{}, ErrBadAmount
	}
	f, _ := new(big.Rat).SetString(string(factor))
	product := f.Mul(f, new(big.Rat).SetInt(n))
	if !product.IsInt() {
		return Money{}, ErrNotExact
	}
	return m.result(new(big.Int).Set(product.Num()))
}

// maxParts bounds Split.
const maxParts = 10_000

// Split divides into parts that add up; the first ones have what is left over.
func (m Money) Split(parts int) ([]Money, error) {
	n, err := m.minor()
	if err != nil {
		return nil, err
	}
	if parts < 1 || parts > maxParts {
		return nil, fmt.Errorf("till: a split has 1 to %d parts", maxParts)
	}
	each, rest := new(big.Int).QuoRem(n, big.NewInt(int64(parts)), new(big.Int))
	out := make([]Money, parts)
	for i := range out {
		part := new(big.Int).Set(each)
		if int64(i) < rest.Int64() {
			part.Add(part, big.NewInt(1))
		}
		out[i] = Money{part.String(), m.Currency}
	}
	return out, nil
}

// Major returns the amount in units of the currency: "50.00".
func (m Money) Major() (string, error) {
	if err := m.Check(); err != nil {
		return "", err
	}
	places, ok := decimals[m.Currency]
	if !ok {
		return "", ErrBadCurrency
	}
	text := m.Value
	if places == 0 {
		return text, nil
	}
	if missing := places + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	return text[:len(text)-places] + "." + text[len(text)-places:], nil
}

// Format writes the amount for people: "5 000 XAF" in "fr", with the narrow
// spaces of French, "XAF 5,000" in every other language.
func (m Money) Format(language string) (string, error) {
	text, err := m.Major()
	if err != nil {
		return "", err
	}
	whole, fraction, _ := strings.Cut(text, ".")
	group, point, french := ",", ".", language == "fr" || strings.HasPrefix(language, "fr-")
	if french {
		group, point = "\u202f", ","
	}
	var b strings.Builder
	for i, r := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteString(group)
		}
		b.WriteRune(r)
	}
	if fraction != "" {
		b.WriteString(point + fraction)
	}
	if french {
		return b.String() + "\u00a0" + m.Currency, nil
	}
	return m.Currency + "\u00a0" + b.String(), nil
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }
