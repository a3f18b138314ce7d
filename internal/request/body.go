package request

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"till"
	"till/internal/jsonx"
)

// The limits of a create request. The body as a whole is limited by jsonx.
const (
	maxMethod        = 64
	maxReference     = 128
	maxDescription   = 255
	maxMetadataKeys  = 50
	maxMetadataBytes = 16 << 10
	maxMetadataDepth = 4
)

// Body is the part that both create bodies share, as the client sent it. A nil member was
// absent or null.
type Body struct {
	Method         *string  `json:"method"`
	Country        *string  `json:"country"`
	Amount         *Amount  `json:"amount"`
	IdempotencyKey *string  `json:"idempotency_key"`
	Reference      *string  `json:"reference"`
	Description    *string  `json:"description"`
	Metadata       Metadata `json:"metadata"`

	// Unknown are mistakes of members that nobody knows. They reject only what is new: an
	// earlier release may have taken the body.
	Unknown []till.FieldError `json:"-"`
}

// Amount is the amount member of a body.
type Amount struct {
	Value    *string `json:"value"`
	Currency *string `json:"currency"`
}

// Metadata keeps an object as sent, except for white space.
type Metadata struct{ Raw jsontext.Value }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *Metadata) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	switch {
	case err != nil:
		return err
	case v.Kind() == 'n':
	case v.Kind() == '{':
		m.Raw = v.Clone()
		return m.Raw.Compact()
	default:
		return ErrWrongType
	}
	return nil
}

// ErrWrongType says that a member has a wrong type.
var ErrWrongType = till.Errorf(till.CodeMalformedBody, "a value has the wrong type")

// Parsed is a body that has passed every rule that cannot change.
type Parsed struct {
	Key      till.ID
	SentKey  string
	Amount   int64
	Currency string
	Method   string
	Country  string
	Phone    string    // the payer's or recipient's; set by the caller
	Flow     till.Flow // of the market; set by CheckMarket

	unknown []till.FieldError
}

// badCountry stands for a country that was rejected already.
const badCountry = "?"

// Check applies all rules that cannot change over time. CheckMarket decides later, after
// the key has been looked up, whether a method, a phone or an amount is served now.
//
// between checks the members in the middle, so that mistakes are listed in the order of the
// members.
func (b *Body) Check(c *Validator, between func(o *Parsed)) *Parsed {
	o := &Parsed{unknown: b.Unknown}
	o.Method = c.Text("/method", b.Method, maxMethod, true)
	if len(c.Fields) > 0 {
		o.Method = "" // rejected already: it need not be enabled
	}
	o.checkAmount(c, b.Amount)
	o.checkKey(c, b.IdempotencyKey)
	if b.Country != nil {
		if o.Country = *b.Country; !letters(o.Country, 2) {
			c.Add("/country", till.FieldInvalidFormat, "must be an ISO 3166-1 alpha-2 code, for example \"CG\"")
			o.Country = badCountry
		}
	}
	between(o)
	c.Text("/reference", b.Reference, maxReference, false)
	c.Text("/description", b.Description, maxDescription, false)
	b.checkMetadata(c)
	return o
}

// CheckRefund is Check for a refund, whose market and party are its payment's. Without an
// amount, all that is left of the payment goes back.
func (b *Body) CheckRefund(c *Validator, between func(o *Parsed)) *Parsed {
	o := &Parsed{}
	if b.Amount != nil {
		o.checkAmount(c, b.Amount)
	}
	o.checkKey(c, b.IdempotencyKey)
	between(o)
	c.Text("/reference", b.Reference, maxReference, false)
	c.Text("/description", b.Description, maxDescription, false)
	b.checkMetadata(c)
	return o
}

func (o *Parsed) checkAmount(c *Validator, a *Amount) {
	if a == nil {
		c.Add("/amount", till.FieldRequired, "is required")
		return
	}
	n, ok := c.Minor("/amount/value", a.Value, true)
	if ok && n == 0 {
		c.Add("/amount/value", till.FieldAmountOutOfBounds, "must be greater than zero")
	}
	o.Amount = n
	if a.Currency == nil {
		c.Add("/amount/currency", till.FieldRequired, "is required")
	} else if o.Currency = *a.Currency; !letters(o.Currency, 3) {
		c.Add("/amount/currency", till.FieldInvalidFormat, "must be an ISO 4217 code, for example \"XAF\"")
	}
}

func (o *Parsed) checkKey(c *Validator, key *string) {
	if key == nil {
		c.Add("/idempotency_key", till.FieldRequired, "is required")
		return
	}
	id, err := till.ParseID(*key)
	if err != nil {
		c.Add("/idempotency_key", till.FieldInvalidFormat, "must be a UUID in its canonical form of 8-4-4-4-12 hexadecimal digits")
	}
	o.Key, o.SentKey = id, *key
}

func (b *Body) checkMetadata(c *Validator) {
	raw := b.Metadata.Raw
	if raw == nil {
		return
	}
	if len(raw) > maxMetadataBytes {
		c.Add("/metadata", till.FieldTooLong, "must have at most 16 KiB when encoded")
	}
	if jsonx.Members(raw) > maxMetadataKeys {
		c.Add("/metadata", till.FieldTooMany, "must have at most 50 keys")
	}
	if jsonx.Depth(raw) > maxMetadataDepth {
		c.Add("/metadata", till.FieldTooDeep, "must be nested at most 4 deep")
	}
}

// Description returns the client's description in a stored row's document.
func Description(document []byte) string {
	if bytes.HasPrefix(document, []byte(`"description":null`)) {
		return ""
	}
	var d struct {
		Description *string `json:"description"`
	}
	if err := jsonx.Decode(bytes.Join([][]byte{[]byte("{"), document, []byte("}")}, nil), &d); err != nil {
		return ""
	}
	return TextOf(d.Description)
}

// TextOf returns the text of a member, "" if it was not sent.
func TextOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// AppendText appends a member as sent, null if it was not.
func AppendText(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return jsonx.AppendString(b, *s)
}
