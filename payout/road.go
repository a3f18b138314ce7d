package payout

import (
	"slices"

	"till"
	"till/engine"
)

// here is what an instance knows of connections, for one payment that is given back.
type here struct {
	origins map[string]engine.Origin     // the sides that collect
	retired map[string]bool              // those that collected and are gone for good
	refunds func(connection string) bool // its operator can give the payment back by a call that names it
	serves  func(connection string) bool // it pays out in the payment's market
	route   []string                     // of payouts in the payment's market; each serves it
}

// Refundable reports whether a payment on one of some connections can be given back in a
// market.
func (d *Disburser) Refundable(client *till.Client, connections []string, method, country, currency string) bool {
	m, _ := till.MethodOf(method)
	k, ok := m.Market(country, currency)
	if !ok {
		return false
	}
	least := till.Money{Minor: k.Step, Currency: currency}
	return slices.ContainsFunc(connections, func(name string) bool {
		p := &till.Payment{Method: method, Country: country, Amount: least, Connection: name, Fingerprint: d.c.Refunds.Origins[name].Fingerprint}
		h := d.here(client, p, least)
		_, _, err := h.choose(p)
		return err == nil
	})
}

// choose returns where a refund is sent, and how. It reads nothing but the payment's row and
// the configuration. So a refund that was lost with a database and is made again takes the
// same road, and meets the operator's duplicate check.
func (h *here) choose(p *till.Payment) (connection string, road till.Road, err error) {
	origin, known := h.origins[p.Connection]
	if !known && !h.retired[p.Connection] {
		return "", "", till.Errorf(till.CodeServiceUnavailable, "this instance does not have the payment's connection; try again with the same key")
	}
	switch {
	case origin.Refunds == engine.RefundNever:
		return "", "", &till.Error{Code: till.CodeRefundNotPossible}
	case origin.Refunds == engine.RefundByOperator && origin.Fingerprint == p.Fingerprint && h.refunds(p.Connection):
		return p.Connection, till.RoadRefund, nil
	case origin.PayerUnknown, till.FlowOf(p.Method, p.Country, p.Amount.Currency) == till.FlowRedirect: // the number need not be who paid
	case known && h.serves(p.Connection): // the money lies there
		return p.Connection, till.RoadTransfer, nil
	case len(h.route) > 0:
		return h.route[0], till.RoadTransfer, nil
	}
	return "", "", &till.Error{Code: till.CodeRefundNotPossible}
}
