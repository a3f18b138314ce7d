package till_test

import (
	"regexp"
	"testing"
	"time"

	"till"
)

var goodTimes = map[string]string{
	"2026-09-01T12:00:00Z":                "2026-09-01T12:00:00.000000Z",
	"2026-09-01T12:00:00+00:00":           "2026-09-01T12:00:00.000000Z",
	"2026-09-01T12:00:00 00:00":           "2026-09-01T12:00:00.000000Z",
	"2026-09-01T12:00:00.5Z":              "2026-09-01T12:00:00.500000Z",
	"2026-09-01T12:00:00.123456Z":         "2026-09-01T12:00:00.123456Z",
	"2026-09-01T12:00:00.123456+00:00":    "2026-09-01T12:00:00.123456Z",
	"2026-09-01T12:00:00.123456999Z":      "2026-09-01T12:00:00.123456Z",
	"2024-02-29T23:59:59Z":                "2024-02-29T23:59:59.000000Z",
	"1969-12-31T23:59:59Z":                "1970-01-01T00:00:00.000001Z",
	"0001-01-01T00:00:00Z":                "1970-01-01T00:00:00.000001Z",
	"9999-12-31T23:59:59.999999Z":         "9999-12-31T23:59:59.999999Z",
	"9999-12-31T23:59:59.999999999 00:00": "9999-12-31T23:59:59.999999Z",
}

var badTimes = []string{
	"", "2026", "2026-09-01", "2026-09-01T12:00:00", "2026-09-01 12:00:00Z", "2026-09-01t12:00:00Z",
	"2026-09-01T12:00:00z", "2026-09-01T12:00Z", "2026-09-01T1:00:00Z", "2026-09-01T1:00:00.0Z",
	"2026-09-01T12:00:00,5Z", "2026-09-01T12:00:00+01:00", "2026-09-01T12:00:00-00:00", "2026-09-01T12:00:00+0000",
	"2026-09-01T12:00:00+00", "2026-09-01T12:00:00.Z", "2026-09-01T24:00:00Z", "2026-09-01T12:60:00Z",
	"2026-09-01T12:00:60Z", "2026-02-29T12:00:00Z", "2026-13-01T12:00:00Z", "2026-00-01T12:00:00Z",
	"12026-09-01T12:00:00Z", "0000-01-01T00:00:00Z", "-001-01-01T00:00:00Z", "2026-09-01T12:00:00Z ",
	" 2026-09-01T12:00:00Z", "2026-09-01T12:00:00Z\n", "2026-09-01T12:00:00\x00Z", "٢٠٢٦-09-01T12:00:00Z",
	"2026-09-01T12:00:00\xffZ", "\ufeff2026-09-01T12:00:00Z", "2026-244T12:00:00.000Z", "1756728000000000000000",
	"2026-09-01T12:00:00.0000000000000000000000000000000000000000Z", "2026-09-01T12:00:00 +00:00",
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	for s, want := range goodTimes {
		if got, ok := till.ParseTime(s); !ok || got.String() != want {
			t.Errorf("ParseTime(%q) = %s, %v, want %s", s, got, ok, want)
		}
	}
	for _, s := range badTimes {
		if got, ok := till.ParseTime(s); ok || got != 0 {
			t.Errorf("ParseTime(%q) = %s, %v, want a refusal", s, got, ok)
		}
	}
}

func TestTimeIsCutToMicroseconds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 9, 1, 12, 0, 0, 123_456_789, time.FixedZone("WAT", 3600))
	got := till.TimeOf(at)
	if want := "2026-09-01T11:00:00.123456Z"; got.String() != want || string(got.Append(nil)) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if later := got.Add(1500 * time.Microsecond); later.Sub(got) != 1500*time.Microsecond || later != got+1500 {
		t.Errorf("Add and Sub disagree: %s", later.Sub(got))
	}
	if got.IsZero() || !till.Time(0).IsZero() {
		t.Error("IsZero is wrong")
	}
}

var timeGrammar = regexp.MustCompile(
	`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+ ]00:00)$`)

func FuzzDate(f *testing.F) {
	for s := range goodTimes {
		f.Add(s)
	}
	for _, s := range append(badTimes, hostileNumbers...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := till.ParseTime(s)
		if !ok {
			return
		}
		if !timeGrammar.MatchString(s) {
			t.Fatalf("ParseTime(%q) accepts what is not RFC 3339 in UTC", s)
		}
		back, ok := till.ParseTime(at.String())
		if !ok || back != at {
			t.Fatalf("%q is %s and comes back as %s, %v", s, at, back, ok)
		}
		if len(at.String()) != len("2006-01-02T15:04:05.000000Z") {
			t.Fatalf("%s has not exactly six decimals", at)
		}
	})
}
