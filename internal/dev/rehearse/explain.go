package rehearse

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"till/webhook"
)

// Explanation is why a captured request verifies, or does not.
type Explanation struct {
	Verifies bool     // in a correct handler, at the time of its arrival
	Reasons  []string // sentences, the most important first
}

// SecretOf reads a secret, and says which other kind of text it is.
func SecretOf(text string) (webhook.Secret, error) {
	s, err := webhook.ParseSecret(text)
	if err == nil {
		return s, nil
	}
	trimmed := strings.Trim(text, " \t\r\n\"'`")
	switch {
	case text == "":
		return nil, errors.New("give the webhook secret: --secret, or TILL_WEBHOOK_SECRET")
	case apiKey.MatchString(text) || strings.HasPrefix(text, "till_"):
		return nil, errors.New("this is an API key and no webhook secret: the secret begins with whsec_, and POST /webhook-endpoints shows it once")
	case strings.HasPrefix(trimmed, "whpk_") || strings.HasPrefix(trimmed, "whsk_"):
		return nil, errors.New("this is a key of asymmetric signatures; Till signs with a secret that begins with whsec_")
	case trimmed != text:
		if _, err := webhook.ParseSecret(trimmed); err == nil {
			return nil, errors.New("the secret has quotes or white space around it: take them away, in the handler's configuration too")
		}
	case !strings.HasPrefix(text, "whsec_"):
		if b, err := hex.DecodeString(text); err == nil && len(b) >= 24 {
			return nil, errors.New("this is hexadecimal; a secret is whsec_ and base64")
		}
		if _, err := webhook.ParseSecret("whsec_" + text); err == nil {
			return nil, errors.New("the secret lacks its beginning, whsec_")
		}
	default:
		if _, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_")); err != nil {
			return nil, errors.New("the secret was cut or changed: what follows whsec_ is no whole base64")
		}
	}
	return nil, webhook.ErrBadSecret
}

// headerNames are the three headers, as the service writes them.
var headerNames = []string{"webhook-id", "webhook-timestamp", "webhook-signature"}

// Explain says why a request does not verify. received is when it came; zero if nobody knows.
// others are secrets that it may have been signed with, by what they are.
func Explain(c *Capture, secret webhook.Secret, received time.Time, others map[string]webhook.Secret) (out Explanation) {
	say := func(format string, args ...any) { out.Reasons = append(out.Reasons, fmt.Sprintf(format, args...)) }
	header := http.Header{}
	renamed := false
	for _, name := range headerNames {
		found, value := findHeader(c.Header, name)
		switch {
		case found == "":
			say("The header %s is missing: something before the handler has removed it, or this request is not Till's.", name)
		case !strings.EqualFold(found, name) && !strings.EqualFold(found, "HTTP_"+strings.ReplaceAll(name, "-", "_")):
			say("The header %s came as %s: a proxy has renamed it. Let it through under its own name.", name, found)
			renamed = true
		}
		header.Set(name, value)
	}
	if len(header.Values("webhook-id")) == 0 || header.Get("webhook-id") == "" || header.Get("webhook-timestamp") == "" || header.Get("webhook-signature") == "" {
		return out
	}
	at, ok := explainTimestamp(header, say)
	if !ok {
		return out
	}
	if !explainSignature(header, c.Body, at, secret, others, say) {
		return out
	}
	out.Verifies = explainAge(at, received, c.Header, say) && !renamed
	return out
}

// findHeader returns a header under its own name, or under one that a proxy or a gateway
// interface has made of it.
func findHeader(h http.Header, name string) (found, value string) {
	for n, values := range h {
		if strings.EqualFold(n, name) && len(values) > 0 {
			return n, strings.Join(values, " ")
		}
	}
	plain := strings.ReplaceAll(name, "-", "")
	for n, values := range h {
		letters := strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(n))
		letters = strings.Replace(letters, "svix", "webhook", 1)
		if len(values) > 0 && strings.HasSuffix(letters, plain) {
			return n, strings.Join(values, " ")
		}
	}
	return "", ""
}

// explainTimestamp reads the time of the delivery.
func explainTimestamp(header http.Header, say func(string, ...any)) (time.Time, bool) {
	text := header.Get("webhook-timestamp")
	at, err := parseSeconds(text)
	switch {
	case err != nil:
		say("webhook-timestamp is %q, not Unix seconds: something has rewritten it.", text)
	case len(text) == 13:
		say("webhook-timestamp is in milliseconds (%s); it was sent in seconds, and that text is signed.", text)
	default:
		return at, true
	}
	return at, false
}

// explainSignature reports whether the signature is right, and says what is wrong with it.
func explainSignature(header http.Header, body []byte, at time.Time, secret webhook.Secret, others map[string]webhook.Secret, say func(string, ...any)) bool {
	right := func(body []byte, s webhook.Secret) bool {
		return webhook.Verify(header, body, at, time.Minute, s) == nil
	}
	if right(body, secret) {
		return true
	}
	for name, other := range others {
		if right(body, other) {
			say("It was signed with %s, and not with the secret that you gave.", name)
			return false
		}
	}
	for _, v := range variants(body) {
		if right(v.body, secret) {
			say("The secret is right, and the body is not as it was sent: %s. Verify the bytes as they came, before anything parses or writes them.", v.how)
			return false
		}
	}
	if fixed, how := repairSignature(header.Get("webhook-signature")); how != "" {
		repaired := header.Clone()
		repaired.Set("webhook-signature", fixed)
		if webhook.Verify(repaired, body, at, time.Minute, secret) == nil {
			say("The signature was changed on the way: %s.", how)
			return false
		}
	}
	var e struct{ ID string }
	switch err := json.Unmarshal(body, &e); {
	case len(body) == 0:
		say("The body is empty: something has read it before. Take it before a parser does.")
	case err != nil:
		say("The body is no JSON: it was cut, or decoded in another way, before it was captured.")
	case e.ID != header.Get("webhook-id"):
		say("Headers and body are of different events: webhook-id is %s, and the body has %s.", header.Get("webhook-id"), e.ID)
	case !strings.Contains(header.Get("webhook-signature"), "v1,"):
		say("There is no signature of version v1.")
	default:
		say("No signature matches this secret. Either it is not the secret of this endpoint (test and live differ, 'till listen' has its own, a rotation has ended), or the content of the body was changed: no way of writing it anew that we know of gives what was signed.")
	}
	return false
}

// explainAge reports whether the request came in time.
func explainAge(at, received time.Time, header http.Header, say func(string, ...any)) bool {
	if received.IsZero() {
		if date, err := http.ParseTime(header.Get("Date")); err == nil {
			received = date
		}
	}
	if received.IsZero() {
		say("The signature is right. It was made at %s; a handler accepts it for five minutes. Say --received TIME to compare the clocks.", at.UTC().Format(time.RFC3339))
		return true
	}
	switch late := received.Sub(at); {
	case late > webhook.Tolerance:
		say("The signature is right, and the request was too old: it was signed at %s and came %s later. Either the clock of the handler is ahead, or the request was kept in a queue.", at.UTC().Format(time.RFC3339), late.Round(time.Second))
	case late < -webhook.Tolerance:
		say("The signature is right, and the request seems to come from the future: it was signed at %s, %s after it came. The clock of the handler is behind: synchronise it.", at.UTC().Format(time.RFC3339), (-late).Round(time.Second))
	default:
		say("The signature is right, and the request came in time.")
		return true
	}
	return false
}

// repairSignature undoes what programs do to the header.
func repairSignature(text string) (fixed, how string) {
	switch {
	case strings.Trim(text, `"'`) != text:
		return strings.Trim(text, `"'`), "there are quotes around it"
	case strings.Contains(text, "%2B") || strings.Contains(text, "%2F") || strings.Contains(text, "%3D"):
		return strings.NewReplacer("%2B", "+", "%2F", "/", "%3D", "=", "%2C", ",").Replace(text), "it was encoded for a URL"
	case strings.ContainsAny(text, "-_"):
		return strings.NewReplacer("-", "+", "_", "/").Replace(text), "its base64 was written for URLs"
	case strings.HasPrefix(text, "v1,") && strings.Contains(text, " ") && !strings.Contains(text[3:], "v"):
		return "v1," + strings.ReplaceAll(text[3:], " ", "+"), "its + became spaces, as in a form"
	case strings.HasPrefix(text, "v1="):
		return "v1," + text[3:], "v1, became v1="
	case strings.Contains(text, ",v1,"):
		return strings.ReplaceAll(text, ",v1,", " v1,"), "the spaces between signatures became commas"
	case len(text) == 44 && !strings.Contains(text, ","):
		return "v1," + text, "its version, v1, is missing"
	}
	return "", ""
}
