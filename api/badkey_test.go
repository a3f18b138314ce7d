package api_test

import (
	"hash/crc32"
	"maps"
	"net/http"
	"strings"
	"testing"

	"till/account"
)

// F55: nothing of an answer distinguishes an unknown key from a wrong secret, nor
// either from a text that is no key.
func TestBadKeysCannotBeToldApart(t *testing.T) {
	w := newWorld(t, options{quiet: true})
	defer w.stop()
	genuine := w.keys["test"]
	_, id, secret, _ := account.ParseKey(genuine)
	answer := func(key string) string {
		a := w.do("GET", "/v1/payments", key, "")
		if a.Code != http.StatusUnauthorized {
			t.Errorf("%d %s", a.Code, a.Body)
		}
		h := maps.Clone(a.Header())
		request := h.Get("X-Request-Id")
		h.Del("X-Request-Id")
		var text strings.Builder
		h.Write(&text)
		return text.String() + strings.ReplaceAll(a.Body.String(), request, "")
	}
	want := answer("nonsense")
	for name, key := range map[string]string{
		"unknown":      forge("till_test_" + strings.Repeat("A", len(id)) + "_" + secret),
		"wrong secret": forge("till_test_" + id + "_" + strings.Repeat("A", len(secret))),
		"other mode":   forge("till_live_" + id + "_" + secret),
	} {
		if _, _, _, ok := account.ParseKey(key); !ok {
			t.Fatalf("%s: the checksum is wrong", name)
		}
		if got := answer(key); got != want {
			t.Errorf("%s: answered %s, want %s", name, got, want)
		}
	}
}

// forge gives a key its checksum.
func forge(body string) string {
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	n := crc32.ChecksumIEEE([]byte(body))
	sum := make([]byte, 6)
	for i := range sum {
		sum[5-i] = base62[n%62]
		n /= 62
	}
	return body + string(sum)
}
