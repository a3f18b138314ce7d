package collect

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"till/internal/jsonx"
)

// bodyVersion is the list of members that hash covers. A release that learns
// a member adds a version; rows keep the one they were hashed under, so that
// a genuine retry is never taken for a reused key.
const bodyVersion = 1

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// hash returns the same value for two bodies exactly if they say the same:
// member order, white space and unknown members do not count, null equals
// absent, numbers compare by value, strings by code points. It reports false
// for a version that this program does not know.
func (r *Request) hash(version int) ([32]byte, bool) {
	if version != bodyVersion {
		return [32]byte{}, false
	}
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	h := hasher{b: (*buf)[:0]}

	h.text(r.Method)
	h.text(r.Country)
	if h.object(r.Amount != nil) {
		h.text(r.Amount.Value)
		h.text(r.Amount.Currency)
	}
	if h.object(r.Customer != nil) {
		h.text(r.Customer.Phone)
		h.text(r.Customer.Name)
		h.text(r.Customer.Email)
	}
	h.text(r.Reference)
	h.text(r.Description)
	if h.object(r.Charge != nil) {
		h.text(r.Charge.Subtotal)
		if h.object(r.Charge.Items != nil) {
			h.length(len(*r.Charge.Items))
			for i := range *r.Charge.Items {
				it := &(*r.Charge.Items)[i]
				h.text(it.Name)
				h.value(jsontext.Value(it.Quantity.literal))
				h.text(it.UnitPrice)
				h.text(it.Total)
			}
		}
	}
	if h.object(r.Tax != nil) {
		h.flag(r.Tax.Inclusive)
		h.text(r.Tax.Amount)
		h.text(r.Tax.Rate)
		h.text(r.Tax.Type)
	}
	h.value(r.Metadata.raw)
	*buf = h.b
	return sha256.Sum256(h.b), h.err == nil
}

// hasher writes an unambiguous form: a mark for absent or present, and a
// length before every text.
type hasher struct {
	b   []byte
	err error
}

func (h *hasher) object(present bool) bool {
	if !present {
		h.b = append(h.b, 0)
		return false
	}
	h.b = append(h.b, 1)
	return true
}

func (h *hasher) text(s *string) {
	if h.object(s != nil) {
		h.length(len(*s))
		h.b = append(h.b, *s...)
	}
}

func (h *hasher) flag(v *bool) {
	if h.object(v != nil) {
		h.object(*v)
	}
}

func (h *hasher) length(n int) { h.b = binary.AppendUvarint(h.b, uint64(n)) }

func (h *hasher) value(v jsontext.Value) {
	if !h.object(len(v) > 0) {
		return
	}
	b, err := jsonx.Canonical(h.b, v)
	if err != nil {
		h.err = err
		return
	}
	h.b = b
}

// document renders what is echoed as sent: the members of the payment object
// that never change and that nothing here computes with.
func (r *Request) document() []byte {
	b := make([]byte, 0, 192+len(r.Metadata.raw))
	b = append(b, `"description":`...)
	b = appendText(b, r.Description)
	b = append(b, `,"customer":{"phone":`...)
	b = appendText(b, r.Customer.Phone)
	b = append(b, `,"name":`...)
	b = appendText(b, r.Customer.Name)
	b = append(b, `,"email":`...)
	b = appendText(b, r.Customer.Email)
	b = append(b, `},"charge":`...)
	b = r.Charge.append(b)
	b = append(b, `,"tax":`...)
	b = r.Tax.append(b)
	b = append(b, `,"metadata":`...)
	if r.Metadata.raw == nil {
		return append(b, "null"...)
	}
	return append(b, r.Metadata.raw...)
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
		b = appendText(b, it.Name)
		b = append(b, `,"quantity":`...)
		b = append(b, it.Quantity.literal...)
		b = append(b, `,"unit_price":`...)
		b = appendText(b, it.UnitPrice)
		b = append(b, `,"total":`...)
		b = appendText(b, it.Total)
		b = append(b, '}')
	}
	b = append(b, `],"subtotal":`...)
	b = appendText(b, c.Subtotal)
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
	b = appendText(b, t.Amount)
	b = append(b, `,"rate":`...)
	b = appendText(b, t.Rate)
	b = append(b, `,"type":`...)
	b = appendText(b, t.Type)
	return append(b, '}')
}

func appendText(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return jsonx.AppendString(b, *s)
}
