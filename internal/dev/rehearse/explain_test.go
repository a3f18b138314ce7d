package rehearse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"till"
	"till/webhook"
)

// captured writes a request as a log has it.
func captured(h http.Header, body []byte) string {
	var out strings.Builder
	out.WriteString("POST /till HTTP/1.1\r\nHost: shop\r\n")
	for name, values := range h {
		fmt.Fprintf(&out, "%s: %s\r\n", name, values[0])
	}
	return out.String() + "\r\n" + string(body)
}

func TestExplain(t *testing.T) {
	t.Parallel()
	secret, listen := webhook.NewSecret(), webhook.NewSecret()
	b := newBuilder(1, time.Now(), secret)
	b.payment.Document = document(`{"note":"é 😀 a/b <x>"}`)
	d := b.success()
	id := d.header.Get(webhook.HeaderID)
	rename := func(from, to string) http.Header {
		h := d.header.Clone()
		h[to] = h[from]
		h.Del(from)
		return h
	}
	set := func(name, value string) http.Header { return d.with(name, value).header }
	var v any
	json.Unmarshal(d.body, &v)
	sorted, _ := json.Marshal(v)
	var spread bytes.Buffer
	json.Indent(&spread, d.body, "", "    ")
	indented := spread.Bytes()
	asText, _ := json.Marshal(string(d.body))
	escaped := escapeLetters(bytes.ReplaceAll(d.body, []byte("/"), []byte(`\/`)))
	signature := d.header.Get(webhook.HeaderSignature)
	for _, c := range []struct {
		name, request string
		received      time.Duration // after it was signed; 0 if nobody knows
		ok            bool
		says          string
	}{
		{"as it came", captured(d.header, d.body), 0, true, "The signature is right. It was made at"},
		{"in time", captured(d.header, d.body), time.Second, true, "came in time"},
		{"without a request line", strings.SplitN(captured(d.header, d.body), "\r\n", 2)[1], time.Second, true, "came in time"},
		{"too old", captured(d.header, d.body), 6 * time.Minute, false, "came 6m0s later"},
		{"clock behind", captured(d.header, d.body), -7 * time.Minute, false, "The clock of the handler is behind"},
		{"by its Date", captured(set("Date", b.now.Add(time.Hour).UTC().Format(http.TimeFormat)), d.body), 0, false, "later"},
		{"line break added", captured(d.header, append(bytes.Clone(d.body), '\n')), 0, false, "a line break was added at its end"},
		{"indented", captured(d.header, indented), 0, false, "written anew, with other white space"},
		{"PHP", captured(d.header, escaped), 0, false, "with other escapes"},
		{"sorted by Go", captured(d.header, sorted), 0, false, "with its members in another order"},
		{"a text in JSON", captured(d.header, asText), 0, false, "JSON text inside JSON"},
		{"byte order mark", captured(d.header, append([]byte("\ufeff"), d.body...)), 0, false, "byte order mark"},
		{"empty", captured(d.header, nil), 0, false, "The body is empty"},
		{"cut", captured(d.header, d.body[:200]), 0, false, "no JSON"},
		{"content changed", captured(d.header, bytes.Replace(d.body, []byte(`"value":"5000"`), []byte(`"value":"6000"`), 1)), 0, false, "No signature matches this secret"},
		{"other event", captured(set(webhook.HeaderID, till.NewID(till.TimeOf(b.now)).String()), d.body), 0, false, "different events"},
		{"other secret", captured(webhook.Sign(id, b.now, d.body, webhook.NewSecret()), d.body), 0, false, "not the secret of this endpoint"},
		{"till listen's", captured(webhook.Sign(id, b.now, d.body, listen), d.body), 0, false, "signed with the secret of 'till listen'"},
		{"renamed", captured(rename(webhook.HeaderID, "X-Webhook-Id"), d.body), 0, false, "came as X-Webhook-Id: a proxy has renamed it"},
		{"as CGI has it", captured(rename(webhook.HeaderID, "HTTP_WEBHOOK_ID"), d.body), time.Second, true, "came in time"},
		{"svix", captured(rename(webhook.HeaderTimestamp, "svix-timestamp"), d.body), 0, false, "came as svix-timestamp"},
		{"removed", captured(d.without(webhook.HeaderSignature).header, d.body), 0, false, "webhook-signature is missing"},
		{"milliseconds", captured(set(webhook.HeaderTimestamp, d.header.Get(webhook.HeaderTimestamp)+"000"), d.body), 0, false, "in milliseconds"},
		{"a date", captured(set(webhook.HeaderTimestamp, "2026-11-17T09:00:00Z"), d.body), 0, false, "not Unix seconds"},
		{"quotes", captured(set(webhook.HeaderSignature, `"`+signature+`"`), d.body), 0, false, "quotes around it"},
		{"URL", captured(set(webhook.HeaderSignature, strings.ReplaceAll(signature, "=", "%3D")), d.body), 0, false, "encoded for a URL"},
		{"no version", captured(set(webhook.HeaderSignature, signature[3:]), d.body), 0, false, "v1, is missing"},
		{"another version", captured(set(webhook.HeaderSignature, "v2"+signature[2:]), d.body), 0, false, "no signature of version v1"},
		{"JSON", fmt.Sprintf(`{"headers":{"webhook-id":%q,"Webhook-Timestamp":%s,"webhook-signature":[%q]},"body":%s}`, id, d.header.Get(webhook.HeaderTimestamp), signature, asText), time.Second, true, "came in time"},
		{"JSON, parsed", fmt.Sprintf(`{"headers":{"webhook-id":%q,"webhook-timestamp":%q,"webhook-signature":%q},"body":%s}`, id, d.header.Get(webhook.HeaderTimestamp), signature, indented), 0, false, "other white space"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			request, err := ReadCapture(strings.NewReader(c.request))
			if err != nil {
				t.Fatal(err)
			}
			var received time.Time
			if c.received != 0 {
				at, _ := parseSeconds(d.header.Get(webhook.HeaderTimestamp))
				received = at.Add(c.received)
			}
			e := Explain(request, secret, received, map[string]webhook.Secret{"the secret of 'till listen'": listen})
			if e.Verifies != c.ok || !strings.Contains(strings.Join(e.Reasons, "\n"), c.says) {
				t.Errorf("%v %q", e.Verifies, e.Reasons)
			}
		})
	}
	for _, bad := range []string{"", "POST /till HTTP/1.1\nno header\n\n{}", `{"body":"x"}`, strings.Repeat("a: b\n", maxCapture/4)} {
		if c, err := ReadCapture(strings.NewReader(bad)); err == nil && len(c.Header) > 0 {
			t.Errorf("%.30q is read as %v", bad, c.Header)
		}
	}
}

func TestSecretOf(t *testing.T) {
	t.Parallel()
	good := webhook.NewSecret().Reveal()
	for text, says := range map[string]string{
		good: "", "": "give the webhook secret", "till_test_abcdefghijklmnop_qrstuvwxyz": "this is an API key", `"` + good + `"`: "quotes or white space",
		good + "\n": "quotes or white space", good[6:]: "lacks its beginning", "whpk_" + good[6:]: "asymmetric", good[:20]: "cut or changed",
		strings.Repeat("0a", 32): "hexadecimal", "hello": "not a webhook secret",
	} {
		_, err := SecretOf(text)
		if (err == nil) != (says == "") || err != nil && (!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), good[6:])) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
