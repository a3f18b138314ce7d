package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	"till"
	"till/ledger"
	"till/store"
)

// markChanged makes sure that the row is written.
func (b *Recording[R]) markChanged(row R) {
	if !slices.Contains(b.changed, row) {
		b.changed = append(b.changed, row)
	}
}

// NeedAttention marks an open row as one that a person must check.
func (b *Recording[R]) NeedAttention(row R) {
	if p := row.Subject(); !p.Final && !*p.Attention {
		b.setAttention(row, true)
	}
}

// setAttention changes whether a person must check a row. The client is notified when
// the answer is decided: see tellAttention.
func (b *Recording[R]) setAttention(row R, needed bool) {
	p := row.Subject()
	if _, noted := b.attentionBefore[p.Ref]; !noted {
		if b.attentionBefore == nil {
			b.attentionBefore = make(map[store.Ref]bool)
		}
		b.attentionBefore[p.Ref] = *p.Attention
	}
	*p.Attention = needed
	b.markChanged(row)
}

// tellAttention writes the event of a change that an open row's attention has made.
// A row that has ended says it in its last event.
func (b *Recording[R]) tellAttention(row R) {
	p := row.Subject()
	before, noted := b.attentionBefore[p.Ref]
	delete(b.attentionBefore, p.Ref)
	if !noted || before == *p.Attention || p.Final {
		return
	}
	word := "needs_attention"
	if before {
		word = "attention_ended"
	}
	head := b.Heads[p.Ref.Client]
	*p.UpdatedAt = head.NextTime()
	sequence := head.NextEvent()
	b.attentionEvents = append(b.attentionEvents, store.AttentionEvent{Ref: p.Ref, Sequence: sequence})
	b.addMoveEvent(row, word, sequence)
}

// ClearRetryable notes that money may have moved for a row that had ended without success.
// From now on, the API no longer marks it as retryable.
func (b *Recording[R]) ClearRetryable(row R) {
	p := row.Subject()
	if d := *p.FailureDetail; d != nil && d.Retryable {
		c := *d
		c.Retryable = false
		*p.FailureDetail = &c
		b.markChanged(row)
	}
}

// OpenCase opens a case for the row.
func (b *Recording[R]) OpenCase(row R, kind string, why till.Reason) {
	b.OpenCaseOf(row.Subject().Ref, kind, why)
}

// OpenCaseOf opens a case for another subject of a client whose head is locked: the payment
// that a row gives back.
func (b *Recording[R]) OpenCaseOf(ref store.Ref, kind string, why till.Reason) {
	at := b.Heads[ref.Client].NextTime()
	b.cases = append(b.cases, &store.Case{ClientID: ref.Client, ID: till.NewID(at), SubjectID: ref.ID, Kind: kind, Why: why, OpenedAt: at})
}

// ReopenCase is OpenCase for what is seen repeatedly. The first time it opens the case.
// Later it only opens it again if a person closed it, or another case of the row, while the
// cause remains.
func (b *Recording[R]) ReopenCase(row R, kind string, why till.Reason, seen bool) {
	b.OpenCase(row, kind, why)
	b.cases[len(b.cases)-1].Reopen = seen
}

// AddAudit writes an audit row. It names the answer that is being decided on as its cause.
func (b *Recording[R]) AddAudit(client, subject till.ID, at till.Time, actor, action, detail string) {
	row := &store.AuditRow{
		ClientID: client, Sequence: b.Heads[client].NextAudit(), At: at,
		Actor: actor, Action: action, SubjectID: subject, Detail: detail,
	}
	if b.answer != nil {
		row.Cause, row.Evidence = causeOf(b.answer), evidenceOf(b.answer)
	}
	b.audit = append(b.audit, row)
}

// causeOf names the call that brought an answer; "" for a person's resolution, whose cause
// is the command.
func causeOf(a *Answer) string {
	if a.Action == Resolve {
		return ""
	}
	return string(a.Action)
}

// evidenceOf returns the digest of what a decision is based on: of the file that a person
// brought, or of the operator's answer. The latter binds the receipt and the codes, which
// are in other tables, into the audit log's chain.
func evidenceOf(a *Answer) []byte {
	if a.Action == Resolve {
		return a.Digest
	}
	r := &a.Result
	h := sha256.New()
	for _, word := range []string{string(r.Outcome), r.Receipt, strconv.FormatInt(r.Amount.Minor, 10), r.Amount.Currency, r.Reference, r.Code, r.Message} {
		h.Write([]byte(strconv.Quote(word)))
	}
	return h.Sum(nil)
}

// RecordResolution records a person's resolution and closes the row's cases. A commit whose
// outcome was unknown is tried again: it finds the resolution among the attempts, and
// records it no second time.
func (b *Recording[R]) RecordResolution(row R, a *Answer) {
	p := row.Subject()
	if b.resolvedBy(a) {
		return
	}
	at := b.Heads[p.Ref.Client].NextTime()
	why := till.Because(till.ReasonResolvedBy, a.By)
	if a.Digest != nil {
		why = till.Because(till.ReasonResolvedOn, a.By, hex.EncodeToString(a.Digest))
	}
	b.attempts = append(b.attempts, &store.Attempt{
		ClientID: p.Ref.Client, SubjectID: p.Ref.ID, Kind: store.AttemptResolve, Connection: p.Connection, Reference: a.Reference,
		Outcome: string(a.Result.Outcome), Why: why, Detail: why.String(), StartedAt: a.Started, EndedAt: a.Ended,
	})
	b.AddAudit(p.Ref.Client, p.Ref.ID, at, a.By, "resolve", "as "+string(a.Result.Outcome)+"; "+a.Evidence)
	b.closed = append(b.closed, store.CaseClosure{Ref: p.Ref, By: a.By, At: at, Evidence: a.Digest,
		Why: till.Because(till.ReasonResolved, b.table.Name(), string(a.Result.Outcome))})
}

// resolvedBy reports whether a person's resolution is recorded already, by a commit whose
// outcome was unknown.
func (b *Recording[R]) resolvedBy(a *Answer) bool {
	last := b.lastAttempts[a.Ref]
	return last != nil && last.Kind == store.AttemptResolve && last.StartedAt == a.Started
}

// Wallet returns the client's wallet in a currency, as this batch has left it. It exists
// since the method was enabled; a missing one is inserted first.
func (b *Recording[R]) Wallet(ctx context.Context, client till.ID, currency string) (*ledger.Wallet, error) {
	k := walletKey{client, currency}
	if w := b.wallets[k]; w != nil {
		return w, nil
	}
	i := slices.IndexFunc(b.clientWallets, func(w *ledger.Wallet) bool { return w.ClientID == client && w.Currency == currency })
	if i >= 0 {
		b.wallets[k] = b.clientWallets[i]
		return b.clientWallets[i], nil
	}
	if err := b.Tx.EnsureWallet(ctx, client, currency, b.Heads[client].NextTime()); err != nil {
		return nil, err
	}
	w, err := b.Tx.Wallet(ctx, client, currency)
	if err != nil {
		return nil, err
	}
	b.wallets[k] = w
	return w, nil
}

// AddTransaction collects an entry that was applied to a wallet, with its transaction.
func (b *Recording[R]) AddTransaction(t *ledger.Transaction, e *ledger.Entry) {
	b.transactions = append(b.transactions, t)
	b.counts.AddTransaction(t.ClientID, t.CreatedAt, t.Type, t.Amount.Currency)
	if id := cmp.Or(t.PayoutID, t.PaymentID); !id.IsZero() { // a refund's line has both
		p := b.Rows[store.Ref{Client: t.ClientID, ID: id}].Subject()
		b.counts.AddMoney(t.ClientID, t.CreatedAt, t.Type, t.Amount, p.Method, p.CreatedAt)
	}
	b.AddEntry(e, fmt.Sprintf("%s %s %sed", t.Amount.Value(), e.Currency, t.Direction))
}

// ApplyEntry applies an entry to a wallet and collects it: with a transaction, or without
// one if all of it is owed. An entry without a time gets the client's next.
func (b *Recording[R]) ApplyEntry(w *ledger.Wallet, e *ledger.Entry) error {
	if e.CreatedAt.IsZero() {
		e.CreatedAt = b.Heads[w.ClientID].NextTime()
	}
	e.ID = till.NewID(e.CreatedAt)
	if _, touched := e.WalletAmount(); !touched {
		owed := w.Owed
		if err := w.Owe(e); err != nil {
			return fmt.Errorf("%s of %s: %w", e.Kind, e.Subject(), err)
		}
		b.AddEntry(e, fmt.Sprintf("%d %s owed", w.Owed-owed, e.Currency))
		return nil
	}
	t, err := w.Post(e)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", e.Kind, e.Subject(), err)
	}
	b.AddTransaction(&t, e)
	return nil
}

// repay pays what clients owe from what this batch leaves available. No wallet is written
// with both a debt and available money.
func (b *Recording[R]) repay() error {
	b.answer = nil
	for _, w := range b.wallets {
		if e, owes := ledger.Repay(w); owes {
			if err := b.ApplyEntry(w, &e); err != nil {
				return err
			}
			row := b.audit[len(b.audit)-1] // ApplyEntry's
			row.Cause, row.Detail = causeRepay, row.Detail+"; "+ledger.RepaidReference
		}
	}
	return nil
}

// causeRepay is the cause of an audit row without an answer: the commit made money
// available to a client that owes.
const causeRepay = "repay"

// AddEntry collects an entry that touches no wallet, and the reason.
func (b *Recording[R]) AddEntry(e *ledger.Entry, why string) {
	b.entries = append(b.entries, e)
	b.AddAudit(e.ClientID, e.Subject(), e.CreatedAt, "engine", string(e.Kind), why)
}

// Fact collects what may happen to a row at most once. The database rejects a second time.
func (b *Recording[R]) Fact(row R, fact string, e *ledger.Entry) {
	b.facts = append(b.facts, store.Fact{Ref: row.Subject().Ref, Fact: fact, EntryID: e.ID})
}

// Write writes the batch's net result, table by table, in the lock order.
func (b *Recording[R]) Write(ctx context.Context) error {
	for ref := range b.fromCache {
		if !slices.Contains(b.changed, b.Rows[ref]) {
			return fmt.Errorf("%w: decision used a cached row that this commit does not update", store.ErrConstraint)
		}
	}
	if err := b.repay(); err != nil {
		return err
	}
	steps := make([]*store.Step, 0, len(b.Steps))
	for _, s := range b.Steps {
		if s != nil {
			steps = append(steps, s)
		}
	}
	wallets := make([]*ledger.Wallet, 0, len(b.wallets))
	for _, w := range b.wallets {
		wallets = append(wallets, w)
	}
	for _, f := range []func() error{
		func() error { return b.Tx.InsertReceipts(ctx, b.table.Kind, b.receipts) },
		func() error { return b.Tx.NameHandles(ctx, b.newHandles) },
		func() error { return b.table.Update(ctx, b.Tx, b.changed) },
		func() error { return b.writeWindows(ctx) },
		func() error { return b.Tx.SaveSteps(ctx, steps) },
		func() error { return b.Tx.ForgetCallbackBodies(ctx, b.callbacksToForget) },
		func() error { return b.Tx.DeleteSteps(ctx, b.deletedSteps) },
		func() error { return b.Tx.SaveWallets(ctx, wallets) },
		func() error { return b.Tx.InsertTransactions(ctx, b.transactions) },
		func() error { return b.Tx.InsertEntries(ctx, b.entries) },
		func() error { return b.Tx.InsertFacts(ctx, b.facts) },
		func() error { return b.writeFlows(ctx) },
		func() error { return b.Tx.InsertEvents(ctx, b.events) },
		func() error { return b.Tx.InsertAttentionEvents(ctx, b.attentionEvents) },
		func() error { return b.Tx.RecordAttempts(ctx, b.attempts, b.lastAttempts) },
		func() error { return b.writeCases(ctx) },
		func() error { return b.Tx.InsertAudit(ctx, b.audit) },
		func() error { return b.Tx.AddCounts(ctx, &b.counts) },
		func() error { return b.Tx.SaveHeads(ctx, b.Heads) },
		func() error { return b.writeAccount(ctx) },
	} {
		if err := f(); err != nil {
			return err
		}
	}
	b.updateCache()
	return nil
}

// updateCache caches the rows as they are left, for the next answers. It drops a row that
// has ended.
func (b *Recording[R]) updateCache() {
	left := make(map[store.Ref]any, len(b.changed))
	for _, row := range b.changed {
		if p := row.Subject(); p.Final {
			left[p.Ref] = nil
		} else if b.table.Lean != nil {
			left[p.Ref] = b.table.Lean(row)
		}
	}
	b.worker.recent.note(left)
}

// writeCases closes before it opens: the end of one case may open another.
func (b *Recording[R]) writeCases(ctx context.Context) error {
	if err := b.Tx.CloseCases(ctx, b.closed); err != nil {
		return err
	}
	return b.Tx.OpenCases(ctx, b.cases)
}
