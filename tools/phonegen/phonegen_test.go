package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"till"
)

func TestTheTableIsUpToDate(t *testing.T) {
	t.Parallel()
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../country_table.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("country_table.go differs from what the data gives; run go generate")
	}
}

func TestRegionsAreInOrder(t *testing.T) {
	t.Parallel()
	codes := strings.Fields(regions)
	if !slices.IsSorted(codes) || len(slices.Compact(slices.Clone(codes))) != len(codes) {
		t.Error("the look-up by code needs the regions sorted and each once")
	}
}

func TestTheServiceAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	metadata, err := metadataByRegion()
	if err != nil {
		t.Fatal(err)
	}
	for _, region := range strings.Fields(regions) {
		t.Run("numbers of "+region, func(t *testing.T) {
			t.Parallel()
			country, ok := till.CountryOf(region)
			if !ok {
				t.Fatalf("CountryOf(%q) finds nothing", region)
			}
			mobile := metadata[region].GetMobile()
			accepted, refused := 0, 0
			for national := range nationals(t, country, mobile.GetNationalNumberPattern()) {
				got, _ := till.CheckPhone(country, country.CallingCode+national)
				want := phonenumbers.MatchNationalNumber(national, mobile, false)
				if got != want {
					t.Fatalf("%s%s: the service says %v, the library %v", country.CallingCode, national, got, want)
				}
				if got {
					accepted++
				} else {
					refused++
				}
			}
			if accepted < 1000 || refused < 1000 {
				t.Errorf("%d accepted and %d refused: the numbers are too much alike", accepted, refused)
			}
		})
	}
}

// TestExamplesAreMobile reads the examples by the library's own reader, which
// knows the whole plan and not only its mobile part.
func TestExamplesAreMobile(t *testing.T) {
	t.Parallel()
	for _, region := range strings.Fields(regions) {
		country, _ := till.CountryOf(region)
		n, err := phonenumbers.Parse("+"+country.Example, region)
		if err != nil {
			t.Errorf("%s: %v", region, err)
			continue
		}
		typ := phonenumbers.GetNumberType(n)
		if typ != phonenumbers.MOBILE && typ != phonenumbers.FIXED_LINE_OR_MOBILE {
			t.Errorf("%s: %s is of type %d, not mobile", region, country.Example, typ)
		}
		if back := phonenumbers.Format(n, phonenumbers.E164); back != "+"+country.Example {
			t.Errorf("%s: %s comes back as %s", region, country.Example, back)
		}
	}
}

func TestTheMethodsAreUpToDate(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../../methods.csv")
	if err != nil {
		t.Fatal(err)
	}
	want, err := fillMethods(got)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("methods.csv differs from what the carriers' data gives; run go generate")
	}
}

// What is refused for its prefix is certain: the carriers' data says the same, and no number
// of the country is ported.
func TestOwnPrefixesAreCertain(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, m := range till.Methods() {
		for _, k := range m.Markets {
			country, _ := till.CountryOf(k.Country)
			if len(k.Prefixes) > 0 && country.Portable {
				t.Errorf("%s: numbers of %s are ported", m.Code, k.Country)
			}
			for _, p := range k.Prefixes {
				if !slices.Contains(k.Likely, p) {
					t.Errorf("%s: numbers of %s with %s are not given to its operator", m.Code, k.Country, p)
				}
				checked++
			}
		}
	}
	if checked == 0 {
		t.Error("no prefix was compared")
	}
}

// No number has two likely methods.
func TestALikelyPrefixHasOneMethod(t *testing.T) {
	t.Parallel()
	type at struct{ country, prefix string }
	methods := map[at]string{}
	for _, m := range till.Methods() {
		for _, k := range m.Markets {
			for _, p := range k.Likely {
				for n := range len(p) {
					if other := methods[at{k.Country, p[:n+1]}]; other != "" && other != m.Code {
						t.Errorf("%s in %s is likely %s and %s", p, k.Country, other, m.Code)
					}
				}
				methods[at{k.Country, p}] = m.Code
			}
		}
	}
}

// nationals yields national numbers of three kinds: every prefix of four
// digits filled up at random to each length of the country, and every seventh to one digit
// fewer or more; numbers that the pattern makes; and those with one digit changed.
func nationals(t *testing.T, country *till.Country, pattern string) func(yield func(string) bool) {
	t.Helper()
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	calling, _ := strconv.ParseUint(country.CallingCode, 10, 64)
	r := rand.New(rand.NewPCG(calling, 1))
	return func(yield func(string) bool) {
		for _, length := range lengthsAround(country) {
			step := 1
			if !slices.Contains(country.Lengths, len(country.CallingCode)+length) {
				step = 7
			}
			for prefix := 0; prefix < 10_000; prefix += step {
				n := fmt.Sprintf("%04d", prefix)
				for len(n) < length {
					n += string(digit(r))
				}
				if !yield(n[:length]) {
					return
				}
			}
		}
		for range 2000 {
			n := sample(r, parsed)
			changed := []byte(n)
			changed[r.IntN(len(changed))] = digit(r)
			if !yield(n) || !yield(string(changed)) || !yield(n+"0") || !yield(n[1:]) {
				return
			}
		}
	}
}

// lengthsAround returns the national lengths of the country and those one
// digit shorter or longer, each once.
func lengthsAround(country *till.Country) []int {
	var out []int
	for _, total := range country.Lengths {
		n := total - len(country.CallingCode)
		out = append(out, n-1, n, n+1)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func digit(r *rand.Rand) byte { return byte('0' + r.IntN(10)) }

// sample returns a text that the expression matches.
func sample(r *rand.Rand, re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return ""
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		pair := 2 * r.IntN(len(re.Rune)/2)
		low, high := re.Rune[pair], re.Rune[pair+1]
		return string(low + rune(r.IntN(int(high-low)+1)))
	case syntax.OpAlternate:
		return sample(r, re.Sub[r.IntN(len(re.Sub))])
	case syntax.OpConcat, syntax.OpCapture:
		var b strings.Builder
		for _, sub := range re.Sub {
			b.WriteString(sample(r, sub))
		}
		return b.String()
	case syntax.OpRepeat:
		var b strings.Builder
		for range re.Min + r.IntN(re.Max-re.Min+1) {
			b.WriteString(sample(r, re.Sub[0]))
		}
		return b.String()
	case syntax.OpQuest:
		if r.IntN(2) == 0 {
			return ""
		}
		return sample(r, re.Sub[0])
	}
	panic("a pattern holds " + re.Op.String())
}

// What is predicted is what the carriers' data says: of each range of each country, the method
// of its carrier, and none for a carrier whose customers have none of ours.
func TestPredictionAgreesWithTheCarriers(t *testing.T) {
	t.Parallel()
	methods, err := readCarriers()
	if err != nil {
		t.Fatal(err)
	}
	countries := map[string]bool{}
	for c := range methods {
		countries[c.country] = true
	}
	predicted, none := 0, 0
	for code := range countries {
		country, _ := till.CountryOf(code)
		ranges, err := carrierRanges(code)
		if err != nil {
			t.Fatal(err)
		}
		length := country.Lengths[len(country.Lengths)-1] - len(country.CallingCode)
		for prefix, name := range ranges {
			phone := country.CallingCode + (prefix + "1234567890")[:length]
			if ok, _ := till.CheckPhone(country, phone); !ok {
				continue // a range that is not in use
			}
			m, certain := country.PredictMethod(phone)
			got, want := "", methods[carrier{code, name}]
			if m != nil {
				got = m.Code
			}
			if want == "" && certain {
				continue // a range that an operator took over: TestOwnPrefixesAreCertain
			}
			if got != want {
				t.Errorf("%s of %s (%s) is predicted as %q, want %q", phone, name, code, got, want)
			}
			if want == "" {
				none++
			} else {
				predicted++
			}
		}
	}
	if predicted < 150 || none < 20 {
		t.Errorf("%d ranges have a method, %d have none", predicted, none)
	}
}
