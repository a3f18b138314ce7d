package engine

import (
	"context"

	"till/provider"
	"till/store"
)

// owners reads who has the receipts and handles that answers bring. Only a
// careful batch needs to know: any other takes for granted that they are new,
// and the database refuses one that is not.
func (b *Change[R]) owners(ctx context.Context, answers []*Answer, careful bool) (err error) {
	if err := b.handles(ctx, answers, careful); err != nil {
		return err
	}
	var receipts []store.Receipt
	for _, a := range answers {
		row, ok := b.Rows[a.Ref]
		if ok && careful && a.Err == nil && a.Result.Outcome == provider.Success && a.Result.Receipt != "" {
			receipts = append(receipts, store.Receipt{Connection: row.Subject().Connection, Text: a.Result.Receipt})
		}
	}
	b.receipts, err = b.Tx.ReceiptOwners(ctx, b.table.Name, receipts)
	return err
}

// ReceiptTaken answers whether another row, of whatever client, has the receipt,
// in the database or earlier in this batch, and notes that this one has it now.
func (b *Change[R]) ReceiptTaken(row R, text string) bool {
	if text == "" {
		return false
	}
	p := row.Subject()
	k := store.Receipt{Connection: p.Connection, Text: text}
	if owner, ok := b.receipts[k]; ok {
		return owner != p.Ref
	}
	b.receipts[k] = p.Ref
	return false
}

// Reused puts the row on the attention list because another has its receipt.
// Who that is stands in the case, which clients do not see.
func (b *Change[R]) Reused(row R, text string) {
	p := row.Subject()
	owner := b.receipts[store.Receipt{Connection: p.Connection, Text: text}]
	b.Open(row, CaseReceiptReused, "the operator reports a success under a receipt that another "+b.table.Name+" has: "+
		owner.ID.String()+" of client "+owner.Client.String())
}

// Receive gives the row its receipt, which nobody else can have from then on.
func (b *Change[R]) Receive(row R, text string) {
	p := row.Subject()
	*p.ProviderReference = text
	if text != "" {
		b.received = append(b.received, store.Received{Receipt: store.Receipt{Connection: p.Connection, Text: text}, Ref: p.Ref})
	}
}

// mayTell answers whether a callback that came while the operator was asked may
// tell the receipt that its answer did not.
func (b *Change[R]) mayTell(p store.Subject, s *store.Step, a *Answer) bool {
	return p.Reversible && *p.ProviderReference == "" && s.WakeSeq != a.WakeSeq && len(s.Mail) > 0
}
