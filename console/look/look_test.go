package look_test

import (
	"testing"
	"time"

	"till"
	"till/console/look"
)

func TestMoney(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lang string
		m    till.Money
		want string
	}{
		{"en", till.Money{Minor: 5000, Currency: "XAF"}, "5,000\u00a0XAF"},
		{"fr", till.Money{Minor: 5000, Currency: "XAF"}, "5\u202f000\u00a0XAF"},
		{"en", till.Money{Minor: 125050, Currency: "KES"}, "1,250.50\u00a0KES"},
		{"fr", till.Money{Minor: 125050, Currency: "KES"}, "1\u202f250,50\u00a0KES"},
		{"en", till.Money{Minor: 125000, Currency: "KES"}, "1,250\u00a0KES"},
		{"en", till.Money{Minor: 5, Currency: "KES"}, "0.05\u00a0KES"},
		{"en", till.Money{Minor: -75, Currency: "XAF"}, "\u221275\u00a0XAF"},
		{"en", till.Money{Minor: -5, Currency: "TND"}, "\u22120.005\u00a0TND"},
		{"en", till.Money{Minor: 9223372036854775807, Currency: "XAF"}, "9,223,372,036,854,775,807\u00a0XAF"},
		{"en", till.Money{Minor: -9223372036854775808, Currency: "XAF"}, "\u22129,223,372,036,854,775,808\u00a0XAF"},
		{"en", till.Money{Minor: 100, Currency: "QQQ"}, "100\u00a0QQQ"},
		{"en", till.Money{Currency: "XAF"}, "0\u00a0XAF"},
	} {
		if got := look.Money(c.lang, c.m); got != c.want {
			t.Errorf("%s %+v: got %q, want %q", c.lang, c.m, got, c.want)
		}
	}
}

func TestParseAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, currency string
		want           int64
		ok             bool
	}{
		{"5000", "XAF", 5000, true},
		{"5 000", "XAF", 5000, true},
		{"5\u202f000", "XAF", 5000, true},
		{"5,000", "XAF", 5000, true},
		{"5.000", "XAF", 5000, true},
		{"1,250.50", "KES", 125050, true},
		{"1 250,5", "KES", 125050, true},
		{"1250", "KES", 125000, true},
		{"0", "XAF", 0, false},
		{"1,50", "XAF", 0, false},
		{"1,505", "KES", 150500, true},
		{"1.250", "TND", 0, false},
		{"1,2,3", "KES", 0, false},
		{"12,34,567", "XAF", 0, false},
		{"", "XAF", 0, false},
		{"-5", "XAF", 0, false},
		{"5e3", "XAF", 0, false},
		{"99999999999999999999", "XAF", 0, false},
		{"5000", "QQQ", 0, false},
	} {
		got, ok := look.ParseAmount(c.text, c.currency)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%q %s: got %d %v, want %d %v", c.text, c.currency, got, ok, c.want, c.ok)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	at := till.TimeOf(time.Date(2026, 11, 14, 13, 2, 10, 120_456_000, time.UTC))
	en, fr := look.NewClock("en", "Africa/Brazzaville"), look.NewClock("fr", "Africa/Brazzaville")
	for _, c := range []struct{ got, want string }{
		{en.DateTime(at), "14 Nov 2026, 14:02"},
		{fr.DateTime(at), "14 nov. 2026, 14:02"},
		{en.Time(at) + en.Millis(at), "14:02:10.120"},
		{fr.Time(at) + fr.Millis(at), "14:02:10,120"},
		{en.Day(at, at), "Saturday 14 Nov"},
		{fr.Day(at, at), "samedi 14 nov."},
		{fr.Day(at, at.Add(365*24*time.Hour)), "samedi 14 nov. 2026"},
		{fr.ShortDate(en.StartOfMonth(at, 0)), "1er nov."},
		{en.Month(at), "November"},
		{en.Offset(at), "UTC+1"},
		{look.NewClock("en", "Asia/Kathmandu").Offset(at), "UTC+5:45"},
		{look.NewClock("en", "America/New_York").Offset(at), "UTC\u22125"},
		{look.NewClock("en", "Not/AZone").Offset(at), "UTC"},
		{look.NewClock("en", "America/New_York").City(), "New York"},
		{en.Moment(at, at.Add(time.Hour)), "14:02:10"},
		{en.Moment(at, at.Add(10*time.Hour)), "14 Nov, 14:02:10"},
		{en.ISODay(en.StartOfDay(at, -1)), "2026-11-13"},
		{en.Local(en.StartOfMonth(at, -1)), "2026-10-01 00:00:00"},
		{look.Span("en", 4*time.Minute+12*time.Second), "4\u00a0min 12\u00a0s"},
		{look.Span("fr", 49*time.Hour), "2\u00a0j 1\u00a0h"},
		{look.Span("en", 300*time.Millisecond), "0\u00a0s"},
		{look.Span("en", time.Minute), "1\u00a0min"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	// A payment at half past eleven at night in Brazzaville is of that day.
	late := till.TimeOf(time.Date(2026, 11, 14, 22, 30, 0, 0, time.UTC))
	if !en.SameDay(at, late) || en.SameDay(at, late.Add(time.Hour)) {
		t.Error("a day of Brazzaville does not end at midnight there")
	}
	if _, ok := en.ParseDay("2026-13-01"); ok {
		t.Error("a thirteenth month was read")
	}
}

func TestPhones(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{look.Mask("242061234567"), "242\u00a0•••\u00a0567"},
		{look.Mask("12345"), "•••"},
		{look.Mask(""), "•••"},
		{look.Mask("<script>"), "•••"},
		{look.Phone("242061234567"), "+242\u00a006\u00a0123\u00a045\u00a067"},
		{look.Phone("254712345678"), "+254\u00a071\u00a0234\u00a056\u00a078"},
		{look.Phone("999"), "999"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		part, whole int64
		want        string
	}{{1, 2, "50\u00a0%"}, {0, 0, "—"}, {1 << 62, 1 << 62, "100\u00a0%"}, {33, 38, "86\u00a0%"}} {
		if got := look.Percent(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.part, c.whole, got, c.want)
		}
	}
}

func TestMaskedIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"5000 XAF asked from 242******567 by mtn_momo": "5000 XAF asked from 242\u00a0•••\u00a0567 by mtn_momo",
		"2 of 3 ***": "2 of 3 ***", "a*b 1234***567": "a*b 1234***567", "": "",
	} {
		if got := look.MaskedIn(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
