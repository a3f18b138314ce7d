package books

import (
	"context"
	"slices"

	"till"
	"till/ledger"
	"till/store"
	"till/store/proof"
)

// verifyPayouts walks a client's payouts, as verifyPayments does the payments.
func (v *verifier) verifyPayouts(ctx context.Context) error {
	var last till.ID
	for {
		var slice []*proof.VerifyPayout
		var head *store.Head
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			if head, err = proof.Head(ctx, tx, v.client); err != nil {
				return err
			}
			if slice, err = proof.VerifyPayouts(ctx, tx, v.client, last, v.o.Slice); err != nil {
				return err
			}
			for _, p := range slice {
				if err := findRemade(ctx, tx, &p.VerifyPayment, till.SubjectPayout); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(slice) == 0 {
			return err
		}
		for _, p := range slice {
			last = p.ID
			v.Payouts++
			from, to := till.PayoutStatus(p.PreviousStatus), till.PayoutStatus(p.Status)
			legal := slices.Contains(till.PayoutTransitions[from], to) || from == "" && to == till.PayoutPending
			v.verifyMove(&p.VerifyPayment, head, legal)
			v.verifyDebit(p)
			v.verifyReceipt(&p.VerifyPayment, till.SubjectPayout)
			v.verifyLife(&p.VerifyPayment, p.Noun, to.Final())
			if to != till.PayoutCancelled { // which was never sent
				v.verifyScheduled(&p.VerifyPayment)
			}
		}
	}
}

// verifyDebit proves I2 for payouts: each success has exactly one payout of
// exactly its amount, a late one exactly one late payout, and no other has any.
// What a late payout took from no wallet is owed, so its line may be smaller or
// missing; what left the operator is all of it.
func (v *verifier) verifyDebit(p *proof.VerifyPayout) {
	success, late := p.Status == till.Success, p.LateEvent != 0
	if moved := !p.MoneyOut.IsZero(); moved != (success || late) {
		v.problem("I2", p.ID, "it is %s, its late event is %d, and the fact that its money left is %v", p.Status, p.LateEvent, moved)
		return
	}
	want := ""
	switch {
	case success:
		want = string(ledger.Payout)
		if p.Noun == till.NounRefund {
			want = string(ledger.Refund)
		}
		v.check(p.Lines == 1 && p.Debited == p.Amount.Minor, "I2", p.ID, "%d lines debited %d for %v", p.Lines, p.Debited, p.Amount)
	case late:
		want = string(ledger.LatePayout)
		if p.Noun == till.NounRefund {
			want = string(ledger.LateRefund)
		}
		v.check(p.Lines <= 1 && p.Debited <= p.Amount.Minor, "I2", p.ID, "%d lines debited %d for %v", p.Lines, p.Debited, p.Amount)
	default:
		v.check(p.Lines == 0, "I2", p.ID, "it is %s, and %d lines debited %d for it", p.Status, p.Lines, p.Debited)
	}
	if p.Lines > 0 {
		v.check(p.LineType == want && p.LineID == p.MoneyOut, "I2", p.ID, "its line %s is a %s, not the %s %s", p.LineID, p.LineType, want, p.MoneyOut)
	}
	if success || late {
		v.check(p.PaidOut == p.Amount.Minor, "I2", p.ID, "the operator was given %d for %v", p.PaidOut, p.Amount)
		v.check(p.MoneyOut.Time() == p.UpdatedAt, "I2", p.ID, "its money left at another time than it changed")
	}
	charged := success && p.Fee > 0
	v.check(charged == !p.FeeEntry.IsZero() && charged == (p.FeeLines == 1) && p.FeeLines <= 1, "I2", p.ID,
		"it is %s with a fee of %d, and %d fees were taken", p.Status, p.Fee, p.FeeLines)
	v.check(!charged || p.FeeTaken == p.Fee, "I2", p.ID, "a fee of %d was taken, and it is %d", p.FeeTaken, p.Fee)
}

// verifyPayoutKeys proves I5 for payouts once more.
func (v *verifier) verifyPayoutKeys(ctx context.Context) error {
	return v.view(ctx, func(tx *store.Tx) error {
		payouts, keys, err := proof.CountPayoutKeys(ctx, tx, v.client)
		v.check(payouts == keys, "I5", till.ID{}, "%d payouts have %d idempotency keys", payouts, keys)
		return err
	})
}

// verifyReserved proves the rest of I3: what is reserved is what the open
// payouts hold, and what is owed is what was posted as owed.
func (v *verifier) verifyReserved(ctx context.Context, tx *store.Tx, w *ledger.Wallet) error {
	if w == nil {
		return nil
	}
	held, err := proof.Reserves(ctx, tx, v.client, w.Currency)
	if err != nil {
		return err
	}
	v.check(w.Reserved == held, "I3", w.ID, "%d is reserved, and open payouts hold %d", w.Reserved, held)
	owed, err := tx.Posted(ctx, v.client, ledger.Receivable, w.Currency)
	v.check(w.Owed == -owed, "I3", w.ID, "the client owes %d, and %d was posted as owed", w.Owed, -owed)
	return err
}
