package payout

import (
	"context"

	"till"
	"till/engine"
	"till/store"
)

// Resolve ends a payout on a person's evidence, through the same Apply as
// every other answer. It returns CodePayoutNotFound, or CodeValidationFailed
// if the payout has ended in a way that the evidence cannot change.
func (m *Paymaster) Resolve(ctx context.Context, ref store.Ref, r engine.Resolution) error {
	var p *store.PayoutRow
	err := m.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		p, err = tx.Payout(ctx, ref)
		return err
	})
	if err != nil {
		return err
	}
	if r.Success && p.Status == till.PayoutSuccess {
		return till.Errorf(till.CodeValidationFailed, "the payout's money has been posted already")
	}
	a := m.engine.AnswerOf(p.Subject(), r)
	m.Apply(ctx, []*engine.Answer{a})
	return a.Refused
}

// ResolveAll ends payouts on evidence, like Resolve, all in one commit where
// that works; see engine.ResolveAll.
func (m *Paymaster) ResolveAll(ctx context.Context, settlements []*engine.Settlement) error {
	return engine.ResolveAll(ctx, m.engine, &engine.PayoutTable, settlements, m.Apply)
}
