package collect

import (
	"bytes"
	"context"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"till"
	"till/internal/jsonx"
	"till/internal/request"
	"till/store"
)

// The limits of a create request, besides those of package request.
const maxCustomerField = 255

// Request is the body of a create call as the client sent it. A nil member
// was absent or null.
type Request struct {
	request.Body
	Customer *Customer      `json:"customer"`
	Charge   *ChargeRequest `json:"charge"`
	Tax      *TaxRequest    `json:"tax"`

	ReturnURL         *string `json:"return_url"`         // in FlowRedirect
	AuthorizationCode *string `json:"authorization_code"` // in FlowCode

	Ask *Ask `json:"-"` // nil: it is not asked within a checkout
}

// Ask says within which checkout a payment is asked.
type Ask struct {
	Checkout till.ID
	Link     till.ID // that opened the checkout; zero: none
	N        int
	// Admit is called in the commit that makes the payment, under the lock of the client's head.
	// If it returns an error, nothing is made.
	Admit func(ctx context.Context, tx *store.Tx) error
}

// Customer is the customer member of a Request. Methods say which members they require;
// other known members are kept and echoed.
type Customer struct {
	Phone *string `json:"phone"`
	Name  *string `json:"name"`
	Email *string `json:"email"`
}

// TakesUnknownMembers implements jsonx.Lenient: clients send what they know of a customer.
func (*Customer) TakesUnknownMembers() {}

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

// numberRequest keeps a number as its literal: it is never converted to a float.
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
		return request.ErrWrongType
	}
	return nil
}

// check applies all rules that cannot change over time.
func (r *Request) check(c *checker) *request.Parsed {
	o := r.Body.Check(c, func(o *request.Parsed) {
		if r.Customer == nil {
			c.Add("/customer", till.FieldRequired, "is required")
			return
		}
		o.Phone = request.TextOf(r.Customer.Phone)
		c.Text("/customer/name", r.Customer.Name, maxCustomerField, false)
		c.Text("/customer/email", r.Customer.Email, maxCustomerField, false)
	})
	charge, tax := checkCharge(c, r.Charge), checkTax(c, r.Tax)
	if r.AuthorizationCode != nil && !validCode(*r.AuthorizationCode) {
		c.Add("/authorization_code", till.FieldInvalidFormat, "must be the one-time code as the operator gave it: 1 to 36 letters and digits")
	}
	// The equations are checked only if every number in them is valid.
	if o.Amount > 0 && !c.BadNumber {
		c.Fields = append(c.Fields, till.CheckCharge(o.Amount, charge, tax)...)
	}
	return o
}

// maxCode is how long a one-time code may be.
const maxCode = 36

// validCode reports whether s is 1 to 36 letters and digits.
func validCode(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (s[i] < '0' || s[i] > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != "" && len(s) <= maxCode
}

// checkFlow returns the check of what a market's flow needs besides the number. What another
// flow needs is refused: who sends it expects something that would not happen. Where an ask's
// page sends the customer back to is ours.
func (r *Request) checkFlow(live bool, own []string) func(c *checker, k *till.Market) {
	return func(c *checker, k *till.Market) {
		switch {
		case k.Flow == till.FlowRedirect && r.ReturnURL == nil:
			c.Add("/return_url", till.FieldRequired, "is required by this method in this country: the customer approves on the operator's page, and comes back to this address")
		case k.Flow == till.FlowRedirect && r.Ask == nil:
			request.CheckReturnURL(c, r.ReturnURL, live, own)
		case k.Flow != till.FlowRedirect && r.ReturnURL != nil:
			c.Add("/return_url", till.FieldNotTaken, "is not taken by this method in this country: the customer is sent nowhere; leave it out")
		}
		switch {
		case k.Flow == till.FlowCode && r.AuthorizationCode == nil:
			c.Add("/authorization_code", till.FieldRequired, "is required by this method in this country: the customer gets it from the operator first")
		case k.Flow != till.FlowCode && r.AuthorizationCode != nil:
			c.Add("/authorization_code", till.FieldNotTaken, "is not taken by this method in this country; leave it out")
		}
	}
}

// party returns the payer.
func (r *Request) party() request.Party {
	if r.Customer == nil {
		return request.Party{At: "/customer", Absent: true}
	}
	return request.Party{At: "/customer", Phone: r.Customer.Phone}
}

type checker = request.Validator

func checkCharge(c *checker, r *ChargeRequest) *till.Charge {
	if r == nil {
		return nil
	}
	charge := &till.Charge{}
	if n, ok := c.Minor("/charge/subtotal", r.Subtotal, false); ok {
		charge.Subtotal = &n
	}
	switch {
	case r.Items == nil:
		c.BadNumber = true
		c.Add("/charge/items", till.FieldRequired, "is required when charge is sent")
		return charge
	case len(*r.Items) == 0:
		c.Add("/charge/items", till.FieldInvalidFormat, "must have at least one item")
		return charge
	case len(*r.Items) > till.MaxItems:
		c.Add("/charge/items", till.FieldTooMany, "must have at most "+strconv.Itoa(till.MaxItems)+" items")
		return charge
	}
	charge.Items = make([]till.Item, len(*r.Items))
	for i := range *r.Items {
		charge.Items[i] = checkItem(c, "/charge/items/"+strconv.Itoa(i), &(*r.Items)[i])
	}
	return charge
}

func checkItem(c *checker, at string, r *ItemRequest) till.Item {
	it := till.Item{Name: c.Text(at+"/name", r.Name, till.MaxItemName, true), Quantity: r.Quantity.literal}
	if _, ok := till.ParseQuantity(it.Quantity); !ok {
		c.BadNumber = true
	}
	if it.Quantity == "" {
		c.Add(at+"/quantity", till.FieldRequired, "is required")
	} else if _, ok := till.ParseQuantity(it.Quantity); !ok {
		c.Add(at+"/quantity", till.FieldInvalidFormat, "must be a number greater than zero without exponent, at most 12 digits before and 6 after the point")
	}
	it.UnitPrice, _ = c.Minor(at+"/unit_price", r.UnitPrice, true)
	it.Total, _ = c.Minor(at+"/total", r.Total, true)
	return it
}

func checkTax(c *checker, r *TaxRequest) *till.Tax {
	if r == nil {
		return nil
	}
	tax := &till.Tax{}
	if r.Inclusive == nil {
		c.BadNumber = true
		c.Add("/tax/inclusive", till.FieldRequired, "is required when tax is sent")
	} else {
		tax.Inclusive = *r.Inclusive
	}
	tax.Amount, _ = c.Minor("/tax/amount", r.Amount, true)
	if r.Rate != nil {
		if tax.Rate = *r.Rate; !validRate(tax.Rate) {
			c.Add("/tax/rate", till.FieldInvalidFormat, "must be a percentage with two decimals, for example \"18.00\"")
		}
	}
	tax.Type = c.Text("/tax/type", r.Type, till.MaxTaxType, false)
	return tax
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

// The versions of the list of members that hash covers. A release with a new member adds a
// version. Rows keep the version they were hashed under, so a genuine retry never counts as a
// reused key. A body without the new members keeps the version that older releases know.
const (
	bodyVersion = 1
	flowVersion = 2 // with return_url and authorization_code
)

// version returns the version that a new row is hashed under. What a page adds to an ask is
// not its payer's.
func (r *Request) version() int {
	if r.Ask == nil && (r.ReturnURL != nil || r.AuthorizationCode != nil) {
		return flowVersion
	}
	return bodyVersion
}

// hasher returns hash with what stands for a one-time code in it.
func (r *Request) hasher(mac func(code string) string) func(version int) ([32]byte, bool) {
	return func(version int) ([32]byte, bool) { return r.hash(version, mac) }
}

// hash returns the same value for two bodies exactly if they mean the same. It reports
// false for a version that this program does not know.
func (r *Request) hash(version int, mac func(code string) string) ([32]byte, bool) {
	if version != bodyVersion && version != flowVersion {
		return [32]byte{}, false
	}
	return request.Hash(func(h *request.Hasher) {
		if version == flowVersion {
			h.Text(r.ReturnURL)
			if h.Object(r.AuthorizationCode != nil) {
				h.Text(new(mac(*r.AuthorizationCode)))
			}
		}
		h.Text(r.Method)
		h.Text(r.Country)
		h.Amount(r.Amount)
		if h.Object(r.Customer != nil) {
			h.Text(r.Customer.Phone)
			h.Text(r.Customer.Name)
			h.Text(r.Customer.Email)
		}
		h.Text(r.Reference)
		h.Text(r.Description)
		r.hashMoney(h)
		h.Value(r.Metadata.Raw)
	})
}

// hashMoney writes charge and tax.
func (r *Request) hashMoney(h *request.Hasher) {
	if h.Object(r.Charge != nil) {
		h.Text(r.Charge.Subtotal)
		if h.Object(r.Charge.Items != nil) {
			h.Length(len(*r.Charge.Items))
			for i := range *r.Charge.Items {
				it := &(*r.Charge.Items)[i]
				h.Text(it.Name)
				h.Value(jsontext.Value(it.Quantity.literal))
				h.Text(it.UnitPrice)
				h.Text(it.Total)
			}
		}
	}
	if h.Object(r.Tax != nil) {
		h.Flag(r.Tax.Inclusive)
		h.Text(r.Tax.Amount)
		h.Text(r.Tax.Rate)
		h.Text(r.Tax.Type)
	}
}

// document returns what is echoed as sent: the members of the payment object that never
// change and that nothing here computes with.
func (r *Request) document() []byte {
	b := make([]byte, 0, 192+len(r.Metadata.Raw))
	b = append(b, `"description":`...)
	b = request.AppendText(b, r.Description)
	b = append(b, `,"customer":{"phone":`...)
	b = request.AppendText(b, r.Customer.Phone)
	b = append(b, `,"name":`...)
	b = request.AppendText(b, r.Customer.Name)
	b = append(b, `,"email":`...)
	b = request.AppendText(b, r.Customer.Email)
	b = append(b, `},"charge":`...)
	b = r.Charge.append(b)
	b = append(b, `,"tax":`...)
	b = r.Tax.append(b)
	b = append(b, `,"metadata":`...)
	if r.Metadata.Raw == nil {
		b = append(b, "null"...)
	}
	b = append(b, r.Metadata.Raw...)
	if r.ReturnURL != nil {
		b = append(b, `,"return_url":`...)
		b = request.AppendText(b, r.ReturnURL)
	}
	if r.Ask == nil {
		return b
	}
	b = append(b, `,"checkout":{"id":"`...)
	b = r.Ask.Checkout.Append(b)
	b = append(b, `","link_id":`...)
	if r.Ask.Link.IsZero() {
		b = append(b, "null"...)
	} else {
		b = append(r.Ask.Link.Append(append(b, '"')), '"')
	}
	b = append(b, `,"n":`...)
	b = strconv.AppendInt(b, int64(r.Ask.N), 10)
	return append(b, '}')
}

func (c *ChargeRequest) append(b []byte) []byte {
	if c == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"items":[`...)
	for i := range *c.Items {
		it := &(*c.Items)[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":`...)
		b = request.AppendText(b, it.Name)
		b = append(b, `,"quantity":`...)
		b = append(b, it.Quantity.literal...)
		b = append(b, `,"unit_price":`...)
		b = request.AppendText(b, it.UnitPrice)
		b = append(b, `,"total":`...)
		b = request.AppendText(b, it.Total)
		b = append(b, '}')
	}
	b = append(b, `],"subtotal":`...)
	b = request.AppendText(b, c.Subtotal)
	return append(b, '}')
}

func (t *TaxRequest) append(b []byte) []byte {
	if t == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"inclusive":`...)
	if *t.Inclusive {
		b = append(b, "true"...)
	} else {
		b = append(b, "false"...)
	}
	b = append(b, `,"amount":`...)
	b = request.AppendText(b, t.Amount)
	b = append(b, `,"rate":`...)
	b = request.AppendText(b, t.Rate)
	b = append(b, `,"type":`...)
	b = request.AppendText(b, t.Type)
	return append(b, '}')
}

// stored is what CheckStored reads of a payment's document.
type stored struct {
	Charge *ChargeRequest `json:"charge"`
	Tax    *TaxRequest    `json:"tax"`
}

// CheckStored returns the mistakes in a stored payment's charge and tax: none, if the rules
// were applied when it was written (I15).
func CheckStored(p *till.Payment) []till.FieldError {
	var d stored
	if err := jsonx.Decode(bytes.Join([][]byte{[]byte("{"), p.Document, []byte("}")}, nil), &d); err != nil {
		return []till.FieldError{{Pointer: "", Code: till.CodeMalformedBody, Detail: err.Error()}}
	}
	var c checker
	charge, tax := checkCharge(&c, d.Charge), checkTax(&c, d.Tax)
	return append(c.Fields, till.CheckCharge(p.Amount.Minor, charge, tax)...)
}
