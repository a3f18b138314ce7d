package reconcile

import (
	"strings"
	"testing"
	"time"

	"till"
)

func mustLayout(tb testing.TB, m Mapping) *layout {
	tb.Helper()
	l, err := m.layout()
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func TestParseAmount(t *testing.T) {
	t.Parallel()
	plain, french, minor := Mapping{}, Mapping{DecimalMark: ",", Thousands: "\u202f"}, Mapping{AmountUnit: "minor"}
	english, german := Mapping{Thousands: ","}, Mapping{DecimalMark: ",", Thousands: "."}
	for _, c := range []struct {
		mapping  Mapping
		text     string
		decimals int
		minor    int64 // negative: the text is below zero
		err      error
	}{
		{plain, "5000", 0, 5000, nil}, {plain, "5000.00", 0, 5000, nil}, {plain, " 5000 ", 0, 5000, nil}, {plain, "+5000", 0, 5000, nil},
		{plain, "-5000", 0, -5000, nil}, {plain, "0005", 0, 5, nil}, {plain, "50", 2, 5000, nil}, {plain, "50.5", 2, 5050, nil},
		{plain, "50.05", 2, 5005, nil}, {plain, "0.05", 2, 5, nil}, {plain, "1.0000", 2, 100, nil}, {plain, "0", 2, 0, nil}, {plain, "0.00", 0, 0, nil},
		{plain, "999999999999999", 0, till.MaxMinor, nil}, {plain, "9999999999999.99", 2, till.MaxMinor, nil},
		{plain, "1000000000000000", 0, 0, errTooLarge}, {plain, "10000000000000.00", 2, 0, errTooLarge}, {plain, strings.Repeat("9", 400), 0, 0, errTooLarge},
		{plain, "5000.50", 0, 0, errDecimals}, {plain, "1.005", 2, 0, errDecimals},
		{plain, "", 0, 0, errNoDigits}, {plain, "-", 0, 0, errNoDigits}, {plain, ".5", 2, 0, errNoDigits}, {plain, "5.", 2, 0, errNoDigits}, {plain, "--5", 0, 0, errNoDigits},
		{plain, "5e3", 0, 0, errNoDigits}, {plain, "5,000", 0, 0, errNoDigits}, {plain, "5 000", 0, 0, errNoDigits}, {plain, "XAF 5", 0, 0, errNoDigits}, {plain, "٥", 0, 0, errNoDigits},
		{plain, "(5)", 0, 0, errNoDigits}, {plain, "1.2.3", 2, 0, errNoDigits}, {plain, "0x10", 0, 0, errNoDigits},
		{english, "1,234,567.80", 2, 123456780, nil}, {english, "999", 0, 999, nil}, {english, "1,50", 2, 0, errGroups}, {english, ",500", 0, 0, errGroups}, {english, "1234,567", 0, 0, errGroups},
		{english, "1,2345", 0, 0, errGroups}, {english, "1,,234", 0, 0, errGroups}, {english, "1.000,5", 2, 0, errNoDigits},
		{german, "1.234,50", 2, 123450, nil}, {german, "1.50", 2, 0, errGroups}, {german, "1,50", 2, 150, nil},
		{french, "12\u202f345,00", 0, 12345, nil}, {french, "12 345", 0, 0, errNoDigits},
		{minor, "5000", 2, 5000, nil}, {minor, "5000.00", 2, 0, errNoDigits},
	} {
		got, negative, err := mustLayout(t, c.mapping).parseAmount(c.text, c.decimals)
		if negative {
			got = -got
		}
		if err != c.err || err == nil && got != c.minor {
			t.Errorf("%q with %d decimals: got %d, %v; want %d, %v", c.text, c.decimals, got, err, c.minor, c.err)
		}
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		layout, zone, text, want string // "" is refused
	}{
		{"", "", "2026-11-15T08:30:00Z", "2026-11-15T08:30:00.000000Z"},
		{"", "", "2026-11-15T08:30:00.123456789+01:00", "2026-11-15T07:30:00.123456Z"},
		{"", "", "2026-11-15 08:30:00", ""},
		{"", "", "2026-02-30T08:30:00Z", ""},
		{"YYYY-MM-DD hh:mm:ss", "+01:00", "2026-11-15 08:30:00", "2026-11-15T07:30:00.000000Z"},
		{"YYYY-MM-DD hh:mm:ss", "+01:00", "2026-11-15 08:30:00.5", "2026-11-15T07:30:00.500000Z"},
		{"DD/MM/YYYY hh:mm", "", "15/11/2026 08:30", "2026-11-15T08:30:00.000000Z"},
		{"DD/MM/YYYY hh:mm", "", "11/15/2026 08:30", ""},
		{"DD-MMM-YY hh12:mm:ss AMPM", "-03:00", "15-Nov-26 08:30:00 PM", "2026-11-15T23:30:00.000000Z"},
		{"YYYYMMDDhhmmss", "", "20261115083000", "2026-11-15T08:30:00.000000Z"},
		{"YYYY-MM-DDThh:mm:ssZZZ", "", "2026-11-15T08:30:00+03:00", "2026-11-15T05:30:00.000000Z"},
		{"unix", "", "1794731400", "2026-11-15T08:30:00.000000Z"}, {"unix", "", "-5", ""}, {"unix", "", "1e9", ""}, {"unix", "", "99999999999999", ""},
		{"unix_ms", "", "1794731400250", "2026-11-15T08:30:00.250000Z"},
		{"YYYY-MM-DD", "", "1999-12-31", ""}, {"YYYY-MM-DD", "", "2100-01-01", ""}, {"YYYY-MM-DD", "", "", ""},
	} {
		l := mustLayout(t, Mapping{TimeLayout: c.layout, TimeZone: c.zone})
		got, err := l.parseTime(c.text)
		if err != nil && c.want != "" || err == nil && got.String() != c.want {
			t.Errorf("%q as %q: got %s, %v; want %s", c.text, c.layout, got, err, c.want)
		}
	}
}

func TestMappingNamesTheWrongKey(t *testing.T) {
	t.Parallel()
	negative, many := -1, make([]string, maxWords+1)
	for key, m := range map[string]Mapping{
		"delimiter:":       {Delimiter: ";;"},
		"header_line:":     {HeaderLine: &negative},
		"skip_prefixes:":   {SkipPrefixes: []string{""}},
		"amount:":          {Amount: noColumn},
		"reference:":       {Reference: noColumn, ExternalID: noColumn, Receipt: noColumn},
		"receipt:":         {Receipt: "#0"},
		"external_id:":     {ExternalID: strings.Repeat("x", 200)},
		"currency:":        {Currency: noColumn},
		"fixed_currency:":  {FixedCurrency: "FCFA"},
		"success:":         {Success: []string{"OK", "ok"}},
		"failed:":          {Success: []string{"Done"}, Failed: []string{"done"}},
		"pending:":         {Pending: many},
		"ignored:":         {Ignored: []string{"Fee"}, Outgoing: []string{"fee"}},
		"negative:":        {Negative: "maybe"},
		"amount_unit:":     {AmountUnit: "francs"},
		"decimal_mark:":    {DecimalMark: ";"},
		"thousands:":       {Thousands: "_"},
		"thousands: \".\"": {Thousands: "."},
		"time_layout:":     {TimeLayout: "hh:mm"},
		"time_zone:":       {TimeZone: "Mars/Olympus"},
	} {
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s %v", key, err)
		}
	}
	for _, m := range []Mapping{{}, {FixedCurrency: "XAF"}, {Failed: []string{"completed"}}, {Currency: noColumn, FixedCurrency: "KES"}} {
		if err := m.Validate(); err != nil {
			t.Errorf("%+v: %v", m, err)
		}
	}
	none := 0
	if err := (&Mapping{HeaderLine: &none, Amount: "Amount", Reference: "#1", FixedCurrency: "XAF"}).Validate(); err == nil {
		t.Error("a column has a name, and there is no header")
	}
	if l := mustLayout(t, Mapping{Failed: []string{"Completed"}}); l.status["completed"] != lineFailed || l.status["paid"] != lineSuccess {
		t.Error("a word that was set keeps the meaning that it has unless set")
	}
}

func TestAMappingsZoneIsKnownByItsName(t *testing.T) {
	t.Parallel()
	if _, err := time.LoadLocation("Africa/Brazzaville"); err == nil {
		if l := mustLayout(t, Mapping{TimeZone: "Africa/Brazzaville"}); l.zone.String() != "Africa/Brazzaville" {
			t.Error("a zone is not known by its name")
		}
	}
}
