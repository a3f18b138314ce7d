package payout

import (
	"till"
	"till/internal/request"
)

// Request is the body of a create call as the client sent it. A nil member
// was absent or null.
type Request struct {
	request.Body
	Recipient *Recipient `json:"recipient"`
}

// Recipient is the recipient member of a Request.
type Recipient struct {
	Phone *string `json:"phone"`
}

// bodyVersion is the version of the list of members that hash covers. A release with a new
// member adds a version; rows keep the version they were hashed under.
const bodyVersion = 1

// check applies all rules that cannot change over time.
func (r *Request) check(c *request.Validator) *request.Parsed {
	return r.Body.Check(c, func(o *request.Parsed) {
		if r.Recipient == nil {
			c.Add("/recipient", till.FieldRequired, "is required")
			return
		}
		o.Phone = request.TextOf(r.Recipient.Phone)
	})
}

// party returns the recipient.
func (r *Request) party() request.Party {
	if r.Recipient == nil {
		return request.Party{At: "/recipient", Absent: true}
	}
	return request.Party{At: "/recipient", Phone: r.Recipient.Phone}
}

// hash returns the same value for two bodies exactly if they mean the same. It reports
// false for a version that this program does not know.
func (r *Request) hash(version int) ([32]byte, bool) {
	if version != bodyVersion {
		return [32]byte{}, false
	}
	return request.Hash(func(h *request.Hasher) {
		h.Text(r.Method)
		h.Text(r.Country)
		h.Amount(r.Amount)
		if h.Object(r.Recipient != nil) {
			h.Text(r.Recipient.Phone)
		}
		h.Text(r.Reference)
		h.Text(r.Description)
		h.Value(r.Metadata.Raw)
	})
}

// document returns what is echoed as sent.
func (r *Request) document() []byte {
	b := make([]byte, 0, 96+len(r.Metadata.Raw))
	b = append(b, `"description":`...)
	b = request.AppendText(b, r.Description)
	b = append(b, `,"recipient":{"phone":`...)
	b = request.AppendText(b, r.Recipient.Phone)
	b = append(b, `},"metadata":`...)
	if r.Metadata.Raw == nil {
		return append(b, "null"...)
	}
	return append(b, r.Metadata.Raw...)
}
