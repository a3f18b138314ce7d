package books

import (
	"context"
	"strings"

	"till"
	"till/engine"
	"till/ledger"
	"till/store"
	"till/store/proof"
	"till/store/refunds"
)

// verifyRefundSums proves I20 and I22: what is kept of a payment's refunds is what its refunds
// add up to, at most what was paid, and at most one of them is open.
func (v *verifier) verifyRefundSums(ctx context.Context) error {
	for last := (till.ID{}); ; {
		var slice []refunds.VerifySums
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			slice, err = refunds.EachSums(ctx, tx, v.client, last, v.o.Slice)
			return err
		})
		if err != nil || len(slice) == 0 {
			return err
		}
		for _, s := range slice {
			last = s.PaymentID
			v.check(s.Have == s.Want, "I20", s.PaymentID, "its refunds are kept as %+v, and add up to %+v", s.Have, s.Want)
			v.check(s.Have.Refunding+s.Have.Refunded <= s.Have.Amount, "I20", s.PaymentID, "%d is refunded or on its way of %d",
				s.Have.Refunding+s.Have.Refunded, s.Have.Amount)
			v.check(s.Open <= 1, "I22", s.PaymentID, "%d of its refunds are open", s.Open)
		}
	}
}

// verifyRefunds proves I21 and I23: a refund goes to who paid, after the payment was credited,
// and its lines name its payment.
func (v *verifier) verifyRefunds(ctx context.Context) error {
	for last := (till.ID{}); ; {
		var slice []refunds.VerifyRefund
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			slice, err = refunds.EachRefund(ctx, tx, v.client, last, v.o.Slice)
			return err
		})
		if err != nil || len(slice) == 0 {
			return err
		}
		for _, r := range slice {
			last = r.ID
			v.Refunds++
			v.check(r.Summed, "I20", r.PaymentID, "it has the refund %s, and nothing is kept of it", r.ID)
			v.check(r.Same, "I21", r.ID, "its method, country and currency are not those of the payment %s", r.PaymentID)
			erased := strings.HasPrefix(r.Phone, engine.ErasedMark) != strings.HasPrefix(r.PaidBy, engine.ErasedMark) // one of the two
			v.check(erased || r.Phone == r.PaidBy, "I21", r.ID, "its number is not that of the payment %s", r.PaymentID)
			remade := r.FirstEventAt > r.CreatedAt
			v.check(!r.CreditedAt.IsZero() && (remade || r.CreditedAt < r.CreatedAt), "I21", r.ID, "the payment %s was not credited before it", r.PaymentID)
			v.check(r.Lines <= 1 && r.Strange == 0, "I23", r.ID, "it has %d lines, and %d of its lines do not name its payment", r.Lines, r.Strange)
		}
	}
}

// verifyRefundLine proves the rest of I23: no line says that a payment was refunded without
// naming the payment and the refund.
func (v *verifier) verifyRefundLine(t *proof.StatementLine) {
	if t.Type == string(ledger.Refund) || t.Type == string(ledger.LateRefund) {
		v.check(!t.PaymentID.IsZero() && !t.PayoutID.IsZero(), "I23", t.ID, "money was refunded, and of which payment is not said")
	}
}
