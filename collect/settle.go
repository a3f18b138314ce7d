package collect

import (
	"context"

	"till"
	"till/engine"
	"till/provider"
	"till/store"
)

// Settlement is a resolution among many, such as a line of an operator's
// statement that settles a payment.
type Settlement struct {
	Ref store.Ref
	Resolution

	// Changed and Refused are set by ResolveAll: whether the payment was
	// settled by it, and why it could not be. Neither is set if the payment had
	// come to the same end already.
	Changed bool
	Refused error
}

// ResolveAll ends payments on evidence, like Resolve, all in one commit where
// that works. A payment whose money was credited already, or that has ended
// and is only said to have failed, is left as it is: a second run changes
// nothing.
func (c *Collector) ResolveAll(ctx context.Context, settlements []*Settlement) error {
	refs := make([]store.Ref, len(settlements))
	for i, s := range settlements {
		refs[i] = s.Ref
	}
	var payments map[store.Ref]*store.PaymentRow
	err := c.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		payments, err = tx.Payments(ctx, refs)
		return err
	})
	if err != nil {
		return err
	}
	now := c.c.Store.Now()
	answers := make([]*engine.Answer, 0, len(settlements))
	asked := make([]*Settlement, 0, len(settlements))
	for _, s := range settlements {
		p := payments[s.Ref]
		s.Changed, s.Refused = false, nil
		switch {
		case p == nil:
			s.Refused = till.Errorf(till.CodePaymentNotFound, "there is no such payment")
			continue
		case p.Status == till.Success && !s.Success:
			s.Refused = till.Errorf(till.CodeValidationFailed, "the payment has succeeded and stays so")
			continue
		case p.Status == till.Success, p.LateEvent != 0, p.Status.Final() && !s.Success:
			continue
		}
		a := &engine.Answer{
			Ref: s.Ref, Action: engine.Resolve, Connection: p.Connection, Reference: c.ReferenceOf(&p.Payment),
			Started: now, Ended: now, By: s.By, Evidence: s.Evidence,
			Result: provider.Result{Outcome: provider.Failed, Reason: till.Unspecified},
		}
		if s.Success {
			a.Result = provider.Result{Outcome: provider.Success, Receipt: s.Receipt}
		}
		answers, asked = append(answers, a), append(asked, s)
	}
	if len(answers) == 0 {
		return nil
	}
	c.Apply(ctx, answers)
	for i, a := range answers {
		asked[i].Refused, asked[i].Changed = a.Refused, a.Refused == nil
	}
	return nil
}
