package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
)

// wayBack is a customer's way back from a checkout's page, and what the shop says to it: the
// state, or the one word of its refusal.
type wayBack struct {
	Name     string            `json:"name"`
	Secret   string            `json:"secret"`
	Checkout string            `json:"checkout"`
	Query    map[string]string `json:"query"`
	Now      int64             `json:"now"`
	Expect   string            `json:"expect"`
}

const (
	returnSecret  = "iYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYk"
	paidCheckout  = "019a8e0c-3c52-7cc0-8b5e-3d0000000007"
	otherCheckout = "019a8e0c-3c52-7cc0-8b5e-3d0000000008"
)

// signReturn signs as the service does: checkout.SignReturn is held against these cases.
func signReturn(secret, checkout, state, at string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("return\n" + checkout + "\n" + state + "\n" + at))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// sign signs a changed way back again.
func (c *wayBack) sign() {
	c.Query["till_signature"] = signReturn(c.Secret, c.Checkout, c.Query["till_state"], c.Query["till_time"])
}

// returnVectors are the ways back that every SDK judges alike.
func returnVectors() ([]byte, error) {
	var cases []wayBack
	add := func(name, expect string, change func(*wayBack)) {
		c := wayBack{Name: name, Secret: returnSecret, Checkout: paidCheckout, Now: signedAt, Expect: expect,
			Query: map[string]string{"order": "7", "till_checkout": paidCheckout, "till_state": "paid", "till_time": strconv.Itoa(signedAt)}}
		c.sign()
		if change != nil {
			change(&c)
		}
		cases = append(cases, c)
	}
	with := func(name, value string) func(*wayBack) { return func(c *wayBack) { c.Query[name] = value } }
	signed := func(name, value string) func(*wayBack) {
		return func(c *wayBack) { c.Query[name] = value; c.sign() }
	}
	after := func(seconds int64) func(*wayBack) { return func(c *wayBack) { c.Now += seconds } }
	add("as signed", "paid", nil)
	for _, state := range []string{"open", "closed", "settled"} { // the last one is of a later release
		add("signed "+state, state, signed("till_state", state))
	}
	add("10 minutes old", "paid", after(600))
	add("older", "too_old", after(601))
	add("a day old", "too_old", after(86_400))
	add("10 minutes ahead", "paid", after(-600))
	add("further ahead", "too_new", after(-601))
	for _, name := range []string{"till_state", "till_time", "till_signature"} {
		add("no "+name, "unsigned", func(c *wayBack) { delete(c.Query, name) })
		add("empty "+name, "unsigned", with(name, ""))
	}
	add("nothing", "unsigned", func(c *wayBack) { c.Query = map[string]string{} })
	add("no secret", "no_secret", func(c *wayBack) { c.Secret = ""; c.sign() })
	add("no till_checkout", "altered", func(c *wayBack) { delete(c.Query, "till_checkout") })
	add("another checkout in the query", "altered", with("till_checkout", otherCheckout))
	add("another order's checkout", "altered", func(c *wayBack) { c.Checkout = otherCheckout })
	add("another order's checkout, all of it", "altered", func(c *wayBack) { c.Checkout = otherCheckout; c.sign() })
	add("another secret", "altered", func(c *wayBack) { c.Secret = "i" + c.Secret[2:] + "Y" })
	add("open made paid", "altered", func(c *wayBack) { signed("till_state", "open")(c); c.Query["till_state"] = "paid" })
	add("an old one made new", "altered", func(c *wayBack) { c.Now += 3600; c.Query["till_time"] = strconv.FormatInt(c.Now, 10) })
	good := signReturn(returnSecret, paidCheckout, "paid", strconv.Itoa(signedAt))
	for _, wrong := range []struct{ name, signature string }{
		{"a signature cut", good[:42]}, {"a signature with more", good + "A"}, {"a signature with its padding", good + "="}, {"a signature with a space", good + " "},
		{"a signature with a line's end", good + "\n"}, {"no base64", "ä!?"}, {"bits after the end", good[:42] + last(good)},
		{"in the other alphabet", "+/" + good[2:]}, {"a short one", "A"},
	} {
		add(wrong.name, "altered", with("till_signature", wrong.signature))
	}
	for _, time := range []string{"-1794722713", "+1794722713", "1794722713.0", " 1794722713", "1794722713\n", "1e9", "now", "0x6b", "1794722713000", "١٧٩٤٧٢٢٧١٣"} {
		add("signed at "+strconv.Quote(time), "altered", signed("till_time", time))
	}
	return lines("cases", cases)
}

// last is another last letter for the same bytes: base64 leaves two bits of it open.
func last(signature string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for n := range letters {
		if letters[n] == signature[len(signature)-1] {
			return letters[n^1 : n^1+1]
		}
	}
	panic(signature)
}
