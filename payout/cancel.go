package payout

import (
	"context"
	"errors"

	"till"
	"till/engine"
	"till/store"
)

// Cancel cancels a payout and returns it. It works only while nothing was sent. The locks
// of the client's head and of the payout's step show that, because a claim records a send
// before it begins. A payout that is cancelled already is returned as it is. It returns
// CodePayoutNotFound, or CodeNotCancellable.
func (d *Disburser) Cancel(ctx context.Context, ref store.Ref, actor string) (*store.PayoutRow, error) {
	return d.cancelAs(ctx, ref, till.NounPayout, actor, "")
}

// CancelRefund is Cancel for a refund. It returns CodeRefundNotFound, or
// CodeRefundNotCancellable.
func (d *Disburser) CancelRefund(ctx context.Context, ref store.Ref, actor string) (*store.PayoutRow, error) {
	return d.cancelAs(ctx, ref, till.NounRefund, actor, "")
}

// CancelFor cancels a payout or a refund, with a reason for the audit log.
func (d *Disburser) CancelFor(ctx context.Context, ref store.Ref, actor, reason string) (*store.PayoutRow, error) {
	return d.cancelAs(ctx, ref, "", actor, reason)
}

// cancelAs is CancelFor for what has a noun; "" means either.
func (d *Disburser) cancelAs(ctx context.Context, ref store.Ref, noun till.Noun, actor, reason string) (*store.PayoutRow, error) {
	var p *store.PayoutRow
	try := func() error {
		return d.c.Store.Update(ctx, func(tx *store.Tx) (err error) {
			p, err = d.cancel(ctx, tx, ref, noun, actor, reason)
			return err
		})
	}
	err := try()
	if errors.Is(err, store.ErrUnknownCommit) {
		err = try() // a payout that is cancelled already stays so
	}
	if err != nil {
		return nil, d.Unavailable("payout not cancelled", err)
	}
	return p, nil
}

func (d *Disburser) cancel(ctx context.Context, tx *store.Tx, ref store.Ref, noun till.Noun, actor, reason string) (*store.PayoutRow, error) {
	c, err := d.Begin(ctx, tx, []store.Ref{ref})
	if err != nil {
		return nil, err
	}
	p, s := c.Rows[ref], c.Steps[ref]
	switch {
	case noun == till.NounRefund && (p == nil || !p.IsRefund()):
		return nil, till.Errorf(till.CodeRefundNotFound, "there is no such refund")
	case p == nil || noun == till.NounPayout && p.IsRefund():
		return nil, till.Errorf(till.CodePayoutNotFound, "there is no such payout")
	case p.Status == till.PayoutCancelled:
		return p, nil
	case p.IsRefund() && (p.Status != till.PayoutPending || !engine.Cancellable(s)):
		return nil, till.Errorf(till.CodeRefundNotCancellable, "the refund may have been sent already")
	case p.Status != till.PayoutPending || !engine.Cancellable(s):
		return nil, till.Errorf(till.CodeNotCancellable, "the payout may have been sent already")
	}
	b := &rules{Recording: c}
	if !b.Move(p, string(till.PayoutCancelled)) {
		return nil, till.ErrIllegalTransition
	}
	if err := b.release(ctx, p, actor, act(p, actionCancel, actionCancelRefund), reason); err != nil {
		return nil, err
	}
	b.AfterCancel(p)
	return p, b.Write(ctx)
}
