package books

import (
	"context"
	"errors"
	"fmt"

	"till"
	"till/ledger"
	"till/store"
)

// Adjustment is a person's correction of a client's wallet.
type Adjustment struct {
	Client till.ID
	ID     till.ID    // chosen by the person: the same id adjusts once
	Amount till.Money // a credit if positive, a debit if negative
	Reason string     // for the audit log; the client does not see it
	By     string     // the person
}

// AdjustResult is the result of an adjustment.
type AdjustResult struct {
	store.Adjustment
	Wallet ledger.Wallet // as it is now
	Before bool          // it was made by an earlier call
}

// Adjust corrects a wallet, in one commit, once per id. A credit first repays
// what the client owes. It returns CodeClientNotFound, CodeKeyReused if the id
// made another adjustment, or CodeValidationFailed if too little is available,
// if the client has no wallet in the currency, or if the wallet cannot hold so
// much. It returns ledger.ErrBroken if the wallet differs from its statement.
func Adjust(ctx context.Context, s *store.Store, a Adjustment) (AdjustResult, error) {
	if a.Amount.Minor == 0 || a.Amount.Minor > till.MaxMinor || a.Amount.Minor < -till.MaxMinor || a.ID.IsZero() || a.Reason == "" || a.By == "" {
		return AdjustResult{}, till.Errorf(till.CodeValidationFailed, "an adjustment has an id, an amount that is not nothing, a reason and a name")
	}
	var done AdjustResult
	act := func(tx *store.Tx) (err error) { done, err = adjust(ctx, tx, a); return err }
	err := s.Update(ctx, act)
	if errors.Is(err, store.ErrUnknownCommit) {
		// The outcome is unknown. If it was committed, its id is there and is
		// adopted; if not, it is done now.
		ours := done.EntryID
		if err = s.Update(ctx, act); err == nil && done.EntryID == ours {
			done.Before = false
		}
	}
	return done, err
}

// adjust is the transaction of an adjustment.
func adjust(ctx context.Context, tx *store.Tx, a Adjustment) (AdjustResult, error) {
	heads, err := tx.LockHeads(ctx, []till.ID{a.Client})
	if err != nil {
		return AdjustResult{}, err
	}
	head := heads[a.Client]
	if head == nil {
		return AdjustResult{}, till.Errorf(till.CodeClientNotFound, "there is no such client")
	}
	w, err := tx.Wallet(ctx, a.Client, a.Amount.Currency)
	if err != nil {
		return AdjustResult{}, err
	}
	made, err := tx.Adjustment(ctx, store.Ref{Client: a.Client, ID: a.ID})
	switch {
	case err != nil:
		return AdjustResult{}, err
	case made != nil && (made.Amount != a.Amount || made.Reason != a.Reason || !till.SameActor(made.Actor, a.By)):
		return AdjustResult{}, till.Errorf(till.CodeKeyReused, "the id %s made another adjustment: %s %s by %s; a new adjustment needs a new id",
			a.ID, made.Amount.Value(), made.Amount.Currency, made.Actor)
	case w == nil:
		return AdjustResult{}, till.Errorf(till.CodeValidationFailed, "the client has no wallet in %q", a.Amount.Currency)
	case made != nil:
		return AdjustResult{*made, *w, true}, nil
	case w.Broken:
		return AdjustResult{}, ledger.ErrBroken
	}
	if short := -a.Amount.Minor - w.Available(); short > 0 {
		return AdjustResult{}, till.Errorf(till.CodeValidationFailed, "the wallet has %d %s available, %d too little", w.Available(), w.Currency, short)
	}
	if a.Amount.Minor > ledger.MaxBalance-w.Balance {
		return AdjustResult{}, till.Errorf(till.CodeValidationFailed, "the wallet cannot hold so much")
	}

	b := &adjustmentTx{tx: tx, head: head, w: w}
	entry := ledger.Adjust(w, a.Amount.Minor, a.ID.String())
	if err := b.post(&entry, a.By, "adjustment "+a.ID.String()+": "+a.Reason); err != nil {
		return AdjustResult{}, err
	}
	if e, owes := ledger.Repay(w); owes {
		if err := b.post(&e, a.By, "what was owed is paid first"); err != nil {
			return AdjustResult{}, err
		}
	}
	row := store.Adjustment{ClientID: a.Client, ID: a.ID, EntryID: entry.ID, Amount: a.Amount, Reason: a.Reason, Actor: a.By, CreatedAt: entry.CreatedAt}
	return AdjustResult{row, *w, false}, b.write(ctx, heads, &row)
}

// adjustmentTx collects the rows of an adjustment.
type adjustmentTx struct {
	tx      *store.Tx
	head    *store.Head
	w       *ledger.Wallet
	lines   []*ledger.Transaction
	entries []*ledger.Entry
	audit   []*store.AuditRow
	counts  store.CounterDelta

	evidence []byte // SHA-256 of the evidence, if there is any
}

func (b *adjustmentTx) post(e *ledger.Entry, by, why string) error {
	e.CreatedAt = b.head.NextTime()
	e.ID = till.NewID(e.CreatedAt)
	owed, moved := b.w.Owed, ""
	if _, touches := e.WalletAmount(); touches {
		t, err := b.w.Post(e)
		if err != nil {
			return fmt.Errorf("adjust: %w", err)
		}
		b.lines = append(b.lines, &t)
		b.counts.AddTransaction(t.ClientID, t.CreatedAt, t.Type, t.Amount.Currency)
		moved = fmt.Sprintf("%s %s %sed; ", t.Amount.Value(), e.Currency, t.Direction)
	} else if err := b.w.Owe(e); err != nil {
		return fmt.Errorf("adjust: %w", err)
	}
	if more := b.w.Owed - owed; more > 0 {
		moved += fmt.Sprintf("%d %s owed; ", more, e.Currency)
	}
	b.entries = append(b.entries, e)
	b.audit = append(b.audit, &store.AuditRow{
		ClientID: e.ClientID, Sequence: b.head.NextAudit(), At: e.CreatedAt, Actor: by, Action: string(e.Kind), Detail: moved + why, Evidence: b.evidence,
	})
	return nil
}

// write writes the rows, in the lock order.
func (b *adjustmentTx) write(ctx context.Context, heads map[till.ID]*store.Head, a *store.Adjustment) error {
	for _, f := range []func() error{
		func() error { return b.tx.InsertAdjustment(ctx, a) },
		func() error { return b.tx.SaveWallets(ctx, []*ledger.Wallet{b.w}) },
		func() error { return b.tx.InsertTransactions(ctx, b.lines) },
		func() error { return b.tx.InsertEntries(ctx, b.entries) },
		func() error { return b.tx.InsertAudit(ctx, b.audit) },
		func() error { return b.tx.AddCounts(ctx, &b.counts) },
		func() error { return b.tx.SaveHeads(ctx, heads) },
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
