package checkout

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"till"
	"till/internal/request"
)

// maxLinkLife bounds the time of a link's end, which has no bound of its own.
const maxLinkLife = 10 * 365 * 24 * time.Hour

// LinkRequest is the body of a call that makes a link, as the client sent it. A nil member was
// absent or null.
type LinkRequest struct {
	Title          *string          `json:"title"`
	Description    *string          `json:"description"`
	Amount         *request.Amount  `json:"amount"`
	OpenAmount     *OpenAmount      `json:"open_amount"`
	AskReference   *AskReference    `json:"ask_reference"`
	IdempotencyKey *string          `json:"idempotency_key"`
	Metadata       request.Metadata `json:"metadata"`
	Country        *string          `json:"country"`
	Methods        *[]string        `json:"methods"`
	ReturnURL      *string          `json:"return_url"`
	Language       *string          `json:"language"`
	ExpiresAt      *string          `json:"expires_at"`

	Unknown []till.FieldError `json:"-"` // as in request.Body
}

// OpenAmount says that the payer types the amount, in minor units as all others.
type OpenAmount struct {
	Currency  *string   `json:"currency"`
	Min       *string   `json:"min"`
	Max       *string   `json:"max"`
	Suggested *[]string `json:"suggested"`
}

// AskReference says what else the payer is asked for.
type AskReference struct {
	Label    *string `json:"label"`
	Required *bool   `json:"required"`
}

// linkBodyVersion is the version of the list of members that LinkRequest.hash covers.
const linkBodyVersion = 1

// hash is Request.hash for a link.
func (r *LinkRequest) hash(version int) ([32]byte, bool) {
	if version != linkBodyVersion {
		return [32]byte{}, false
	}
	return request.Hash(func(h *request.Hasher) {
		h.Text(r.Title)
		h.Text(r.Description)
		h.Amount(r.Amount)
		if h.Object(r.OpenAmount != nil) {
			h.Text(r.OpenAmount.Currency)
			h.Text(r.OpenAmount.Min)
			h.Text(r.OpenAmount.Max)
			hashTexts(h, r.OpenAmount.Suggested)
		}
		if h.Object(r.AskReference != nil) {
			h.Text(r.AskReference.Label)
			h.Flag(r.AskReference.Required)
		}
		h.Value(r.Metadata.Raw)
		h.Text(r.Country)
		hashTexts(h, r.Methods)
		h.Text(r.ReturnURL)
		h.Text(r.Language)
		h.Text(r.ExpiresAt)
	})
}

func hashTexts(h *request.Hasher, texts *[]string) {
	if h.Object(texts != nil) {
		h.Length(len(*texts))
		for i := range *texts {
			h.Text(&(*texts)[i])
		}
	}
}

// check applies all rules that cannot change over time, but for the way back, and returns the
// link.
func (r *LinkRequest) check(v *request.Validator) (l till.Link, key till.ID) {
	l.Title = checkLabel(v, "/title", r.Title, till.MaxLinkTitle)
	amount := r.Amount
	switch {
	case r.Amount == nil && r.OpenAmount == nil:
		v.Add("/amount", till.FieldRequired, "is required, or open_amount: the payer types it")
	case r.Amount != nil && r.OpenAmount != nil:
		v.Add("/open_amount", till.FieldInvalidFormat, "must not be sent with amount: either is meant")
	case r.OpenAmount != nil:
		r.OpenAmount.check(v, &l)
	}
	b := request.Body{Amount: amount, IdempotencyKey: r.IdempotencyKey, Description: r.Description, Metadata: r.Metadata}
	o := b.CheckRefund(v, func(*request.Parsed) {})
	if amount != nil {
		l.Amount = till.Money{Minor: o.Amount, Currency: o.Currency}
	}
	if a := r.AskReference; a != nil {
		l.AskLabel = checkLabel(v, "/ask_reference/label", a.Label, till.MaxAskLabel)
		l.AskRequired = a.Required != nil && *a.Required
	}
	(&Request{Country: r.Country, Methods: r.Methods, Language: r.Language}).checkOffer(v)
	if r.ExpiresAt != nil {
		l.ExpiresAt = checkTime(v, *r.ExpiresAt)
	}
	l.IdempotencyKey, l.Country, l.ReturnURL, l.Language = o.SentKey, request.TextOf(r.Country), request.TextOf(r.ReturnURL), request.TextOf(r.Language)
	if r.Methods != nil {
		l.Methods = *r.Methods
	}
	l.Document = append([]byte(nil), `"description":`...)
	l.Document = request.AppendText(l.Document, r.Description)
	l.Document = append(l.Document, `,"metadata":`...)
	if r.Metadata.Raw == nil {
		l.Document = append(l.Document, "null"...)
	}
	l.Document = append(l.Document, r.Metadata.Raw...)
	return l, o.Key
}

// check reads the bounds of what the payer types.
func (o *OpenAmount) check(v *request.Validator, l *till.Link) {
	if o.Currency == nil {
		v.Add("/open_amount/currency", till.FieldRequired, "is required")
	} else if _, known := till.CurrencyDecimals(*o.Currency); !known {
		v.Add("/open_amount/currency", till.FieldInvalidFormat, "must be an ISO 4217 code, for example \"XAF\"")
	} else {
		l.Amount.Currency = *o.Currency
	}
	bound := func(pointer string, text *string) int64 {
		n, ok := v.Minor(pointer, text, false)
		if ok && n == 0 {
			v.Add(pointer, till.FieldAmountOutOfBounds, "must be greater than zero")
		}
		return n
	}
	l.Min, l.Max = bound("/open_amount/min", o.Min), bound("/open_amount/max", o.Max)
	if l.Max > 0 && l.Min > l.Max {
		v.Add("/open_amount/min", till.FieldAmountOutOfBounds, "must be at most max")
	}
	if o.Suggested == nil {
		return
	}
	if len(*o.Suggested) > till.MaxSuggested {
		v.Add("/open_amount/suggested", till.FieldTooMany, "must have at most "+strconv.Itoa(till.MaxSuggested)+" amounts")
		return
	}
	for i := range *o.Suggested {
		pointer := "/open_amount/suggested/" + strconv.Itoa(i)
		n := bound(pointer, &(*o.Suggested)[i])
		if n > 0 && !l.Fits(n) {
			v.Add(pointer, till.FieldAmountOutOfBounds, "must be between min and max")
		}
		l.Suggested = append(l.Suggested, n)
	}
}

// checkLabel checks a short text that pages show as it is: one line, in which nothing is hidden.
func checkLabel(v *request.Validator, pointer string, text *string, most int) string {
	s := v.Text(pointer, text, most, true)
	if !plain(s) {
		v.Add(pointer, till.FieldInvalidFormat, "must be one line of plain text, without spaces at its ends and without marks that are not seen or turn the direction of writing")
	}
	return s
}

// plain reports whether a text is one line in which nothing is hidden.
func plain(s string) bool {
	return s == strings.TrimSpace(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || r == unicode.ReplacementChar
	})
}

func checkTime(v *request.Validator, text string) till.Time {
	at, ok := till.ParseTime(text)
	if !ok || strings.Contains(text, " ") {
		v.Add("/expires_at", till.FieldInvalidFormat, "must be an RFC 3339 time in UTC")
		return 0
	}
	return at
}

// checkEnd refuses an end that is no time to come.
func checkEnd(v *request.Validator, at, now till.Time) {
	if !at.IsZero() && (at < now.Add(MinLife) || at > now.Add(maxLinkLife)) {
		v.Add("/expires_at", till.FieldInvalidFormat, "must be at least five minutes and at most ten years from now")
	}
}

// LinkPatch is the body of a call that changes a link. The members that never change are known,
// so that nobody believes that they did.
type LinkPatch struct {
	Active    *bool   `json:"active"`
	Title     *string `json:"title"`
	ExpiresAt *string `json:"expires_at"` // empty: it never ends

	Amount     *request.Amount `json:"amount"`
	OpenAmount *OpenAmount     `json:"open_amount"`
}

// Change returns what the body changes. It returns CodeValidationFailed with what is wrong.
func (p *LinkPatch) Change() (LinkChange, error) {
	c := LinkChange{Active: p.Active, Title: p.Title}
	var v request.Validator
	if p.Amount != nil {
		v.Add("/amount", till.FieldInvalidFormat, "never changes: make another link")
	}
	if p.OpenAmount != nil {
		v.Add("/open_amount", till.FieldInvalidFormat, "never changes: make another link")
	}
	if s := p.ExpiresAt; s != nil {
		var at till.Time
		if *s != "" {
			at = checkTime(&v, *s)
		}
		c.ExpiresAt = &at
	}
	if len(v.Fields) > 0 {
		return c, v.Refusal()
	}
	return c, nil
}
