package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// delivery is a webhook and what a receiver says to it: ok, or the one word of
// its refusal.
type delivery struct {
	Name    string            `json:"name"`
	Secrets []string          `json:"secrets"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Pad     int               `json:"pad,omitempty"` // how many x stand in the body instead of PAD
	Now     int64             `json:"now"`
	Expect  string            `json:"expect"`
}

const (
	signedAt  = 1794722713
	eventID   = "019a8e0c-3c52-7cc0-8b5e-3d000000002a"
	eventBody = `{"id":"019a8e0c-3c52-7cc0-8b5e-3d000000002a","type":"payment.success","created_at":"2026-11-15T05:51:53.123456Z","api_version":"1.1","sequence":42,"data":{"payment":{"id":"019a8e0c-3c52-7cc0-8b5e-3d0000000001","status":"success","idempotency_key":"6f1c1a52-0d0c-4d5a-9a62-51f9a6f0a3c1"}}}`
)

// secretOf makes a secret of some size, always the same.
func secretOf(seed byte, size int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{seed}, size))
}

// signature signs as the service does.
func signature(secret, id, stamp, body string) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err) // of a constant here
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

type deliveries struct {
	cases []delivery
	ours  string
}

// add adds a delivery that is signed well, after changing it.
func (d *deliveries) add(name, expect string, change func(*delivery)) {
	stamp := strconv.Itoa(signedAt)
	c := delivery{Name: name, Secrets: []string{d.ours}, Body: eventBody, Now: signedAt, Expect: expect,
		Headers: map[string]string{"webhook-id": eventID, "webhook-timestamp": stamp, "webhook-signature": signature(d.ours, eventID, stamp, eventBody)}}
	if change != nil {
		change(&c)
	}
	d.cases = append(d.cases, c)
}

// sign signs a changed delivery again.
func (c *delivery) sign() {
	body := strings.Replace(c.Body, "PAD", strings.Repeat("x", c.Pad), 1)
	c.Headers["webhook-signature"] = signature(secretOf(1, 32), c.Headers["webhook-id"], c.Headers["webhook-timestamp"], body)
}

// webhookVectors are the deliveries that every SDK judges alike.
func webhookVectors() ([]byte, error) {
	d := &deliveries{ours: secretOf(1, 32)}
	d.ages()
	d.changed()
	d.signatures()
	d.headers()
	d.secrets()
	d.bodies()
	return lines("cases", d.cases)
}

func (d *deliveries) ages() {
	d.add("as signed", "ok", nil)
	for _, age := range []int64{1, 60, 290, 299, 300} {
		d.add(fmt.Sprintf("%d s old", age), "ok", func(c *delivery) { c.Now += age })
		d.add(fmt.Sprintf("%d s ahead", age), "ok", func(c *delivery) { c.Now -= age })
	}
	for _, age := range []int64{301, 310, 360, 3600, 86400, 100_000_000} {
		d.add(fmt.Sprintf("%d s old", age), "too_old", func(c *delivery) { c.Now += age })
		d.add(fmt.Sprintf("%d s ahead", age), "too_new", func(c *delivery) { c.Now -= age })
	}
	d.add("old and forged: the signature is looked at first", "bad_signature", func(c *delivery) { c.Now += 999; c.Body += " " })
	d.add("signed long ago, the time written anew", "bad_signature", func(c *delivery) {
		c.Now += 999
		c.Headers["webhook-timestamp"] = strconv.FormatInt(c.Now, 10)
	})
}

func (d *deliveries) changed() {
	for i := 0; i < len(eventBody); i += 23 {
		d.add(fmt.Sprintf("byte %d of the body is another", i), "bad_signature", func(c *delivery) {
			b := []byte(c.Body)
			b[i] ^= 1
			c.Body = string(b)
		})
	}
	d.add("the body has a line end more", "bad_signature", func(c *delivery) { c.Body += "\n" })
	d.add("the body is written anew with spaces", "bad_signature", func(c *delivery) { c.Body = strings.ReplaceAll(c.Body, ",", ", ") })
	d.add("the body is empty", "bad_signature", func(c *delivery) { c.Body = "" })
	d.add("another id", "bad_signature", func(c *delivery) { c.Headers["webhook-id"] = "019a8e0c-3c52-7cc0-8b5e-3d000000002b" })
	d.add("another time", "bad_signature", func(c *delivery) { c.Headers["webhook-timestamp"] = strconv.Itoa(signedAt + 1) })
	d.add("the id with a point, the time cut", "bad_signature", func(c *delivery) {
		c.Headers["webhook-id"], c.Headers["webhook-timestamp"] = eventID+".1", "794722713"
	})
}

func (d *deliveries) signatures() {
	good := signature(d.ours, eventID, strconv.Itoa(signedAt), eventBody)
	with := func(name, expect, value string) {
		d.add(name, expect, func(c *delivery) { c.Headers["webhook-signature"] = value })
	}
	other := signature(secretOf(9, 32), eventID, strconv.Itoa(signedAt), eventBody)
	plain := strings.TrimPrefix(good, "v1,")
	with("two signatures, ours first", "ok", good+" "+other)
	with("two signatures, ours second", "ok", other+" "+good)
	with("an unknown version beside ours", "ok", "v2,AAAA "+good)
	with("an asymmetric one beside ours", "ok", good+" v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw")
	with("two spaces between", "ok", other+"  "+good)
	with("ours as the sixteenth", "ok", strings.Repeat(other+" ", 15)+good)
	with("ours as the seventeenth", "bad_signature", strings.Repeat(other+" ", 16)+good)
	with("of another secret", "bad_signature", other)
	with("only an unknown version", "bad_signature", "v2,"+plain)
	with("without a version", "bad_signature", plain)
	with("an upper-case version", "bad_signature", "V1,"+plain)
	with("an empty one", "bad_signature", "v1,")
	with("cut", "bad_signature", good[:len(good)-6])
	with("one character more", "bad_signature", good+"A")
	with("not base64", "bad_signature", "v1,%%%%")
	with("as hex", "bad_signature", "v1,2bcd")
	with("the base64 of URLs", "bad_signature", "v1,"+strings.NewReplacer("+", "-", "/", "_").Replace(plain)+"-")
	with("without its padding", "bad_signature", strings.TrimRight(good, "="))
	with("separated by a comma", "bad_signature", other+","+good)
	with("the first byte is another", "bad_signature", "v1,"+string(plain[0]^1)+plain[1:])
	with("only white space", "missing_header", "")
	with("of the body alone", "bad_signature", signature(d.ours, "", "", eventBody))
	with("over the time and the body", "bad_signature", signature(d.ours, strconv.Itoa(signedAt), eventBody, ""))
}

func (d *deliveries) headers() {
	for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
		d.add("no "+name, "missing_header", func(c *delivery) { delete(c.Headers, name) })
		d.add("an empty "+name, "missing_header", func(c *delivery) { c.Headers[name] = "" })
	}
	d.add("headers of another name", "missing_header", func(c *delivery) {
		c.Headers = map[string]string{"svix-id": eventID, "svix-timestamp": strconv.Itoa(signedAt), "svix-signature": c.Headers["webhook-signature"]}
	})
	for _, stamp := range []string{"yesterday", "1794722713.0", "+1794722713", "-1794722713", "1e9", "0x6AF8E099", "01794722713", "1794722713000", "17947227130000000", "١٧٩٤٧٢٢٧١٣", "2026-11-15T05:51:53Z"} {
		d.add("the time "+stamp, "missing_header", func(c *delivery) { c.Headers["webhook-timestamp"] = stamp; c.sign() })
		if stamp == "1794722713000" {
			d.cases[len(d.cases)-1].Name = "the time in milliseconds"
		}
	}
	d.add("a time of long ago", "too_old", func(c *delivery) { c.Headers["webhook-timestamp"] = "1"; c.sign() })
	d.add("the time 0", "too_old", func(c *delivery) { c.Headers["webhook-timestamp"] = "0"; c.sign() })
	d.add("a time of far ahead", "too_new", func(c *delivery) { c.Headers["webhook-timestamp"] = "999999999999"; c.sign() })
	d.add("an id that is no UUID", "ok", func(c *delivery) { c.Headers["webhook-id"] = "e1"; c.sign() })
}

func (d *deliveries) secrets() {
	with := func(name, expect string, secrets ...string) {
		d.add(name, expect, func(c *delivery) { c.Secrets = secrets })
	}
	with("a rotation, the new secret first", "ok", secretOf(2, 32), d.ours)
	with("a rotation, the old secret first", "ok", d.ours, secretOf(2, 32))
	with("three secrets", "ok", secretOf(2, 32), secretOf(3, 32), d.ours)
	with("another secret", "bad_signature", secretOf(2, 32))
	with("no secret", "bad_secret")
	for _, s := range []struct{ name, secret string }{
		{"an empty secret", ""}, {"a secret without its beginning", strings.TrimPrefix(d.ours, "whsec_")}, {"an API key as the secret", "till_test_abc_def"},
		{"a secret of 23 bytes", secretOf(1, 23)}, {"a secret of 65 bytes", secretOf(1, 65)}, {"a secret that is not base64", "whsec_!!!!"},
		{"a secret with a line end", d.ours + "\n"}, {"a secret in quotes", `"` + d.ours + `"`}, {"a secret with a space before it", " " + d.ours},
	} {
		with(s.name, "bad_secret", s.secret)
	}
	for _, size := range []int{24, 64} {
		d.add(fmt.Sprintf("a secret of %d bytes", size), "ok", func(c *delivery) {
			c.Secrets = []string{secretOf(5, size)}
			c.Headers["webhook-signature"] = signature(secretOf(5, size), eventID, strconv.Itoa(signedAt), eventBody)
		})
	}
}

func (d *deliveries) bodies() {
	with := func(name, expect, body string, pad int) {
		d.add(name, expect, func(c *delivery) { c.Body, c.Pad = body, pad; c.sign() })
	}
	with("other white space, signed as sent", "ok", strings.ReplaceAll(strings.ReplaceAll(eventBody, ",", " ,\n "), ":", " : "), 0)
	with("letters of the world and escapes", "ok", strings.Replace(eventBody, `"status"`, `"description":"Café, 你好 😀 \u00e9 \/ \"","status"`, 1), 0)
	with("an unknown kind", "ok", strings.Replace(eventBody, "payment.success", "payment.blessed", 1), 0)
	with("unknown members", "ok", strings.Replace(eventBody, `"status"`, `"blessing":{"deep":[1,2,{"x":null}]},"status"`, 1), 0)
	with("an amount of fifteen digits", "ok", strings.Replace(eventBody, `"status"`, `"amount":{"value":"999999999999999","currency":"XAF"},"status"`, 1), 0)
	with("300 KiB", "ok", strings.Replace(eventBody, `"status"`, `"description":"PAD","status"`, 1), 300<<10)
	with("more than 1 MiB", "too_large", strings.Replace(eventBody, `"status"`, `"description":"PAD","status"`, 1), 1<<20)
	with("no JSON", "malformed", "hello", 0)
	with("an empty body", "malformed", "", 0)
	with("cut JSON", "malformed", eventBody[:100], 0)
	with("a list", "malformed", "["+eventBody+"]", 0)
	with("null", "malformed", "null", 0)
	with("no id", "malformed", strings.Replace(eventBody, `"id":"019a8e0c-3c52-7cc0-8b5e-3d000000002a",`, "", 1), 0)
	with("no type", "malformed", strings.Replace(eventBody, `"type":"payment.success",`, "", 1), 0)
	with("two values", "malformed", eventBody+eventBody, 0)
}
