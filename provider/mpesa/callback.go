package mpesa

import (
	"bytes"
	"encoding/json"
	"strings"

	"till"
	"till/provider"
	"till/provider/wire"
)

// pushCallback is the callback of a push.
type pushCallback struct {
	Body struct {
		StkCallback struct {
			CheckoutRequestID wire.Text
			ResultCode        wire.Text
			CallbackMetadata  struct {
				Item []struct {
					Name  wire.Text
					Value wire.Text // absent for some
				}
			}
		} `json:"stkCallback"`
	}
}

// readPushCallback parses a kept callback, nil if it is none.
func readPushCallback(mail []byte) *pushCallback {
	m := &pushCallback{}
	if len(mail) == 0 || wire.Decode(mail, m) != nil || !isID(m.id()) {
		return nil
	}
	return m
}

func (m *pushCallback) id() string { return string(m.Body.StkCallback.CheckoutRequestID) }

func (m *pushCallback) item(name wire.Text) string {
	for _, i := range m.Body.StkCallback.CallbackMetadata.Item {
		if i.Name == name {
			return string(i.Value)
		}
	}
	return ""
}

func (m *pushCallback) receipt() string { return wire.Truncate(m.item("MpesaReceiptNumber"), maxID) }

// matches reports whether a callback can be about a payment. A customer's number may be
// masked, and then proves nothing.
func (m *pushCallback) matches(q *provider.Query) bool {
	amount, phone := m.amount(), m.item("PhoneNumber")
	masked := strings.Trim(phone, "0123456789") != ""
	return (amount.IsZero() || q.Amount.IsZero() || amount == q.Amount) && (phone == "" || masked || q.Phone == "" || phone == q.Phone)
}

// amount returns the callback's amount, zero if it has none.
func (m *pushCallback) amount() till.Money { return parseShillings(m.item("Amount")) }

// HandleInCallback implements provider.HandleReader: a callback names the push by Daraja's
// id.
func (p *paymentService) HandleInCallback(mail []byte) string {
	if m := readPushCallback(mail); m != nil {
		return m.id()
	}
	return ""
}

// ReadClaim reads what the callback of a push says. It has no reference of ours.
func (p *paymentService) ReadClaim(body []byte) (provider.Claim, bool) {
	m := readPushCallback(body)
	if m == nil {
		return provider.Claim{}, false
	}
	c := provider.Claim{Receipt: m.receipt(), Amount: m.amount()}
	switch m.Body.StkCallback.ResultCode {
	case "":
	case "0":
		c.Outcome = provider.Success
	default:
		c.Outcome = provider.Failed
	}
	return c, true
}

// resultCallback is Daraja's callback about a payout, or the answer to a status query.
type resultCallback struct {
	Result struct {
		ResultCode               wire.Text
		ResultDesc               wire.Text
		OriginatorConversationID wire.Text
		ConversationID           wire.Text
		TransactionID            wire.Text
		ResultParameters         struct {
			ResultParameter parameters
		}
	}
}

// readResultCallback parses a kept callback, nil if it is none.
func readResultCallback(mail []byte) *resultCallback {
	m := &resultCallback{}
	if len(mail) == 0 || wire.Decode(mail, m) != nil || !isID(m.conversation()) {
		return nil
	}
	return m
}

func (m *resultCallback) conversation() string { return string(m.Result.ConversationID) }

func (m *resultCallback) parameter(key wire.Text) string {
	for _, p := range m.Result.ResultParameters.ResultParameter {
		if p.Key == key {
			return string(p.Value)
		}
	}
	return ""
}

// ReadClaim reads what a callback about a payout says, or what the answer to a status query
// says.
func (p *payoutService) ReadClaim(body []byte) (provider.Claim, bool) {
	m := readResultCallback(body)
	if m == nil {
		return provider.Claim{}, false
	}
	first := func(texts ...string) string {
		for _, t := range texts {
			if t != "" {
				return wire.Truncate(t, maxID)
			}
		}
		return ""
	}
	reference := first(m.parameter("OriginatorConversationID"), m.parameter("Originator Conversation ID"), string(m.Result.OriginatorConversationID))
	c := provider.Claim{Receipt: first(m.parameter("TransactionReceipt"), m.parameter("ReceiptNo"), string(m.Result.TransactionID)),
		Amount: parseShillings(first(m.parameter("TransactionAmount"), m.parameter("Amount")))}
	c.Reference, _ = till.ParseID(strings.ToLower(reference))
	status := m.parameter("TransactionStatus")
	switch code := m.Result.ResultCode; {
	case status != "": // the answer to a status query
		if v := payoutStates[status]; v.outcome.Final() {
			c.Outcome = v.outcome
		}
	case code == "0":
		c.Outcome = provider.Success
	case code != "":
		c.Outcome = provider.Failed
	}
	return c, true
}

// parameters are the named values of an answer. Daraja sends a single value without a list.
type parameters []parameter

type parameter struct {
	Key   wire.Text
	Value wire.Text // absent for some
}

// UnmarshalJSON accepts a list, one object, or nothing.
func (p *parameters) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || bytes.Equal(b, []byte("null")):
		return nil
	case b[0] == '{':
		var one parameter
		if err := json.Unmarshal(b, &one); err != nil {
			return err
		}
		*p = parameters{one}
		return nil
	}
	return json.Unmarshal(b, (*[]parameter)(p))
}
