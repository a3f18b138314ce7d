package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"till"
)

// The most that is kept of an operator's texts, in characters. What is longer
// than the operators' own documents allow is nothing that they say.
const (
	MaxReceipt = 128
	MaxHandle  = 255
	MaxCode    = 100
	MaxMessage = 300
)

// Known reports whether the outcome is one of ours.
func (o Outcome) Known() bool {
	switch o {
	case Accepted, Duplicate, Rejected, Open, NotFound, Unrecognised, AnswerPending, Success, Failed, Expired, Reversed:
		return true
	}
	return false
}

// Clean returns the result with texts that every database keeps, and the names
// of those that it had to change. It is called on every answer, whatever the
// adapter did: a text that a database refuses would keep the answer from being
// recorded, and with it the money.
//
// Code and Message are words for people: what cannot be kept is replaced. A
// Receipt that is changed is no longer the operator's, so it is quoted, always
// the same way: two that differ stay different, and somebody who sees it knows.
// A Handle is only good as it was given: one that cannot be kept is dropped. A
// currency that is none becomes XXX, "no currency", and never nothing, because
// what the operator does not say is not compared.
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
	if r.Amount.Currency != "" && !isCurrency(r.Amount.Currency) {
		set("currency", &r.Amount.Currency, currencyNone)
	}
	return r, changed
}

// currencyNone is what ISO 4217 writes where no currency is involved.
const currencyNone = "XXX"

func isCurrency(s string) bool {
	if _, known := till.CurrencyDecimals(s); known {
		return true
	}
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// CleanText returns at most n characters of a text for people, with what no
// database keeps, or no terminal should see, replaced.
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

// distinctText returns a text that stands for another and for no other: itself, if
// it can be kept.
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

// storable reports whether a text is at most n characters that every database
// keeps as they are.
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
