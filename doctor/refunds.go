package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"till"
	"till/engine"
	"till/internal/logs"
	"till/operators"
	"till/provider"
	"till/store"
)

// examineRefunds reports by which road the payments of a connection are given back, and which
// of them are not.
func (d *doctor) examineRefunds(ctx context.Context, db *store.Store, ops *operators.Operators, name string) error {
	if ops.Payments[name] == nil {
		return nil
	}
	what, origin := name+" refunds", ops.Refunds(ops.Payments, ops.Payouts).Origins[name]
	before, at, err := operators.RecentChange(ctx, db, name)
	if err != nil {
		return err
	}
	if before != "" {
		d.add(what, Risky, "since %s payments are given back in the way %q, before it was %q: if a backup from before is put back now, a lost refund that is asked for again may be paid twice", at, origin.Refunds, before)
	}
	if origin.Refunds == engine.RefundNever {
		d.add(what, Fine, "payments are not given back: refunds = \"off\"")
		return nil
	}
	own, others, none := refundRoads(ops, name, origin)
	_, calls := ops.Payouts[name].(provider.Refunder)
	switch {
	case len(own)+len(others)+len(none) == 0:
		return nil // no route leads there
	case len(own)+len(others) == 0 && origin.PayerUnknown:
		d.add(what, Risky, "payments cannot be given back: anybody may pay on this operator's page, so nobody knows whose number it was")
		return nil
	case len(own)+len(others) == 0:
		d.add(what, Risky, "payments cannot be given back: the connection has no credentials for payouts, and no route of payouts leads anywhere (%s)", strings.Join(none, ", "))
		return nil
	case len(own) > 0 && origin.Refunds == engine.RefundByOperator && calls:
		d.testRefunds(ctx, what, ops.Payouts[name])
	case len(own) > 0:
		d.add(what, Fine, "payments are given back by a transfer")
	}
	if len(others) > 0 {
		d.add(what, Fine, "given back by a transfer of another connection, because this one does not pay out there: %s", strings.Join(others, ", "))
	}
	if len(none) > 0 {
		d.add(what, Risky, "not given back, because nothing pays out there: %s", strings.Join(none, ", "))
	}
	return nil
}

// testRefunds reports whether the operator's own call may be used.
func (d *doctor) testRefunds(ctx context.Context, what string, p provider.Provider) {
	if tester, ok := p.(provider.RefundTester); ok {
		ctx, cancel := context.WithTimeout(ctx, operators.TestTimeout)
		defer cancel()
		if err := tester.TestRefunds(ctx); err != nil {
			d.add(what, Wrong, "%s", logs.Redact(err.Error()))
			return
		}
	}
	d.add(what, Fine, "payments are given back by the operator's own call")
}

// refundRoads sorts the markets whose payments are routed to a connection: given back by it, by
// another connection, or not at all.
func refundRoads(ops *operators.Operators, name string, origin engine.Origin) (own, others, none []string) {
	for _, r := range ops.File.Routes {
		m, known := till.MethodOf(r.Method)
		if !known || !slices.Contains(r.Connections, name) || !slices.Contains(r.Kinds, till.SubjectPayment) {
			continue
		}
		for _, k := range r.Markets {
			if !ops.Serves(name, till.SubjectPayment, r.Method, k) {
				continue
			}
			_, calls := ops.Payouts[name].(provider.Refunder)
			market := fmt.Sprintf("%s in %s", r.Method, marketName(m, k))
			client := till.ID{}
			if len(r.Clients) > 0 {
				client = r.Clients[0]
			}
			switch serves := ops.Serves(name, till.SubjectPayout, r.Method, k); {
			case serves && (!origin.PayerUnknown || calls && origin.Refunds == engine.RefundByOperator):
				own = append(own, market)
			case !origin.PayerUnknown && ops.HasRoute(client, till.SubjectPayout, r.Method, k):
				others = append(others, market)
			default:
				none = append(none, market)
			}
		}
	}
	return own, others, none
}
