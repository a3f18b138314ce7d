package till

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

func country(t testing.TB, code string) *Country {
	t.Helper()
	c, ok := CountryOf(code)
	if !ok {
		t.Fatalf("CountryOf(%q) finds nothing", code)
	}
	return c
}

// badCongolesePhones are texts that a lenient reader would take for the
// number 242061234567.
var badCongolesePhones = map[string]string{
	"a leading plus":                    "+242061234567",
	"a leading 00":                      "00242061234567",
	"a leading 0":                       "0242061234567",
	"spaces between the digits":         "242 06 123 45 67",
	"a space before":                    " 242061234567",
	"a space after":                     "242061234567 ",
	"a line feed after":                 "242061234567\n",
	"hyphens":                           "242-061234567",
	"brackets":                          "(242)061234567",
	"no country code":                   "061234567",
	"no country code, no zero":          "61234567",
	"the leading zero dropped":          "24261234567",
	"the leading zero replaced":         "242612345678",
	"13 digits":                         "2420612345678",
	"another country's code":            "237061234567",
	"letters":                           "24206123456a",
	"an exponent":                       "2420612345e7",
	"an extension":                      "242061234567x5",
	"a right-to-left mark before":       "\u200f242061234567",
	"a right-to-left mark after":        "242061234567\u200f",
	"a right-to-left override":          "\u202e242061234567",
	"marks that make twelve bytes":      "242061234\u200f",
	"a zero-width space":                "242061234\u200b567",
	"Arabic-Indic digits":               "٢٤٢٠٦١٢٣٤٥٦٧",
	"Arabic-Indic, twelve bytes":        "242061٢٤٢",
	"full-width digits":                 "２４２０６１２３４５６７",
	"a NUL in place of a digit":         "24206123456\x00",
	"invalid UTF-8":                     "24206123456\xff",
	"a fixed line":                      "242222123456",
	"nothing":                           "",
	"only the country code":             "242",
	"a URI":                             "tel:242061234567",
	"a very long text":                  strings.Repeat("242061234567", 1000),
	"twelve digits outside the mobiles": "242999999999",
}

func TestCheckPhoneRefuses(t *testing.T) {
	t.Parallel()
	const want = "digits only: 242 followed by 9 digits, for example 242061234567"
	for name, phone := range badCongolesePhones {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ok, hint := CheckPhone(country(t, "CG"), phone)
			if ok {
				t.Fatalf("CheckPhone(CG, %q) accepts", phone)
			}
			if hint != want {
				t.Errorf("hint %q, want %q", hint, want)
			}
		})
	}
}

func TestCheckPhoneAccepts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ country, phone string }{
		{"CG", "242061234567"}, {"CG", "242051234567"}, {"CG", "242041234567"}, {"CG", "242060000000"},
		{"CM", "237671234567"}, {"UG", "256712345678"}, {"GH", "233231234567"}, {"RW", "250720123456"},
		{"ZM", "260955123456"}, {"CI", "2250123456789"}, {"BJ", "2290195123456"}, {"KE", "254712123456"},
		{"MG", "261321234567"}, {"GA", "24174345678"}, {"GA", "24106031234"}, {"BF", "22607123456"},
	} {
		if ok, hint := CheckPhone(country(t, tt.country), tt.phone); !ok || hint != "" {
			t.Errorf("CheckPhone(%s, %s) = %v, %q", tt.country, tt.phone, ok, hint)
		}
	}
	for _, tt := range []struct{ country, phone string }{
		{"BJ", "22995123456"},    // the plan before 2024, without 01
		{"CI", "22507123456"},    // the plan before 2021, without the leading zero
		{"GA", "241074345678"},   // a zero too many
		{"KE", "2540712123456"},  // the trunk zero kept
		{"UG", "256312345678"},   // a fixed line
		{"CM", "237222123456"},   // a fixed line
		{"KE", "2547121234567"},  // a digit too many
		{"NG", "23480212345678"}, // a digit too many
	} {
		if ok, _ := CheckPhone(country(t, tt.country), tt.phone); ok {
			t.Errorf("CheckPhone(%s, %s) accepts", tt.country, tt.phone)
		}
	}
}

func TestPhoneRuleNamesEveryLength(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"BJ": "digits only: 229 followed by 10 digits, for example 2290195123456",
		"GA": "digits only: 241 followed by 7 or 8 digits, for example 24106031234",
		"SO": "digits only: 252 followed by 7, 8 or 9 digits, for example 25271123456",
	} {
		if got := country(t, code).PhoneRule(); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

var africa = strings.Fields("AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW " +
	"KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW")

func TestEveryCountryAcceptsItsExample(t *testing.T) {
	t.Parallel()
	for _, code := range africa {
		c := country(t, code)
		if c.Code != code {
			t.Errorf("CountryOf(%s) is %s", code, c.Code)
		}
		if ok, hint := CheckPhone(c, c.Example); !ok {
			t.Errorf("%s refuses its example: %s", code, hint)
		}
		if len(c.Lengths) == 0 || !slices.IsSorted(c.Lengths) {
			t.Errorf("%s has lengths %v", code, c.Lengths)
		}
	}
	if got := country(t, "CG").Lengths; !slices.Equal(got, []int{12}) {
		t.Errorf("Congo has lengths %v, want 12 only", got)
	}
	for _, code := range []string{"", "cg", "FR", "ZZ", "AA", "CGO", "242"} {
		if c, ok := CountryOf(code); ok {
			t.Errorf("CountryOf(%q) = %s", code, c.Code)
		}
	}
}

func TestEveryMarketHasACountry(t *testing.T) {
	t.Parallel()
	for _, m := range Methods() {
		for _, code := range m.Countries() {
			country(t, code)
		}
	}
}

func TestCountryByCallingCode(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, phone, among, want string }{
		{"the country of the phone", "242061234567", "CM CG UG", "CG"},
		{"a bad number still has its country", "2420", "CM CG UG", "CG"},
		{"a country that is not given", "254712123456", "CM CG UG", ""},
		{"a country that nobody knows", "254712123456", "XX YY", ""},
		{"none given", "242061234567", "", ""},
		{"no phone", "", "CM CG UG", ""},
		{"a leading plus is not a calling code", "+242061234567", "CG", ""},
		{"a two-digit calling code", "201001234567", "CG EG ZA", "EG"},
		{"of two with one calling code, the one whose number it is", "262639012345", "RE YT", "YT"},
		{"of two with one calling code and a bad number, the first", "2620", "RE YT", "RE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			c, ok := CountryByCallingCode(tt.phone, strings.Fields(tt.among))
			if ok {
				got = c.Code
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestExtendPhonePatterns(t *testing.T) {
	t.Parallel()
	// No other test asks about Saint Helena beyond its example.
	c := country(t, "SH")
	t.Cleanup(func() { c.extra.Store(nil) })
	accepts := func(phone string) bool { ok, _ := CheckPhone(c, phone); return ok }
	if accepts("29071234") {
		t.Fatal("the number is good before the pattern is added")
	}

	for _, bad := range [][]string{{`7\d{4}`, `(`}, {`7\d{4}`, ``}, {`7\d{4})|(?:1`}} {
		if err := ExtendPhonePatterns("SH", bad); err == nil {
			t.Errorf("patterns %q are taken", bad)
		}
	}
	if err := ExtendPhonePatterns("XX", []string{`7\d{4}`}); err == nil {
		t.Error("a country that nobody knows is extended")
	}
	if accepts("29071234") {
		t.Error("a refused list of patterns took effect")
	}

	for _, patterns := range [][]string{{`7\d{4}|.*`}, {`8\d`}} {
		if err := ExtendPhonePatterns("SH", patterns); err != nil {
			t.Fatal(err)
		}
	}
	if !accepts("29071234") || !accepts("29051234") {
		t.Error("an old or a new number is refused")
	}
	for _, phone := range []string{"2907123", "290712345", "2907123a", "29171234", "+2907123"} {
		if accepts(phone) {
			t.Errorf("%s passes although it breaks a hard rule", phone)
		}
	}
}

func TestMaskPhone(t *testing.T) {
	t.Parallel()
	for phone, want := range map[string]string{
		"242061234567":           "242******567",
		"2290195123456":          "229*******456",
		"123456789":              "123***789",
		"12345678":               "********",
		"242":                    "***",
		"":                       "",
		"+24206123456":           "************",
		"a name, not a phone":    "***************",
		strings.Repeat("1", 500): "***************",
	} {
		if got := MaskPhone(phone); got != want {
			t.Errorf("MaskPhone(%q) = %q, want %q", phone, got, want)
		}
	}
}

// poolsForget reports whether sync.Pool drops what it is given, as it does on
// purpose under the race detector. Package regexp keeps its state in one.
func poolsForget() bool {
	var pool sync.Pool
	for range 100 {
		pool.Put(new(int))
		if pool.Get() == nil {
			return true
		}
	}
	return false
}

func TestCheckingAPhoneDoesNotAllocate(t *testing.T) {
	if poolsForget() {
		t.Skip("the race detector makes regexp allocate")
	}
	c := country(t, "CG")
	allocs := testing.AllocsPerRun(100, func() {
		if ok, _ := CheckPhone(c, "242061234567"); !ok {
			t.Error("a good phone is refused")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want none", allocs)
	}
}

func FuzzPhone(f *testing.F) {
	for _, phone := range badCongolesePhones {
		f.Add("CG", phone)
	}
	for _, code := range africa {
		c, _ := CountryOf(code)
		f.Add(code, c.Example)
	}
	f.Fuzz(func(t *testing.T, code, phone string) {
		masked := MaskPhone(phone)
		if len(masked) > maxPhone || masked == phone && strings.Trim(phone, "*") != "" {
			t.Fatalf("MaskPhone(%q) = %q", phone, masked)
		}
		c, ok := CountryOf(code)
		if !ok {
			return
		}
		ok, hint := CheckPhone(c, phone)
		if ok == (hint != "") {
			t.Fatalf("CheckPhone(%s, %q) = %v with the hint %q", code, phone, ok, hint)
		}
		if !ok {
			if hint != c.PhoneRule() {
				t.Fatalf("the hint depends on the bad value: %q", hint)
			}
			return
		}
		if strings.Trim(phone, "0123456789") != "" || !strings.HasPrefix(phone, c.CallingCode) ||
			!slices.Contains(c.Lengths, len(phone)) {
			t.Fatalf("CheckPhone(%s, %q) accepts against a hard rule", code, phone)
		}
		if by, found := CountryByCallingCode(phone, []string{code}); !found || by != c {
			t.Fatalf("%q of %s has no country", phone, code)
		}
	})
}
