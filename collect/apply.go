package collect

import (
	"context"

	"till"
	"till/engine"
	"till/provider"
	"till/store"
)

// change is what an answer means to payments. It implements engine.Rules.
type rules struct {
	*engine.Recording[*store.PaymentRow]
	suspended map[store.Ref]till.Money // what was put aside, before and in this batch
}

func newRules(b *engine.Recording[*store.PaymentRow]) engine.Rules[*store.PaymentRow] {
	return &rules{Recording: b}
}

// Preload reads what was put aside for the payments that an answer may end.
func (b *rules) Preload(ctx context.Context, answers []*engine.Answer) (err error) {
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
	b.suspended, err = b.Tx.Suspended(ctx, refs)
	return err
}

// OnFailure takes an operator's word that a payment did not succeed.
func (b *rules) OnFailure(ctx context.Context, p *store.PaymentRow, a *engine.Answer) error {
	switch {
	case p.Status == till.Success:
		if a.Action == engine.Resolve {
			a.RecordErr = till.Errorf(till.CodeValidationFailed, "the payment has succeeded and stays so")
			return nil
		}
		b.OpenCase(p, engine.CaseContradiction, "the operator called it a success before and says "+string(a.Result.Outcome)+" now")
	case p.Status.Final():
		if a.Action == engine.Resolve {
			b.RecordResolution(p, a)
		}
	default:
		if a.Action != engine.Resolve {
			if _, suspended := b.suspended[a.Ref]; suspended {
				b.OpenCase(p, engine.CaseContradiction, "money came in for it, and the operator says "+string(a.Result.Outcome)+" now")
				return nil
			}
		}
		if err := b.End(ctx, p, a.Result); err != nil {
			return err
		}
		if a.Action == engine.Resolve {
			b.RecordResolution(p, a)
		}
	}
	return nil
}

// End ends a payment other than in success.
func (b *rules) End(_ context.Context, p *store.PaymentRow, r provider.Result) error {
	status := till.Failed
	if r.Outcome == provider.Expired {
		status = till.Expired
	}
	b.EndAs(p, string(status), r)
	return nil
}
