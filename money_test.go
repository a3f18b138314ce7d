package till_test

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"till"
)

// hostileNumbers are texts that some number reader somewhere accepts and that
// are neither amounts nor quantities.
var hostileNumbers = []string{
	"", " ", "1e3", "1E3", `"1e3"`, "007", "00", "+5", "-0", "-5", "5.", ".5", " 5", "5 ", "5\n", "\t5",
	"0x10", "0b1", "0o7", "1_000", "1,000", "1.000,00", "١٢٣", "１２３", "5\u200b", "\u200b5", "\u200e5",
	"\ufeff5", "5\x00", "\xff", "\u22125", "1" + strings.Repeat("0", 400), "NaN", "Infinity", "Inf", "nil",
	"null", "true", "1E400", "1e1000000000", "1e-7", "0.0.1", "1..5", "½", "²",
}

func TestParseMinor(t *testing.T) {
	t.Parallel()
	good := map[string]int64{
		"0": 0, "1": 1, "5": 5, "10": 10, "5000": 5000,
		"100000000000000": 100_000_000_000_000,
		"999999999999999": till.MaxMinor,
	}
	for s, want := range good {
		if got, ok := till.ParseMinor(s); !ok || got != want {
			t.Errorf("ParseMinor(%q) = %d, %v, want %d", s, got, ok, want)
		}
	}
	bad := append([]string{"5.0", "0.5", "0.30000000000000004", "1000000000000000", "9223372036854775808"},
		hostileNumbers...)
	for _, s := range bad {
		if got, ok := till.ParseMinor(s); ok || got != 0 {
			t.Errorf("ParseMinor(%q) = %d, %v, want a refusal", s, got, ok)
		}
	}
}

func TestMoneyIsWrittenInMinorUnits(t *testing.T) {
	t.Parallel()
	if got := (till.Money{Minor: 5000, Currency: "XAF"}).Value(); got != "5000" {
		t.Errorf("Value() = %q, want 5000", got)
	}
	if !(till.Money{}).IsZero() {
		t.Error("unset money is not zero")
	}
	if (till.Money{Currency: "XAF"}).IsZero() {
		t.Error("0 XAF counts as unset")
	}
}

func TestCurrencyDecimals(t *testing.T) {
	t.Parallel()
	for want, codes := range map[int]string{
		0: "XAF XOF UGX RWF GNF BIF KMF DJF",
		2: "KES GHS ZMW MGA MRU SLE ZWG TZS CDF NGN MWK MZN ETB LRD LSL SZL ZAR BWP NAD AOA GMD " +
			"SCR SSP SDG SOS CVE STN EGP MAD DZD ERN MUR SHP USD EUR GBP",
		3: "TND LYD",
	} {
		for _, code := range strings.Fields(codes) {
			if got, ok := till.CurrencyDecimals(code); !ok || got != want {
				t.Errorf("CurrencyDecimals(%s) = %d, %v, want %d", code, got, ok, want)
			}
		}
	}
	for _, code := range []string{"", "xaf", "XAF ", "XXX", "SLL", "ZWL", "FCFA", "XAFX"} {
		if got, ok := till.CurrencyDecimals(code); ok {
			t.Errorf("CurrencyDecimals(%q) = %d, want a refusal", code, got)
		}
	}
}

func TestParseQuantity(t *testing.T) {
	t.Parallel()
	good := []string{
		"1", "2", "10", "1.5", "0.5", "0.000001", "1.50", "1.000000", "5.0",
		"999999999999", "999999999999.999999", "100000000000.000001",
	}
	for _, s := range good {
		if _, ok := till.ParseQuantity(s); !ok {
			t.Errorf("ParseQuantity(%q) is refused", s)
		}
	}
	bad := append([]string{
		"0", "0.0", "0.000000", "01", "00.5", "-1", "-1.5", "+1", "1.", "1.5e0", "1e0",
		"1000000000000", "1.0000000", "0.0000001", "1.-5", "1.+5", "1. 5",
	}, hostileNumbers...)
	for _, s := range bad {
		if _, ok := till.ParseQuantity(s); ok {
			t.Errorf("ParseQuantity(%q) is accepted", s)
		}
	}
}

func TestQuantitiesOfOneValueAreEqual(t *testing.T) {
	t.Parallel()
	quantity := func(s string) till.Quantity {
		q, ok := till.ParseQuantity(s)
		if !ok {
			t.Fatalf("ParseQuantity(%q) is refused", s)
		}
		return q
	}
	for _, pair := range [][2]string{{"1.5", "1.50"}, {"2", "2.000000"}, {"10", "10.0"}, {"0.1", "0.100000"}} {
		if quantity(pair[0]) != quantity(pair[1]) {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{{"1", "10"}, {"0.1", "0.01"}, {"1.5", "15"}} {
		if quantity(pair[0]) == quantity(pair[1]) {
			t.Errorf("%s and %s are equal", pair[0], pair[1])
		}
	}
}

func TestQuantityGives(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		quantity     string
		price, total int64
		want         bool
	}{
		{"one and a half times 2000 is 3000", "1.5", 2000, 3000, true},
		{"one more is not exact", "1.5", 2000, 3001, false},
		{"one less is not exact", "1.5", 2000, 2999, false},
		{"a tenth of three is not a whole unit", "0.1", 3, 0, false},
		{"three tenths, where floats go wrong", "0.3", 10, 3, true},
		{"a third has no exact literal", "0.333333", 3, 1, false},
		{"half a unit is not rounded up", "0.5", 1, 1, false},
		{"half a unit is not rounded down", "0.5", 1, 0, false},
		{"a free item", "7", 0, 0, true},
		{"a free item with a total", "7", 0, 7, false},
		{"the smallest quantity", "0.000001", 1_000_000, 1, true},
		{"the largest amount", "1", till.MaxMinor, till.MaxMinor, true},
		{"a product of 2^64 does not wrap to 0", "65536", 1 << 48, 0, false},
		{"a product beyond 64 bits does not wrap", "999999999999", till.MaxMinor, 1, false},
		{"a product beyond 128 bits cannot be", "999999999999.999999", math.MaxInt64, math.MaxInt64, false},
		{"a scaled total beyond 64 bits", "0.5", math.MaxInt64 - 1, math.MaxInt64 / 2, true},
		{"a negative price", "1", -5, -5, false},
		{"a negative total", "1", 5, -5, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q, ok := till.ParseQuantity(tt.quantity)
			if !ok {
				t.Fatalf("ParseQuantity(%q) is refused", tt.quantity)
			}
			if got := q.Gives(tt.price, tt.total); got != tt.want {
				t.Errorf("%s times %d gives %d: %v, want %v", tt.quantity, tt.price, tt.total, got, tt.want)
			}
		})
	}
}

func TestArithmeticDoesNotAllocate(t *testing.T) {
	allocs := testing.AllocsPerRun(100, func() {
		n, _ := till.ParseMinor("3000")
		q, _ := till.ParseQuantity("1.500")
		if !q.Gives(2000, n) {
			t.Error("1.5 times 2000 is not 3000")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

var (
	minorGrammar    = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`)
	quantityGrammar = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})(\.[0-9]{1,6})?$`)
)

func FuzzAmount(f *testing.F) {
	edges := []string{"0", "5000", "5.0", "999999999999999", "1000000000000000"}
	for _, s := range append(edges, hostileNumbers...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := till.ParseMinor(s)
		if ok != minorGrammar.MatchString(s) {
			t.Fatalf("ParseMinor(%q) = %v, the grammar says otherwise", s, ok)
		}
		if !ok {
			return
		}
		if n < 0 || n > till.MaxMinor {
			t.Fatalf("ParseMinor(%q) = %d is out of bounds", s, n)
		}
		if back := (till.Money{Minor: n, Currency: "XAF"}).Value(); back != s {
			t.Fatalf("%q comes back as %q", s, back)
		}
	})
}

func FuzzQuantity(f *testing.F) {
	edges := []string{"1", "0", "1.5", "5.0", "0.1", "0.000001", "999999999999.999999"}
	for _, s := range append(edges, hostileNumbers...) {
		f.Add(s, int64(2000), int64(3000))
	}
	f.Add("0.1", int64(3), int64(0))
	f.Add("65536", int64(1)<<48, int64(0))
	f.Add("0.5", int64(math.MaxInt64-1), int64(math.MaxInt64/2))
	f.Fuzz(func(t *testing.T, s string, price, total int64) {
		q, ok := till.ParseQuantity(s)
		positive := strings.ContainsAny(s, "123456789")
		if want := quantityGrammar.MatchString(s) && positive; ok != want {
			t.Fatalf("ParseQuantity(%q) = %v, the grammar says %v", s, ok, want)
		}
		if !ok {
			return
		}
		price, total = amountOf(price), amountOf(total)
		if got, want := q.Gives(price, total), ratGives(t, s, price, total); got != want {
			t.Fatalf("%s times %d gives %d: %v, want %v", s, price, total, got, want)
		}
		// A random total is almost never right; try the right one too.
		if exact, ok := ratProduct(t, s, price); ok && !q.Gives(price, exact) {
			t.Fatalf("%s times %d does not give %d", s, price, exact)
		}
	})
}

// amountOf makes any integer an amount.
func amountOf(n int64) int64 {
	if n < 0 {
		n = -(n + 1)
	}
	return n
}

func ratGives(t testing.TB, quantity string, price, total int64) bool {
	t.Helper()
	return rat(t, quantity, price).Cmp(new(big.Rat).SetInt64(total)) == 0
}

// ratProduct returns quantity times price if that is an amount.
func ratProduct(t testing.TB, quantity string, price int64) (int64, bool) {
	t.Helper()
	r := rat(t, quantity, price)
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

func rat(t testing.TB, quantity string, price int64) *big.Rat {
	t.Helper()
	q, ok := new(big.Rat).SetString(quantity)
	p, ok2 := new(big.Rat).SetString(strconv.FormatInt(price, 10))
	if !ok || !ok2 {
		t.Fatalf("big.Rat does not read %q or %d", quantity, price)
	}
	return q.Mul(q, p)
}
