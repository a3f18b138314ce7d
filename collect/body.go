package collect

import (
	"github.com/go-json-experiment/json/jsontext"

	"till/internal/request"
)

// bodyVersion is the list of members that hash covers. A release that learns
// a member adds a version; rows keep the one they were hashed under, so that
// a genuine retry is never taken for a reused key.
const bodyVersion = 1

// hash returns the same value for two bodies exactly if they say the same. It
// reports false for a version that this program does not know.
func (r *Request) hash(version int) ([32]byte, bool) {
	if version != bodyVersion {
		return [32]byte{}, false
	}
	return request.Hash(func(h *request.Hasher) {
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
		h.Value(r.Metadata.Raw)
	})
}

// document renders what is echoed as sent: the members of the payment object
// that never change and that nothing here computes with.
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
		return append(b, "null"...)
	}
	return append(b, r.Metadata.Raw...)
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
