package engine

import (
	"context"

	"till/provider"
	"till/store"
)

// owners reads which rows have the answers' receipts and handles. Only a batch that rereads
// needs to know. Any other assumes that they are new, and the database rejects one that is
// not.
func (b *Recording[R]) owners(ctx context.Context, answers []*Answer, reread bool) (err error) {
	if err := b.handles(ctx, answers, reread); err != nil {
		return err
	}
	var receipts []store.Receipt
	for _, a := range answers {
		row, ok := b.Rows[a.Ref]
		if ok && reread && a.Err == nil && a.Result.Outcome == provider.Success && a.Result.Receipt != "" {
			receipts = append(receipts, store.Receipt{Connection: row.Subject().Connection, Text: a.Result.Receipt})
		}
	}
	b.receiptOwners, err = b.Tx.ReceiptOwners(ctx, b.table.Kind, receipts)
	return err
}

// ReceiptTaken reports whether another row, of any client, has the receipt, in the database
// or earlier in this batch. It notes that this row has it now.
func (b *Recording[R]) ReceiptTaken(row R, text string) bool {
	if text == "" {
		return false
	}
	p := row.Subject()
	k := store.Receipt{Connection: p.Connection, Text: text}
	if owner, ok := b.receiptOwners[k]; ok {
		return owner != p.Ref
	}
	b.receiptOwners[k] = p.Ref
	return false
}

// OpenReceiptCase opens a case because another row has the same receipt. The case names
// that row; clients do not see it.
func (b *Recording[R]) OpenReceiptCase(row R, text string) {
	p := row.Subject()
	owner := b.receiptOwners[store.Receipt{Connection: p.Connection, Text: text}]
	b.OpenCase(row, CaseReceiptReused, "the operator reports a success under a receipt that another "+b.table.Name()+" has: "+
		owner.ID.String()+" of client "+owner.Client.String())
}

// SetReceipt gives the row its receipt. No other row can have it from then on.
func (b *Recording[R]) SetReceipt(row R, text string) {
	p := row.Subject()
	*p.ProviderReference = text
	if text != "" {
		b.receipts = append(b.receipts, store.Received{Receipt: store.Receipt{Connection: p.Connection, Text: text}, Ref: p.Ref})
	}
}

// receiptMayCome reports whether a callback that came during the check may bring the
// receipt that the answer lacked.
func (b *Recording[R]) receiptMayCome(p store.Subject, s *store.Step, a *Answer) bool {
	return p.Reversible && *p.ProviderReference == "" && s.WakeSeq != a.WakeSeq && len(s.CallbackBody) > 0
}
