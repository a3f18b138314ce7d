package collect

import (
	"bytes"
	"strconv"
	"strings"

	"till"
	"till/engine"
	"till/internal/jsonx"
	"till/internal/request"
)

// An order is the part of a create request that does not say who pays, and how: amount, key,
// reference, description, charge, tax and metadata. A checkout has one, and copies it to each
// of its asks.

// CheckOrder applies all rules of an order that cannot change over time.
func (r *Request) CheckOrder(c *request.Validator) *request.Parsed {
	if r.Amount == nil {
		c.Add("/amount", till.FieldRequired, "is required")
	}
	o := r.Body.CheckRefund(c, func(*request.Parsed) {})
	charge, tax := checkCharge(c, r.Charge), checkTax(c, r.Tax)
	if o.Amount > 0 && !c.BadNumber {
		c.Fields = append(c.Fields, till.CheckCharge(o.Amount, charge, tax)...)
	}
	return o
}

// HashOrder writes what an order is.
func (r *Request) HashOrder(h *request.Hasher) {
	h.Amount(r.Amount)
	h.Text(r.Reference)
	h.Text(r.Description)
	r.hashMoney(h)
	h.Value(r.Metadata.Raw)
}

// OrderDocument returns the members of an order that are echoed as sent and copied to each
// payment: description, charge, tax, metadata.
func (r *Request) OrderDocument() []byte {
	b := append(make([]byte, 0, 128+len(r.Metadata.Raw)), `"description":`...)
	b = request.AppendText(b, r.Description)
	b = append(b, `,"charge":`...)
	b = r.Charge.append(b)
	b = append(b, `,"tax":`...)
	b = r.Tax.append(b)
	b = append(b, `,"metadata":`...)
	if r.Metadata.Raw == nil {
		return append(b, "null"...)
	}
	return append(b, r.Metadata.Raw...)
}

// order is what OrderDocument writes.
type order struct {
	Description *string          `json:"description"`
	Charge      *ChargeRequest   `json:"charge"`
	Tax         *TaxRequest      `json:"tax"`
	Metadata    request.Metadata `json:"metadata"`
}

// OfOrder returns a request with the members that OrderDocument wrote.
func OfOrder(document []byte) (*Request, error) {
	var o order
	if err := jsonx.Decode(bytes.Join([][]byte{[]byte("{"), document, []byte("}")}, nil), &o); err != nil {
		return nil, err
	}
	return &Request{Body: request.Body{Description: o.Description, Metadata: o.Metadata}, Charge: o.Charge, Tax: o.Tax}, nil
}

// askMember begins the last member of the document of a payment that was asked within a checkout.
const askMember = `,"checkout":{"id":"`

// AskOf returns within which checkout a stored payment was asked, and as which ask; false if it
// was not. No member that a client sends ends so.
func AskOf(document []byte) (checkout till.ID, n int, ok bool) {
	i := bytes.LastIndex(document, []byte(askMember))
	if i < 0 {
		return checkout, 0, false
	}
	id, rest, found := strings.Cut(string(document[i+len(askMember):]), `",`)
	if link, n, has := strings.Cut(rest, `,"n":`); has && strings.HasPrefix(link, `"link_id":`) {
		rest = n
	} else {
		rest = strings.TrimPrefix(rest, `"n":`) // of before there were links
	}
	number, closed := strings.CutSuffix(rest, "}")
	checkout, err := till.ParseID(id)
	n, wrong := strconv.Atoi(number)
	return checkout, n, found && closed && err == nil && wrong == nil
}

// Refusal returns what Create would refuse a request for now, without a look at its key or at
// operators' health; nil: nothing. It writes nothing.
func (c *Collector) Refusal(who engine.Client, r *Request) error {
	var v checker
	o := r.check(&v)
	if len(v.Fields) == 0 {
		o.CheckMarket(&v, request.Market{Enabled: who.Enabled, Routed: len(c.Routed(who.Client, o.Method, o.Country, o.Currency)) > 0,
			Leads: func(method, country, currency string) bool {
				return len(c.Routed(who.Client, method, country, currency)) > 0
			}, Flow: r.checkFlow(who.Mode != till.Test, c.c.Hosts)}, r.party())
	}
	if len(v.Fields) > 0 {
		return v.Refusal()
	}
	return nil
}
