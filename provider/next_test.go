package provider

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// An address that customers are not to be sent to is dropped from an answer, with its end, and
// the answer stays.
func TestAnAddressIsCleaned(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"https://pay.wave.com/c/cos-1?a=99&c=XOF": true, "http://127.0.0.1:8080/wave/1": true, "http://localhost/1": true, "http://[::1]:1/": true,
		"http://pay.wave.com/": false, "javascript:alert(1)": false, "https:pay.wave.com": false, "https://": false, "/c/1": false, "https://a@pay.wave.com/": false,
		"https://pay.wave.com/\x00": false, "https://pay.wave.com/ x": false, "https://pay.wave.com\\@evil.example/": false, "https://pay.wave.com/<b>": false,
		"https://pay.wave.com/" + strings.Repeat("a", MaxNextURL): false,
	} {
		got, changed := Result{Outcome: Open, NextURL: text, NextUntil: 7}.Clean()
		if (got.NextURL == text) != good || (got.NextUntil == 7) != good || (len(changed) == 0) != good || got.Outcome != Open {
			t.Errorf("%q became %+v, changed %v", text, got, changed)
		}
	}
	if got, _ := (Result{Outcome: Open, NextUntil: 7}).Clean(); got.NextUntil != 0 {
		t.Error("there is an end without an address")
	}
}

// A one-time code is not printed, however it is printed.
func TestACodeIsNotPrinted(t *testing.T) {
	t.Parallel()
	r := Request{Phone: "22607345678", Code: "367025"}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "code", r.Code, "request", r)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "code", r.Code)
	text := fmt.Sprintf("%v %+v %#v %s %q %x %d", r, r, r, r.Code, r.Code, r.Code, r.Code) + fmt.Sprint(&r, r.Code) + log.String()
	if strings.Contains(text, "367025") || strings.Contains(text, "333637303235") {
		t.Errorf("it is printed: %s", text)
	}
}
