package books

import (
	"context"

	"till"
	"till/store"
	"till/store/proof"
)

// verifyReceipt proves that no other payment or payout has the same receipt.
// One that has a case for it is known.
func (v *verifier) verifyReceipt(p *proof.VerifyPayment, kind till.SubjectKind) {
	switch {
	case p.ProviderReference == "" || p.ReceiptOwner == store.Ref{Client: p.ClientID, ID: p.ID} || p.ReceiptReused:
	case p.ReceiptOwner == store.Ref{}:
		v.problem("I2", p.ID, "its receipt %s on %s is not in the record of receipts: an older version took it. Run till migrate", p.ProviderReference, p.Issuer)
	default:
		v.problem("I2", p.ID, "its receipt %s on %s belongs to %s %s of client %s", p.ProviderReference, p.Issuer, kind, p.ReceiptOwner.ID, p.ReceiptOwner.Client)
	}
}

// verifyReceipts proves the other half: each subject in the table of receipts
// has its receipt, so that no money waits for it in vain.
func (v *verifier) verifyReceipts(ctx context.Context) error {
	last := &store.VerifyReceipt{}
	for {
		var slice []*store.VerifyReceipt
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			slice, err = tx.VerifyReceipts(ctx, last, v.o.Slice)
			return err
		})
		if err != nil || len(slice) == 0 {
			return err
		}
		for _, last = range slice {
			v.client = last.Ref.Client
			v.check(last.Had, "I2", last.Ref.ID, "the record of receipts says that this %s has %s on %s, and it has not", last.Kind, last.Text, last.Issuer)
		}
	}
}
