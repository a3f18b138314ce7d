package collect

import (
	"context"

	"till"
	"till/engine"
	"till/provider"
	"till/store"
)

// Apply records answers: the only place where a payment changes. The whole
// batch is one commit; if that fails, each answer is recorded alone, and what
// cannot be recorded even then is in its Refused. It implements
// engine.subjects.
func (c *Collector) Apply(ctx context.Context, answers []*engine.Answer) {
	engine.Apply(answers, func(answers []*engine.Answer, careful bool) error {
		return c.applyBatch(ctx, answers, careful)
	}, c.desk.Unavailable)
}

// applyBatch is the one commit of a batch of answers. That receipts are new it
// takes for granted unless it is careful: the index refuses one that is not.
func (c *Collector) applyBatch(ctx context.Context, answers []*engine.Answer, careful bool) error {
	return c.c.Store.UpdateBehind(ctx, func(tx *store.Tx) error {
		b, err := engine.BeginWith(ctx, tx, c.engine, &engine.PaymentTable, answers, careful)
		if err != nil {
			return err
		}
		d := &change{Change: b}
		if err := d.preload(ctx, answers, careful); err != nil {
			return err
		}
		for _, a := range answers {
			if err := b.Decide(ctx, a, d); err != nil {
				return err
			}
		}
		return b.Write(ctx)
	})
}

// change is what an answer means to payments. It implements engine.Rules.
type change struct {
	*engine.Change[*store.PaymentRow]
	aside map[store.Ref]till.Money // what was put aside, before and in this batch
}

// preload reads what only few answers will be held against.
func (b *change) preload(ctx context.Context, answers []*engine.Answer, careful bool) (err error) {
	var refs []store.Ref
	for _, a := range answers {
		p := b.Rows[a.Ref]
		if p == nil || a.Err != nil || !a.Result.Outcome.Final() && a.Result.Outcome != provider.Reversed {
			continue
		}
		if p.Attention || p.Status.Final() { // an open one with money aside has somebody's attention
			refs = append(refs, a.Ref)
		}
	}
	if b.aside, err = b.Tx.Suspended(ctx, refs); err != nil {
		return err
	}
	return b.Owners(ctx, answers, careful)
}

// OnFailure takes an operator's word that a payment did not succeed.
func (b *change) OnFailure(ctx context.Context, p *store.PaymentRow, a *engine.Answer) error {
	switch {
	case p.Status == till.Success:
		if a.Action == engine.Resolve {
			a.Refused = till.Errorf(till.CodeValidationFailed, "the payment has succeeded and stays so")
			return nil
		}
		b.Open(p, engine.CaseContradiction, "the operator called it a success before and says "+string(a.Result.Outcome)+" now")
	case p.Status.Final():
		if a.Action == engine.Resolve {
			b.Resolved(p, a)
		}
	default:
		if a.Action != engine.Resolve {
			if _, suspended := b.aside[a.Ref]; suspended {
				b.Open(p, engine.CaseContradiction, "money came in for it, and the operator says "+string(a.Result.Outcome)+" now")
				return nil
			}
		}
		if err := b.End(ctx, p, a.Result); err != nil {
			return err
		}
		if a.Action == engine.Resolve {
			b.Resolved(p, a)
		}
	}
	return nil
}

// End ends a payment other than in success.
func (b *change) End(_ context.Context, p *store.PaymentRow, r provider.Result) error {
	status := till.Failed
	if r.Outcome == provider.Expired {
		status = till.Expired
	}
	b.EndAs(p, string(status), r)
	return nil
}
