package wire_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"till/provider"
	"till/provider/wire"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		`"a"`: "a", `""`: "", `12`: "12", `1.50`: "1.50", `true`: "true", `null`: "", `"a\u00e9\n"`: "aé\n", `-1e5`: "-1e5", `"\""`: `"`,
	} {
		var v struct {
			X wire.Text `json:"x"`
		}
		if err := json.Unmarshal([]byte(`{"x":`+in+`}`), &v); err != nil || string(v.X) != want {
			t.Errorf("%s is %q, %v; want %q", in, v.X, err, want)
		}
	}
	for _, in := range []string{`{}`, `[]`, `["a"]`} {
		var x wire.Text
		if err := json.Unmarshal([]byte(in), &x); err == nil {
			t.Errorf("%s is %q", in, x)
		}
	}
}

func TestDecode(t *testing.T) {
	for in, good := range map[string]bool{
		`{"a":1}`: true, ` {"a":1} `: true, `[]`: true, ``: false, `{`: false, `{}{}`: false, `"a"`: false, `1`: false, `null`: false,
		`<html>`: false, "{\"a\":\"\xff\"}": false, `{"a":1}x`: false,
	} {
		var v any
		if err := wire.Decode([]byte(in), &v); (err == nil) != good {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		text     string
		decimals int
		want     int64
		ok       bool
	}{
		{"2500", 0, 2500, true}, {"2500.00", 0, 2500, true}, {"2500.", 0, 2500, true}, {"10.5", 2, 1050, true}, {"10.50", 2, 1050, true},
		{"10.500", 2, 1050, true}, {"0", 0, 0, true}, {" 5 ", 0, 5, true}, {"007", 0, 7, true}, {"999999999999999", 2, 99999999999999900, true},
		{"2500.5", 0, 0, false}, {"10.505", 2, 0, false}, {"-5", 0, 0, false}, {"+5", 0, 0, false}, {"1e3", 0, 0, false}, {"", 0, 0, false},
		{".5", 2, 0, false}, {"5,000", 0, 0, false}, {"1 000", 0, 0, false}, {"1.2.3", 2, 0, false}, {"9999999999999999", 0, 0, false}, {"٥", 0, 0, false},
	} {
		if got, ok := wire.ParseMinor(c.text, c.decimals); got != c.want || ok != c.ok {
			t.Errorf("%q with %d decimals is %d, %v", c.text, c.decimals, got, ok)
		}
	}
	for _, c := range []struct {
		minor    int64
		decimals int
		want     string
	}{{1000, 0, "1000"}, {1050, 2, "10.5"}, {1000, 2, "10"}, {5, 2, "0.05"}, {5, 3, "0.005"}, {0, 2, "0"}} {
		if got := wire.FormatMinor(c.minor, c.decimals); got != c.want {
			t.Errorf("%d with %d decimals is %q, want %q", c.minor, c.decimals, got, c.want)
		}
	}
}

func FuzzAmounts(f *testing.F) {
	f.Add("10.50", 2)
	f.Add("999999999999999.99", 3)
	f.Fuzz(func(t *testing.T, text string, decimals int) {
		if decimals < 0 || decimals > 4 {
			return
		}
		n, ok := wire.ParseMinor(text, decimals)
		if !ok {
			return
		}
		// Compared exactly with arithmetic that has no limits.
		want, good := new(big.Rat).SetString(strings.TrimSuffix(strings.TrimSpace(text), "."))
		scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
		if !good || new(big.Rat).Mul(want, scale).Cmp(new(big.Rat).SetInt64(n)) != 0 {
			t.Fatalf("%q with %d decimals is %d", text, decimals, n)
		}
		if again, ok := wire.ParseMinor(wire.FormatMinor(n, decimals), decimals); !ok || again != n {
			t.Fatalf("%d is written %q", n, wire.FormatMinor(n, decimals))
		}
	})
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"L'été à l'école & co": "L ete a l ecole co", "Commande n° 12": "Commande n 12", "ÉCOLE": "ECOLE", "Œuvre": "OEuvre",
		"": "", "   ": "", "'&": "", "déjà\tvu\n": "deja vu", "日本": "", "e\u0301te": "ete", "a\u202eb": "a b", "Ɛwe ŋutɔ": "Ewe nuto",
	} {
		if got := wire.PlainASCII(in, 160); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	if got := wire.PlainASCII("abc def", 5); got != "abc d" {
		t.Errorf("cut to five it is %q", got)
	}
	if got := wire.PlainASCII("abcde f", 6); got != "abcde" {
		t.Errorf("cut at a space it is %q", got)
	}
}

var plainForm = regexp.MustCompile(`^([A-Za-z0-9]+( [A-Za-z0-9]+)*)?$`)

func FuzzPlain(f *testing.F) {
	f.Add("L'été", 160)
	f.Add("æ æ", 2)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if n < 0 || n > 1000 {
			return
		}
		if got := wire.PlainASCII(text, n); len(got) > n || !plainForm.MatchString(got) {
			t.Fatalf("%q is %q", text, got)
		}
	})
}

func TestClip(t *testing.T) {
	for in, want := range map[string]string{"abcdef": "abc", "éàü!": "éàü", "ab": "ab", "a\xffb": "ab", "": ""} {
		if got := wire.Truncate(in, 3); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		`{"status":"FAILED","reason":{"code":"NOT_ENOUGH_FUNDS","message":"Jeanne Moke, 242061234567"}}`: `{"status":"FAILED","reason":{"code":"NOT_ENOUGH_FUNDS","message":"***"}}`,
		`{"partyId":"242061234567","amount":2500,"phone":242061234567}`:                                  `{"partyId":"***","amount":2500,"phone":***}`,
		`{"status":{"response_code":"DP00800001006","success":true}}`:                                    `{"status":{"response_code":"DP00800001006","success":true}}`,
		`{"access_token":"eyJhbGciOi`:                                                                    `{"access_token":"***"`,
		`{"status":"242061234567"}`:                                                                      `{"status":"***"}`,
		`{"242061234567!":1}`:                                                                            `{"***":1}`,
		`<html><title>503</title>call 242061234567 for Jeanne</html>`:                                    `<html><title>503</title>call *** for Jeanne</html>`,
		`Bearer eyJhbGciOiJIUzI1NiJ9.abcdefgh`:                                                           `Bearer ***`,
		``:                                                                                               ``,
		`{"status":"` + strings.Repeat("x", 60) + `"}`:                                                   `{"status":"***"}`,
		`{"reason":"c72025f5-5cd1-4630-99e4-8ba4722fad56","currency":"XAF"}`:                             `{"reason":"***","currency":"XAF"}`,
	} {
		if got := wire.Redact([]byte(in)); got != want {
			t.Errorf("%s is\n%s, want\n%s", in, got, want)
		}
	}
	if got := wire.Redact(bytes.Repeat([]byte(`{"status":"x",`), 1000)); utf8.RuneCountInString(got) > 512 {
		t.Errorf("%d characters are shown", len(got))
	}
}

var longNumber = regexp.MustCompile(`(^|[^A-Za-z0-9_./ -])[0-9]{6,}([^A-Za-z0-9_./ -]|$)`)

func FuzzRedact(f *testing.F) {
	f.Add([]byte(`{"status":"FAILED","partyId":"242061234567"}`))
	f.Add([]byte(`<p>242061234567`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got := wire.Redact(body)
		if utf8.RuneCountInString(got) > 512 || !utf8.ValidString(got) {
			t.Fatalf("%q is shown as %q", body, got)
		}
		if longNumber.MatchString(got) {
			t.Fatalf("%q shows a number: %q", body, got)
		}
	})
}

func TestComplaintsAreCountedByOperation(t *testing.T) {
	var log bytes.Buffer
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := wire.NewAnswerLog(provider.Deps{Connection: "mtn-congo", Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now }})
	r := &wire.Reply{Status: 502, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<html>")}
	say := func(op string) { c.Unreadable(op, r, http.ErrNotSupported) }
	for range 3 {
		say("submit")
		say("check")
	}
	now = now.Add(59 * time.Second)
	say("submit")
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines, want one for each operation:\n%s", n, log.String())
	}
	now = now.Add(time.Second)
	say("submit")
	if n := strings.Count(log.String(), "\n"); n != 3 || !strings.Contains(log.String(), "connection=mtn-congo operation=submit status=502") {
		t.Errorf("%d lines after a minute:\n%s", n, log.String())
	}
}

func TestBaseURLs(t *testing.T) {
	for url, good := range map[string]bool{
		"https://momoapi.momo.africa": true, "https://momoapi.momo.africa/": true, "http://127.0.0.1:9000": true, "http://localhost:9000": true, "http://[::1]:9000": true,
		"": false, "momoapi.momo.africa": false, "ftp://x": false, "http://momoapi.momo.africa": false, "https://u:p@x": false, "https://x?y=1": false, "https://x y": false,
	} {
		if err := wire.CheckBaseURL(url); (err == nil) != good {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// What cannot be read is told without a number of it: it may be somebody's
// phone, and the text is logged.
func TestDecodeRepeatsNoNumber(t *testing.T) {
	t.Parallel()
	var v struct{ Status struct{ Code int8 } }
	for _, in := range []string{`{"status":{"code":242069876543}}`, `{"status":{"code":242069876543.5}}`, `{"status":242069876543}`, `{"status":{"code":"242069876543"}}`, `{"status":242069876543x}`} {
		if err := wire.Decode([]byte(in), &v); err == nil || strings.Contains(err.Error(), "242069876543") {
			t.Errorf("%s: %v", in, err)
		}
	}
}
