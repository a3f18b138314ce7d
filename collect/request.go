package collect

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"till"
	"till/internal/jsonx"
)

// The limits of a create request. The body as a whole is limited by jsonx.
const (
	maxReference     = 128
	maxDescription   = 255
	maxCustomerField = 255
	maxMetadataKeys  = 50
	maxMetadataBytes = 16 << 10
	maxMetadataDepth = 4
)

// Request is the body of a create call as the client sent it. A nil member
// was absent or null.
type Request struct {
	Method         *string         `json:"method"`
	Country        *string         `json:"country"`
	Amount         *AmountRequest  `json:"amount"`
	IdempotencyKey *string         `json:"idempotency_key"`
	Customer       *Customer       `json:"customer"`
	Reference      *string         `json:"reference"`
	Description    *string         `json:"description"`
	Charge         *ChargeRequest  `json:"charge"`
	Tax            *TaxRequest     `json:"tax"`
	Metadata       metadataRequest `json:"metadata"`
}

// AmountRequest is the amount member of a Request.
type AmountRequest struct {
	Value    *string `json:"value"`
	Currency *string `json:"currency"`
}

// Customer is the customer member of a Request. Methods say which members
// they require; the others that we know are kept and echoed.
type Customer struct {
	Phone *string `json:"phone"`
	Name  *string `json:"name"`
	Email *string `json:"email"`
}

// ChargeRequest is the charge member of a Request.
type ChargeRequest struct {
	Items    *[]ItemRequest `json:"items"`
	Subtotal *string        `json:"subtotal"`
}

// ItemRequest is one of the items of a charge.
type ItemRequest struct {
	Name      *string       `json:"name"`
	Quantity  numberRequest `json:"quantity"`
	UnitPrice *string       `json:"unit_price"`
	Total     *string       `json:"total"`
}

// TaxRequest is the tax member of a Request.
type TaxRequest struct {
	Inclusive *bool   `json:"inclusive"`
	Amount    *string `json:"amount"`
	Rate      *string `json:"rate"`
	Type      *string `json:"type"`
}

// numberRequest keeps a number as its literal: it is never read through a
// float.
type numberRequest struct{ literal string }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (n *numberRequest) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	switch {
	case err != nil:
		return err
	case v.Kind() == 'n':
	case v.Kind() == '0':
		n.literal = string(v)
	default:
		return errWrongType
	}
	return nil
}

// metadataRequest keeps an object as it was sent, white space apart.
type metadataRequest struct{ raw jsontext.Value }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *metadataRequest) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	switch {
	case err != nil:
		return err
	case v.Kind() == 'n':
	case v.Kind() == '{':
		m.raw = v.Clone()
		return m.raw.Compact()
	default:
		return errWrongType
	}
	return nil
}

var errWrongType = till.Errorf(till.CodeMalformedBody, "a value has the wrong type")

// order is a Request that has passed every rule that cannot change.
type order struct {
	key      till.ID
	sentKey  string
	amount   int64
	currency string
	method   string
	country  string
	phone    string
	charge   *till.Charge
	tax      *till.Tax
}

// badCountry stands for a country that was sent and refused already.
const badCountry = "?"

// checker gathers the mistakes of a body, all of them.
type checker struct {
	fields    []till.FieldError
	badNumber bool // a number of the charge or the tax is missing or wrong
}

func (c *checker) add(pointer string, code till.Code, detail string) {
	c.fields = append(c.fields, till.FieldError{Pointer: pointer, Code: code, Detail: detail})
}

// has reports whether a member was found wrong already.
func (c *checker) has(pointer string) bool {
	return slices.ContainsFunc(c.fields, func(f till.FieldError) bool { return f.Pointer == pointer })
}

// text checks a member of 1 to max characters and returns it, "" if absent.
func (c *checker) text(pointer string, s *string, max int, required bool) string {
	switch {
	case s == nil:
		if required {
			c.add(pointer, till.FieldRequired, "is required")
		}
		return ""
	case *s == "":
		c.add(pointer, till.FieldInvalidFormat, "must not be empty; leave it out instead")
	case len(*s) > max && utf8.RuneCountInString(*s) > max:
		c.add(pointer, till.FieldTooLong, "must have at most "+strconv.Itoa(max)+" characters")
	}
	return *s
}

// minor checks a required amount in minor units.
func (c *checker) minor(pointer string, s *string, required bool) (int64, bool) {
	if s == nil {
		if required {
			c.badNumber = true
			c.add(pointer, till.FieldRequired, "is required")
		}
		return 0, false
	}
	n, ok := till.ParseMinor(*s)
	if !ok {
		c.badNumber = true
		c.add(pointer, till.FieldInvalidFormat, "must be a whole number of minor units as a string of 1 to 15 digits without leading zeros, for example \"5000\"")
	}
	return n, ok
}

// check applies every rule that does not depend on anything that can change.
// Whether a method, a phone or an amount is served today is judged later, by
// the catalogue, and only after the key has been looked up.
func (r *Request) check(c *checker) *order {
	o := &order{}
	o.method = c.text("/method", r.Method, 64, true)
	if len(c.fields) > 0 {
		o.method = "" // refused already: whether it is enabled is no question
	}
	o.checkAmount(c, r.Amount)
	o.checkKey(c, r.IdempotencyKey)
	if r.Country != nil {
		if o.country = *r.Country; !letters(o.country, 2) {
			c.add("/country", till.FieldInvalidFormat, "must be an ISO 3166-1 alpha-2 code, for example \"CG\"")
			o.country = badCountry
		}
	}
	if r.Customer == nil {
		c.add("/customer", till.FieldRequired, "is required")
	} else {
		if r.Customer.Phone != nil {
			o.phone = *r.Customer.Phone
		}
		c.text("/customer/name", r.Customer.Name, maxCustomerField, false)
		c.text("/customer/email", r.Customer.Email, maxCustomerField, false)
	}
	c.text("/reference", r.Reference, maxReference, false)
	c.text("/description", r.Description, maxDescription, false)
	r.checkMetadata(c)
	o.checkCharge(c, r.Charge)
	o.checkTax(c, r.Tax)
	// The equations are judged only where every number in them is a number.
	if o.amount > 0 && !c.badNumber {
		c.fields = append(c.fields, till.CheckCharge(o.amount, o.charge, o.tax)...)
	}
	return o
}

func (o *order) checkAmount(c *checker, a *AmountRequest) {
	if a == nil {
		c.add("/amount", till.FieldRequired, "is required")
		return
	}
	n, ok := c.minor("/amount/value", a.Value, true)
	if ok && n == 0 {
		c.add("/amount/value", till.FieldAmountOutOfBounds, "must be greater than zero")
	}
	o.amount = n
	if a.Currency == nil {
		c.add("/amount/currency", till.FieldRequired, "is required")
	} else if o.currency = *a.Currency; !letters(o.currency, 3) {
		c.add("/amount/currency", till.FieldInvalidFormat, "must be an ISO 4217 code, for example \"XAF\"")
	}
}

func (o *order) checkKey(c *checker, key *string) {
	if key == nil {
		c.add("/idempotency_key", till.FieldRequired, "is required")
		return
	}
	id, err := till.ParseID(*key)
	if err != nil {
		c.add("/idempotency_key", till.FieldInvalidFormat, "must be a UUID in its canonical form of 8-4-4-4-12 hexadecimal digits")
	}
	o.key, o.sentKey = id, *key
}

func (o *order) checkCharge(c *checker, r *ChargeRequest) {
	if r == nil {
		return
	}
	o.charge = &till.Charge{}
	if n, ok := c.minor("/charge/subtotal", r.Subtotal, false); ok {
		o.charge.Subtotal = &n
	}
	switch {
	case r.Items == nil:
		c.badNumber = true
		c.add("/charge/items", till.FieldRequired, "is required when charge is sent")
		return
	case len(*r.Items) == 0:
		c.add("/charge/items", till.FieldInvalidFormat, "must have at least one item")
		return
	case len(*r.Items) > till.MaxItems:
		c.add("/charge/items", till.FieldTooMany, "must have at most "+strconv.Itoa(till.MaxItems)+" items")
		return
	}
	o.charge.Items = make([]till.Item, len(*r.Items))
	for i := range *r.Items {
		o.charge.Items[i] = checkItem(c, "/charge/items/"+strconv.Itoa(i), &(*r.Items)[i])
	}
}

func checkItem(c *checker, at string, r *ItemRequest) till.Item {
	it := till.Item{Name: c.text(at+"/name", r.Name, till.MaxItemName, true), Quantity: r.Quantity.literal}
	if _, ok := till.ParseQuantity(it.Quantity); !ok {
		c.badNumber = true
	}
	if it.Quantity == "" {
		c.add(at+"/quantity", till.FieldRequired, "is required")
	} else if _, ok := till.ParseQuantity(it.Quantity); !ok {
		c.add(at+"/quantity", till.FieldInvalidFormat, "must be a number greater than zero without exponent, at most 12 digits before and 6 after the point")
	}
	it.UnitPrice, _ = c.minor(at+"/unit_price", r.UnitPrice, true)
	it.Total, _ = c.minor(at+"/total", r.Total, true)
	return it
}

func (o *order) checkTax(c *checker, r *TaxRequest) {
	if r == nil {
		return
	}
	o.tax = &till.Tax{}
	if r.Inclusive == nil {
		c.badNumber = true
		c.add("/tax/inclusive", till.FieldRequired, "is required when tax is sent")
	} else {
		o.tax.Inclusive = *r.Inclusive
	}
	o.tax.Amount, _ = c.minor("/tax/amount", r.Amount, true)
	if r.Rate != nil {
		if o.tax.Rate = *r.Rate; !validRate(o.tax.Rate) {
			c.add("/tax/rate", till.FieldInvalidFormat, "must be a percentage with two decimals, for example \"18.00\"")
		}
	}
	o.tax.Type = c.text("/tax/type", r.Type, till.MaxTaxType, false)
}

func (r *Request) checkMetadata(c *checker) {
	raw := r.Metadata.raw
	if raw == nil {
		return
	}
	if len(raw) > maxMetadataBytes {
		c.add("/metadata", till.FieldTooLong, "must have at most 16 KiB when encoded")
	}
	if jsonx.Members(raw) > maxMetadataKeys {
		c.add("/metadata", till.FieldTooMany, "must have at most 50 keys")
	}
	if jsonx.Depth(raw) > maxMetadataDepth {
		c.add("/metadata", till.FieldTooDeep, "must be nested at most 4 deep")
	}
}

// letters reports whether s is exactly n capital letters.
func letters(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range n {
		if s[i] < 'A' || s[i] > 'Z' {
			return false
		}
	}
	return true
}

// validRate reports whether s is one to three digits, a point, two digits.
func validRate(s string) bool {
	if len(s) < 4 || len(s) > 6 || s[len(s)-3] != '.' {
		return false
	}
	for i := range len(s) {
		if i != len(s)-3 && (s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return true
}
