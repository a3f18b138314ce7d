package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"till"
)

// How many characters of an operator's texts are kept. The operators' documents allow no
// longer ones.
const (
	MaxReceipt = 128
	MaxHandle  = 255
	MaxCode    = 100
	MaxMessage = 300
	MaxNextURL = 2048
)

// Known reports whether the outcome is one of ours.
func (o Outcome) Known() bool {
	switch o {
	case Accepted, Duplicate, Rejected, Open, NotFound, Unrecognised, AnswerPending, Success, Failed, Expired, Reversed:
		return true
	}
	return false
}

// Clean returns the result with texts that every database accepts, and the names of those
// that it changed. The engine calls it on every answer. A text that a database rejects
// would keep the answer, and with it the money, from being recorded.
//
// Code and Message are for people: characters that cannot be stored are replaced. A changed
// Receipt is no longer the operator's, so it is quoted, always in the same way. Two
// different ones stay different, and a reader sees that it was changed. A Handle is useless
// if it is changed, so it is dropped instead. An invalid currency becomes XXX, "no
// currency". It must not become empty, because what the operator does not say is not
// compared.
func (r Result) Clean() (Result, []string) {
	var changed []string
	set := func(name string, text *string, clean string) {
		if *text != clean {
			*text, changed = clean, append(changed, name)
		}
	}
	set("receipt", &r.Receipt, distinctText(r.Receipt, MaxReceipt))
	set("reference", &r.Reference, distinctText(r.Reference, MaxReceipt))
	set("code", &r.Code, CleanText(r.Code, MaxCode))
	set("message", &r.Message, CleanText(r.Message, MaxMessage))
	set("reason", (*string)(&r.Reason), CleanText(string(r.Reason), MaxCode))
	if !storable(r.Handle, MaxHandle) || len(r.Handle) > MaxHandle {
		set("handle", &r.Handle, "")
	}
	if r.NextURL != "" && !IsNextURL(r.NextURL) {
		set("next_url", &r.NextURL, "")
	}
	if r.NextURL == "" {
		r.NextUntil = 0
	}
	if r.Amount.Currency != "" && !isCurrency(r.Amount.Currency) {
		set("currency", &r.Amount.Currency, currencyNone)
	}
	return r, changed
}

// IsNextURL reports whether a text is an address that a customer may be sent to: https, with
// nothing in it that hides its host; on this machine also http, for simulators.
func IsNextURL(text string) bool {
	if len(text) > MaxNextURL || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' || r == '"' || r == '<' || r == '>' }) {
		return false
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" || u.User != nil {
		return false
	}
	ip, notIP := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || notIP == nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && local
}

// currencyNone is ISO 4217's code for no currency.
const currencyNone = "XXX"

func isCurrency(s string) bool {
	if _, known := till.CurrencyDecimals(s); known {
		return true
	}
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// CleanText returns at most n characters of a text for people. It replaces characters that
// no database stores or no terminal should show.
func CleanText(s string, n int) string {
	if storable(s, n) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// distinctText returns a storable text that stands for s and for no other: s itself, if it
// is storable.
func distinctText(s string, n int) string {
	if storable(s, n) {
		return s
	}
	if q := strconv.Quote(s); storable(q, n) {
		return q
	}
	sum := sha256.Sum256([]byte(s))
	return CleanText(strconv.Quote(s), n/2) + "… sha256:" + hex.EncodeToString(sum[:])[:n/4]
}

// storable reports whether a text has at most n characters and every database stores it
// unchanged.
func storable(s string, n int) bool {
	for i, r := range s {
		if n == 0 || r == 0 || unicode.IsControl(r) {
			return false
		}
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return false
			}
		}
		n--
	}
	return true
}
