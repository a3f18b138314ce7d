package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"till"
)

// The limits of methods.
const (
	maxMethods    = 100
	maxMarkets    = 200
	maxPrefixes   = 100
	maxMethodName = 64
)

var (
	validMethod = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
	validPrefix = regexp.MustCompile(`^[0-9]{1,8}$`)
)

// methods reads the methods that the file adds or changes.
func (r *reader) methods(tables []map[string]any) {
	r.catalogue = till.Methods()
	for i, t := range tables {
		if m := r.method(fmt.Sprintf("method[%d]", i), t); m != nil {
			r.file.Methods = append(r.file.Methods, m)
			r.catalogue = till.MergeMethods(r.catalogue, []*till.Method{m})
		}
	}
}

// methodOf returns a method, with the file's changes.
func (r *reader) methodOf(code string) *till.Method {
	for _, m := range r.catalogue {
		if m.Code == code {
			return m
		}
	}
	return nil
}

// countryTable is a country of a method, with the names of GET /payment-methods.
type countryTable struct {
	Code     string   `toml:"code"`
	Currency string   `toml:"currency"`
	Name     string   `toml:"name"`
	Min      *int64   `toml:"min_amount"`
	Max      *int64   `toml:"max_amount"`
	Step     *int64   `toml:"amount_step"`
	Prefixes []string `toml:"prefixes"`
}

func (r *reader) method(at string, table map[string]any) *till.Method {
	var t struct {
		Code      string         `toml:"code"`
		Name      string         `toml:"name"`
		Countries []countryTable `toml:"country"`
	}
	before := len(r.problems)
	r.decode(table, at, &t)
	if len(r.problems) > before {
		return nil
	}
	old := r.methodOf(t.Code)
	switch {
	case !validMethod.MatchString(t.Code):
		r.problem(r.lines.line(at+".code"), "code: at most 40 small letters, digits and _, and a letter first")
	case old == nil && t.Name == "":
		r.problem(r.lines.line(at), "the method %s is new and needs a name, which people read", t.Code)
	case old == nil && len(t.Countries) == 0:
		r.problem(r.lines.line(at), "the method %s is new and needs its countries: [[method.country]]", t.Code)
	case !isDisplayName(t.Name):
		r.problem(r.lines.line(at+".name"), wrongName, maxMethodName)
	case len(t.Countries) > maxMarkets:
		r.problem(r.lines.line(at), "there are more than %d countries", maxMarkets)
	}
	m := &till.Method{Code: t.Code, Name: t.Name, CountryScoped: true, RequiredCustomerFields: []string{"phone"}}
	for i := range t.Countries {
		in := fmt.Sprintf("%s.country[%d]", at, i)
		k, ok := r.market(in, old, &t.Countries[i])
		if _, twice := m.Market(k.Country, k.Currency); ok && twice {
			r.problem(r.lines.line(in), "%s with %s stands here twice", k.Country, k.Currency)
		}
		m.Markets = append(m.Markets, k)
	}
	if len(r.problems) > before {
		return nil
	}
	return m
}

const wrongName = "name: at most %d characters on one line"

func isDisplayName(name string) bool {
	return utf8.RuneCountInString(name) <= maxMethodName && utf8.ValidString(name) && !strings.ContainsFunc(name, func(c rune) bool { return c < ' ' })
}

// market reads a country of a method. A missing value is that of the table of methods, or
// the default.
func (r *reader) market(at string, old *till.Method, t *countryTable) (k till.Market, ok bool) {
	before := len(r.problems)
	if _, known := till.CountryOf(t.Code); !known {
		r.problem(r.lines.line(at+".code"), "code: %q is not a country that is known, such as \"CG\"", t.Code)
	}
	k, known := till.NewMarket(t.Code, t.Currency)
	if !known {
		r.problem(r.lines.line(at+".currency"), "currency: %q is not known", t.Currency)
	}
	if old != nil {
		if was, ok := old.Market(t.Code, t.Currency); ok {
			k = *was
		}
	}
	for _, n := range []struct {
		to   *int64
		from *int64
	}{{&k.Min, t.Min}, {&k.Max, t.Max}, {&k.Step, t.Step}} {
		if n.from != nil {
			*n.to = *n.from
		}
	}
	if k.Min < 1 || k.Max < k.Min || k.Max > till.MaxMinor || k.Step < 1 || k.Step > k.Max {
		r.problem(r.lines.line(at), "amounts are in minor units: min_amount is at least 1, max_amount no less, and amount_step from 1 to it")
	}
	if t.Name != "" {
		k.Local = t.Name
	}
	if !isDisplayName(t.Name) {
		r.problem(r.lines.line(at+".name"), wrongName, maxMethodName)
	}
	if t.Prefixes != nil {
		k.Prefixes = t.Prefixes
	}
	if len(k.Prefixes) > maxPrefixes {
		r.problem(r.lines.line(at+".prefixes"), "there are more than %d prefixes", maxPrefixes)
	}
	for _, p := range t.Prefixes {
		if !validPrefix.MatchString(p) {
			r.problem(r.lines.line(at+".prefixes"), "prefixes: %q is not how national numbers begin, as \"06\"", p)
		}
	}
	return k, len(r.problems) == before
}

// Methods reads only the methods of a file, for commands that need no operator and no
// credentials.
func Methods(path string) ([]*till.Method, error) {
	f, err := load(path, Options{}, (*reader).readMethods)
	if err != nil {
		return nil, err
	}
	return f.Methods, nil
}
