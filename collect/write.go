package collect

import (
	"context"
	"crypto/sha256"
	"strconv"

	"till"
	"till/engine"
	"till/ledger"
	"till/store"
)

// open puts the payment on the attention list.
func (b *change) open(p *store.PaymentRow, kind, detail string) {
	at := b.heads[p.ClientID].Tick()
	b.cases = append(b.cases, &store.Case{
		ClientID: p.ClientID, ID: till.NewID(at), SubjectID: p.ID, Kind: kind, Detail: detail, OpenedAt: at,
	})
}

// again is open for what is seen time and again. The first time it puts the
// payment on the list; later it only undoes what a person did who closed the
// case while its cause stands.
func (b *change) again(p *store.PaymentRow, kind, detail string, seen bool) {
	b.open(p, kind, detail)
	b.cases[len(b.cases)-1].Again = seen
}

// close takes the payment's cases of some kinds, or all, off the list.
func (b *change) close(p *store.PaymentRow, by string, kinds ...string) {
	b.closed = append(b.closed, store.Closing{Ref: store.Ref{Client: p.ClientID, ID: p.ID}, By: by, At: p.UpdatedAt, Kinds: kinds})
}

// record writes an audit row. What it rests on is the answer that is being
// decided on.
func (b *change) record(client, subject till.ID, at till.Time, actor, action, detail string) {
	row := &store.AuditRow{
		ClientID: client, Sequence: b.heads[client].NextAudit(), At: at,
		Actor: actor, Action: action, SubjectID: subject, Detail: detail,
	}
	if b.answer != nil {
		row.Cause, row.Evidence = causeOf(b.answer), evidenceOf(b.answer)
	}
	b.audit = append(b.audit, row)
}

// causeOf says which call brought an answer; "" for a person's, whose cause is
// the command.
func causeOf(a *engine.Answer) string {
	if a.Action == engine.Resolve {
		return ""
	}
	return string(a.Action)
}

// evidenceOf returns the digest of what a decision rests on: of the file that
// a person brought, or of the operator's word as it was understood. The
// latter binds the receipt and the codes, which stand in other tables, into
// the chain over the audit log.
func evidenceOf(a *engine.Answer) []byte {
	if a.Action == engine.Resolve {
		return a.Digest
	}
	r := &a.Result
	h := sha256.New()
	for _, word := range []string{string(r.Outcome), r.Receipt, strconv.FormatInt(r.Amount.Minor, 10), r.Amount.Currency, r.Reference, r.Code, r.Message} {
		h.Write([]byte(strconv.Quote(word)))
	}
	return h.Sum(nil)
}

// write puts the net result of a batch into the database, set by set, in the
// fixed order of locks.
func (b *change) write(ctx context.Context) error {
	steps := make([]*store.Step, 0, len(b.steps))
	for _, s := range b.steps {
		if s != nil {
			steps = append(steps, s)
		}
	}
	wallets := make([]*ledger.Wallet, 0, len(b.wallets))
	for _, w := range b.wallets {
		wallets = append(wallets, w)
	}
	for _, f := range []func() error{
		func() error { return b.tx.UpdatePayments(ctx, b.movedPayments) },
		func() error { return b.tx.SaveSteps(ctx, steps) },
		func() error { return b.tx.DeleteSteps(ctx, b.deletedSteps) },
		func() error { return b.tx.SaveWallets(ctx, wallets) },
		func() error { return b.tx.InsertTransactions(ctx, b.transactions) },
		func() error { return b.tx.InsertEntries(ctx, b.entries) },
		func() error { return b.tx.InsertEvents(ctx, b.events) },
		func() error { return b.tx.EndAttempts(ctx, b.attempts, b.last) },
		func() error { return b.writeCases(ctx) },
		func() error { return b.tx.InsertAudit(ctx, b.audit) },
		func() error { return b.tx.Count(ctx, &b.counts) },
		func() error { return b.tx.SaveHeads(ctx, b.heads) },
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// writeCases closes before it opens: what ends one case may begin another.
func (b *change) writeCases(ctx context.Context) error {
	if err := b.tx.CloseCases(ctx, b.closed); err != nil {
		return err
	}
	return b.tx.OpenCases(ctx, b.cases)
}
