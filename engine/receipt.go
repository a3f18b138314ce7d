package engine

import (
	"context"

	"till"
	"till/store"
)

// aggregated is a subject whose success an aggregator reports, with the receipt.
type aggregated struct {
	store.Subject
	receipt string
}

// recordedBefore is the receipt as it was recorded before the level, by connection.
func (s *aggregated) recordedBefore() store.Receipt {
	return store.Receipt{Issuer: s.Connection, Text: s.receipt}
}

// owners reads which rows have the answers' receipts and handles. Only a batch that rereads
// needs to know. Any other assumes that they are new, and the database rejects one that is
// not. It does not reject an aggregator's receipt that was recorded by connection, so who
// has those is always read.
func (b *Recording[R]) owners(ctx context.Context, answers []*Answer, reread bool) (err error) {
	if err := b.handles(ctx, answers, reread); err != nil {
		return err
	}
	var subjects []aggregated
	var receipts []store.Receipt
	for _, a := range answers {
		row, ok := b.Rows[a.Ref]
		if !ok || !succeeds(a) || a.Result.Receipt == "" {
			continue
		}
		p := row.Subject()
		if p.Aggregated() {
			subjects = append(subjects, aggregated{p, a.Result.Receipt})
		} else if reread {
			receipts = append(receipts, store.Receipt{Issuer: p.Connection, Text: a.Result.Receipt})
		}
	}
	if len(subjects) > 0 {
		if b.byIssuer, err = b.Tx.ByIssuer(ctx); err != nil {
			return err
		}
	}
	for i := range subjects {
		s := &subjects[i]
		if b.byIssuer {
			receipts = append(receipts, b.receiptOf(&s.Subject, s.receipt))
		}
		if b.byIssuer || reread {
			receipts = append(receipts, s.recordedBefore())
		}
	}
	b.receiptOwners, err = b.Tx.ReceiptOwners(ctx, b.table.Kind, receipts)
	if err != nil || !b.byIssuer {
		return err
	}
	return b.addOwnersBefore(ctx, subjects)
}

// addOwnersBefore adds the owners of receipts that were recorded by connection, where they
// are the same issuer's. An owner that cannot be read counts as one.
func (b *Recording[R]) addOwnersBefore(ctx context.Context, subjects []aggregated) error {
	var refs []store.Ref
	for i := range subjects {
		if owner, ok := b.receiptOwners[subjects[i].recordedBefore()]; ok {
			refs = append(refs, owner)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	rows, err := b.table.Read(ctx, b.Tx, refs)
	if err != nil {
		return err
	}
	for i := range subjects {
		s := &subjects[i]
		receipt := b.receiptOf(&s.Subject, s.receipt)
		owner, before := b.receiptOwners[s.recordedBefore()]
		if _, since := b.receiptOwners[receipt]; since || !before {
			continue
		}
		row, found := rows[owner]
		if !found || row.Subject().Method == s.Method && row.Subject().Country == s.Country {
			b.receiptOwners[receipt] = owner
		}
	}
	return nil
}

// receiptOf returns a receipt as it is recorded.
func (b *Recording[R]) receiptOf(p *store.Subject, text string) store.Receipt {
	if b.byIssuer {
		return store.Receipt{Issuer: p.Issuer(), Text: text}
	}
	return store.Receipt{Issuer: p.Connection, Text: text}
}

// ReceiptTaken reports whether another row, of any client, has the receipt, in the database
// or earlier in this batch. It notes that this row has it now.
func (b *Recording[R]) ReceiptTaken(row R, text string) bool {
	if text == "" {
		return false
	}
	p := row.Subject()
	k := b.receiptOf(&p, text)
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
	owner := b.receiptOwners[b.receiptOf(&p, text)]
	b.OpenCase(row, CaseReceiptReused, till.Because(till.ReasonReceiptReused, b.table.Name(), owner.ID.String(), owner.Client.String()))
}

// SetReceipt gives the row its receipt. No other row can have it from then on.
func (b *Recording[R]) SetReceipt(row R, text string) {
	p := row.Subject()
	*p.ProviderReference = text
	if text != "" {
		b.receipts = append(b.receipts, store.Received{Receipt: b.receiptOf(&p, text), Ref: p.Ref})
	}
}

// receiptMayCome reports whether a callback that came during the check may bring the
// receipt that the answer lacked.
func (b *Recording[R]) receiptMayCome(p store.Subject, s *store.Step, a *Answer) bool {
	return p.Reversible && *p.ProviderReference == "" && s.WakeSeq != a.WakeSeq && len(s.CallbackBody) > 0
}
