package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// known is the example of the Standard Webhooks specification.
const (
	knownSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	knownID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	knownTimestamp = 1614265330
	knownBody      = `{"test": 2432232314}`
	knownSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

func TestSignIsThatOfTheSpecification(t *testing.T) {
	t.Parallel()
	s, err := ParseSecret(knownSecret)
	if err != nil {
		t.Fatal(err)
	}
	h := Sign(knownID, time.Unix(knownTimestamp, 999), []byte(knownBody), s)
	want := map[string]string{"webhook-id": knownID, "webhook-timestamp": strconv.Itoa(knownTimestamp), "webhook-signature": knownSignature}
	for name, value := range want {
		if got := h.Get(name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if len(h) != len(want) {
		t.Errorf("got %d headers, want %d: %v", len(h), len(want), h)
	}
}

func TestSignRefusesWhatCouldSpeakForAnother(t *testing.T) {
	t.Parallel()
	for name, sign := range map[string]func(){
		"no secret":            func() { Sign("a", time.Now(), nil) },
		"no id":                func() { Sign("", time.Now(), nil, NewSecret()) },
		"an id with full stop": func() { Sign("a.1", time.Now(), nil, NewSecret()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("signed")
				}
			}()
			sign()
		})
	}
}

// F60.
func TestVerify(t *testing.T) {
	t.Parallel()
	var (
		now              = time.Unix(1_800_000_000, 0)
		body             = []byte(`{"id":"e1","type":"payment.success"}`)
		current, retired = NewSecret(), NewSecret()
		signed           = Sign("e1", now, body, current)
	)
	with := func(name, value string) http.Header {
		h := signed.Clone()
		h.Set(name, value)
		return h
	}
	at := func(d time.Duration) http.Header { return Sign("e1", now.Add(d), body, current) }
	signature := signed.Get(HeaderSignature)
	for _, c := range []struct {
		name    string
		header  http.Header
		body    string
		secrets []Secret
		want    error
	}{
		{"as signed", signed, string(body), []Secret{current}, nil},
		{"the second of two secrets", signed, string(body), []Secret{retired, current}, nil},
		{"two signatures, the receiver has the old secret", Sign("e1", now, body, current, retired), string(body), []Secret{retired}, nil},
		{"two signatures, the receiver has the new secret", Sign("e1", now, body, current, retired), string(body), []Secret{current}, nil},
		{"unknown versions beside", with(HeaderSignature, "v1a,AAAA v2,x "+signature), string(body), []Secret{current}, nil},
		{"as old as may be", at(-Tolerance), string(body), []Secret{current}, nil},
		{"as new as may be", at(Tolerance), string(body), []Secret{current}, nil},

		{"body swapped", signed, `{"id":"e1","type":"payment.failed"}`, []Secret{current}, ErrNoMatch},
		{"body with a space more", signed, string(body) + " ", []Secret{current}, ErrNoMatch},
		{"no body", signed, "", []Secret{current}, ErrNoMatch},
		{"id swapped", with(HeaderID, "e2"), string(body), []Secret{current}, ErrNoMatch},
		{"time swapped", with(HeaderTimestamp, "1800000001"), string(body), []Secret{current}, ErrNoMatch},
		{"the time spelled differently", with(HeaderTimestamp, "01800000000"), string(body), []Secret{current}, ErrNoMatch},
		{"signed with the old secret after the rotation", Sign("e1", now, body, retired), string(body), []Secret{current}, ErrNoMatch},
		{"no secret known", signed, string(body), nil, ErrNoMatch},
		{"signature cut", with(HeaderSignature, signature[:len(signature)-2]), string(body), []Secret{current}, ErrNoMatch},
		{"signature of another version", with(HeaderSignature, "v2"+signature[2:]), string(body), []Secret{current}, ErrNoMatch},
		{"label in capitals", with(HeaderSignature, "V1"+signature[2:]), string(body), []Secret{current}, ErrNoMatch},
		{"too many signatures before it", with(HeaderSignature, strings.Repeat("v1,AAAA ", maxSignatures)+signature), string(body), []Secret{current}, ErrNoMatch},
		{"a second too old", at(-Tolerance - time.Second), string(body), []Secret{current}, errTooOld},
		{"a second too new", at(Tolerance + time.Second), string(body), []Secret{current}, ErrTooNew},
		{"a time that is none", with(HeaderTimestamp, "yesterday"), string(body), []Secret{current}, errBadTimestamp},
		{"a time with a sign", with(HeaderTimestamp, "+1800000000"), string(body), []Secret{current}, errBadTimestamp},
		{"a time in milliseconds", with(HeaderTimestamp, "1800000000000"), string(body), []Secret{current}, errBadTimestamp},
		{"no id", with(HeaderID, ""), string(body), []Secret{current}, errMissingHeader},
		{"no time", with(HeaderTimestamp, ""), string(body), []Secret{current}, errMissingHeader},
		{"no signature", with(HeaderSignature, ""), string(body), []Secret{current}, errMissingHeader},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := Verify(c.header, []byte(c.body), now, Tolerance, c.secrets...); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// What was signed as id, time and body must not be read as another id and
// time with a shorter body.
func TestVerifyRefusesAMovedFullStop(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	s := NewSecret()
	h := Sign("e1", now, []byte("1800000001.x"), s)
	h.Set(HeaderID, "e1.1800000000")
	h.Set(HeaderTimestamp, "1800000001")
	if err := Verify(h, []byte("x"), now, Tolerance, s); !errors.Is(err, ErrNoMatch) {
		t.Errorf("got %v, want %v", err, ErrNoMatch)
	}
}

func TestParseSecret(t *testing.T) {
	t.Parallel()
	s := NewSecret()
	if got, err := ParseSecret(s.Reveal()); err != nil || string(got) != string(s) || len(s) != 32 {
		t.Errorf("a new secret does not come back: %v", err)
	}
	if NewSecret().Reveal() == s.Reveal() {
		t.Error("two secrets are alike")
	}
	for _, bad := range []string{
		"", "whsec_", "whsec_AAAA", s.Reveal()[6:], "WHSEC_" + s.Reveal()[6:], s.Reveal() + "=", s.Reveal() + "\n", " " + s.Reveal(),
		s.Reveal()[:len(s.Reveal())-1], "whsec_" + strings.Repeat("A", 92), "whpk_" + s.Reveal()[6:],
		"whsec_" + strings.Repeat("A", 42) + "B=", // bits that nothing reads
	} {
		if _, err := ParseSecret(bad); !errors.Is(err, ErrBadSecret) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestASecretHidesItself(t *testing.T) {
	t.Parallel()
	s := NewSecret()
	var log strings.Builder
	type row struct{ Secret Secret }
	l := slog.New(slog.NewJSONHandler(&log, nil))
	l.Info("x", "a", s, "b", row{s}, "c", &row{s}, "d", []Secret{s})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&log, verb+" "+verb+"\n", s, row{s})
	}
	fmt.Fprintln(&log, s, []Secret{s})
	encoded, err := json.Marshal(row{s})
	if err == nil {
		t.Errorf("encoded as %s", encoded)
	}
	text := log.String()
	for name, leak := range map[string]string{
		"base64": s.Reveal()[6:20], "hex": fmt.Sprintf("%x", []byte(s))[:12], "raw": string(s[:6]),
		"decimal": strings.Trim(fmt.Sprint([]byte(s)[:5]), "[]"),
	} {
		if strings.Contains(strings.ToLower(text), strings.ToLower(leak)) {
			t.Errorf("the secret shows itself in %s:\n%s", name, text)
		}
	}
	if !strings.Contains(text, hidden) {
		t.Errorf("want the word %s:\n%s", hidden, text)
	}
}

func FuzzVerify(f *testing.F) {
	s := NewSecret()
	now := time.Unix(knownTimestamp, 0)
	f.Add(knownID, strconv.Itoa(knownTimestamp), knownSignature, []byte(knownBody))
	f.Add("a", "1", "v1, v1,", []byte{})
	f.Fuzz(func(t *testing.T, id, timestamp, signature string, body []byte) {
		h := http.Header{HeaderID: {id}, HeaderTimestamp: {timestamp}, HeaderSignature: {signature}}
		if err := Verify(h, body, now, Tolerance, s); err == nil {
			t.Errorf("a signature nobody made is accepted: %q %q %q", id, timestamp, signature)
		}
		if id == "" || strings.Contains(id, ".") {
			return
		}
		if err := Verify(Sign(id, now, body, s), body, now, 0, s); err != nil {
			t.Errorf("our own signature is refused: %v", err)
		}
	})
}

func FuzzParseSecret(f *testing.F) {
	f.Add(knownSecret)
	f.Add("whsec_")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := ParseSecret(text); err == nil && s.Reveal() != text {
			t.Errorf("%q is another spelling of %q", text, s.Reveal())
		}
	})
}
