package till

import (
	"context"
	"errors"
)

// Withdraw ends an attempt of which provably nothing arrived, for example to
// offer another method.
func (t *Teller[T]) Withdraw(ctx context.Context, order string) error {
	row, err := t.latest(ctx, order)
	if err != nil {
		return err
	}
	if row == nil {
		return ErrNoAttempt
	}
	ok, err := t.settle(ctx, row, Settlement{From: []string{StateWritten}, State: StateLapsed, Problem: Ptr(problemWithdrawn)})
	if err == nil && !ok {
		err = ErrMayArrive
	}
	return err
}

// Abandon lets a new attempt begin beside one that is stuck. The old one is sent
// no more, but it may still bring money: Change.AlreadyPaid tells it then.
func (t *Teller[T]) Abandon(ctx context.Context, order string) error {
	row, err := t.latest(ctx, order)
	if err != nil {
		return err
	}
	if row == nil || !row.open() {
		return ErrNotStuck
	}
	s := Settlement{From: []string{StateTaken, StateLost}, Problem: Ptr(problemAbandoned)}
	if row.State == StateSending || row.State == StateWritten {
		s = Settlement{From: []string{StateWritten, StateSending}, Problem: Ptr(problemAbandoned), SendUntil: t.now()}
	}
	ok, err := t.settle(ctx, row, s)
	if err == nil && !ok {
		err = ErrOtherWrite
	}
	return err
}

// Resend posts an attempt again that the service lost with a restored backup.
// The operator recognises it. M-Pesa does not: look at its statement first.
func (t *Teller[T]) Resend(ctx context.Context, order string) (Progress, error) {
	row, err := t.latest(ctx, order)
	if err != nil {
		return Progress{}, err
	}
	if row == nil || row.State != StateLost {
		return Progress{}, ErrNotLost
	}
	until := t.now().Add(t.cfg.paymentUntil)
	ok, err := t.settle(ctx, row, Settlement{From: []string{StateLost}, State: StateSending, NextAt: t.now(), SendUntil: until})
	if err != nil || !ok {
		return Progress{}, errors.Join(err, ErrNotLost)
	}
	return t.sendOrder(ctx, row.Kind, order)
}

// latest returns the newest attempt to be paid for an order, by a number or on a page.
func (t *Teller[T]) latest(ctx context.Context, order string) (*Row, error) {
	row, err := t.store.Newest(ctx, KindPayment, order)
	if err != nil {
		return nil, err
	}
	page, err := t.store.Newest(ctx, KindCheckout, order)
	if err == nil && page != nil && (row == nil || page.CreatedAt.After(row.CreatedAt)) {
		row = page
	}
	return row, err
}
