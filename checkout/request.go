package checkout

import (
	"strconv"
	"time"

	"till"
	"till/collect"
	"till/internal/request"
)

// The bounds of a checkout's life.
const (
	MinLife     = 5 * time.Minute
	MaxLife     = 30 * 24 * time.Hour
	DefaultLife = 24 * time.Hour
)

const maxMethods = 64

// Request is the body of a call that makes a checkout, as the client sent it. A nil member was
// absent or null.
type Request struct {
	Amount           *request.Amount        `json:"amount"`
	IdempotencyKey   *string                `json:"idempotency_key"`
	Reference        *string                `json:"reference"`
	Description      *string                `json:"description"`
	Metadata         request.Metadata       `json:"metadata"`
	Charge           *collect.ChargeRequest `json:"charge"`
	Tax              *collect.TaxRequest    `json:"tax"`
	ExpiresInSeconds *int64                 `json:"expires_in_seconds"`
	Country          *string                `json:"country"`
	Methods          *[]string              `json:"methods"`
	Phone            *string                `json:"phone"`
	PhoneFixed       *bool                  `json:"phone_fixed"`
	ReturnURL        *string                `json:"return_url"`
	Language         *string                `json:"language"`

	Unknown []till.FieldError `json:"-"` // as in request.Body
}

// bodyVersion is the version of the list of members that hash covers, as in package collect.
const bodyVersion = 1

// hash returns the same value for two bodies exactly if they mean the same. It reports false
// for a version that this program does not know.
func (r *Request) hash(version int) ([32]byte, bool) {
	if version != bodyVersion {
		return [32]byte{}, false
	}
	return request.Hash(func(h *request.Hasher) {
		r.order().HashOrder(h)
		if h.Object(r.ExpiresInSeconds != nil) {
			s := strconv.FormatInt(*r.ExpiresInSeconds, 10)
			h.Text(&s)
		}
		h.Text(r.Country)
		if h.Object(r.Methods != nil) {
			h.Length(len(*r.Methods))
			for i := range *r.Methods {
				h.Text(&(*r.Methods)[i])
			}
		}
		h.Text(r.Phone)
		h.Flag(r.PhoneFixed)
		h.Text(r.ReturnURL)
		h.Text(r.Language)
	})
}

// order returns what is copied to each ask.
func (r *Request) order() *collect.Request {
	return &collect.Request{Body: request.Body{Amount: r.Amount, IdempotencyKey: r.IdempotencyKey, Reference: r.Reference, Description: r.Description, Metadata: r.Metadata},
		Charge: r.Charge, Tax: r.Tax}
}

// life returns how long the checkout can be paid.
func (r *Request) life() time.Duration {
	if r.ExpiresInSeconds == nil {
		return DefaultLife
	}
	return time.Duration(*r.ExpiresInSeconds) * time.Second
}

// check applies all rules that cannot change over time, but for the way back.
func (r *Request) check(v *request.Validator) *request.Parsed {
	o := r.order().CheckOrder(v)
	if s := r.ExpiresInSeconds; s != nil && (*s < int64(MinLife/time.Second) || *s > int64(MaxLife/time.Second)) {
		v.Add("/expires_in_seconds", till.FieldInvalidFormat, "must be between 300 and 2592000")
	}
	if r.PhoneFixed != nil && *r.PhoneFixed && r.Phone == nil {
		v.Add("/phone", till.FieldRequired, "is required with phone_fixed")
	}
	r.checkOffer(v)
	return o
}

// checkOffer checks where and how may be paid.
func (r *Request) checkOffer(v *request.Validator) {
	if r.Country != nil {
		if _, known := till.CountryOf(*r.Country); !known {
			v.Add("/country", till.FieldCountryNotSupported, "is not a country that the service knows")
		}
	}
	if r.Methods != nil {
		if n := len(*r.Methods); n == 0 || n > maxMethods {
			v.Add("/methods", till.FieldInvalidFormat, "must have between 1 and "+strconv.Itoa(maxMethods)+" methods; leave it out for all")
		}
	}
	if r.Language != nil && *r.Language != "en" && *r.Language != "fr" {
		v.Add("/language", till.FieldInvalidFormat, "must be en or fr")
	}
}
