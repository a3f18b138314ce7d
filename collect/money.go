package collect

import (
	"context"
	"fmt"
	"slices"

	"till"
	"till/engine"
	"till/ledger"
	"till/store"
)

// The kinds of cases that payments open.
const (
	CaseOverdue       = "overdue"        // the window is over and the operator has not decided
	CaseUnknownStatus = "unknown_status" // the operator says a word we do not know
	CaseMismatch      = "mismatch"       // money came, but not what was asked for
	CaseContradiction = "contradiction"  // the operator takes back what it said
	CaseLateMoney     = "late_money"     // money came after another final
	CaseReceiptReused = "receipt_reused" // one receipt for two payments
	CaseWalletFull    = "wallet_full"    // the wallet cannot hold the money
)

// succeed takes an operator's word that a customer's money moved. It is
// believed only if it is the money that was asked for, under a receipt that
// no other payment has.
func (b *change) succeed(ctx context.Context, p *store.PaymentRow, a *engine.Answer) error {
	r := a.Result
	if p.Status == till.Success || p.LateEvent != 0 {
		if a.Action == engine.Resolve {
			b.resolved(p, a)
		} else if r.Receipt != "" && p.ProviderReference != "" && r.Receipt != p.ProviderReference {
			b.open(p, CaseContradiction, "the operator reports a second success with another receipt")
		}
		return nil
	}
	if a.Action != engine.Resolve {
		if why := mismatch(p, a); why != "" {
			b.suspend(p, a, CaseMismatch, why)
			return nil
		}
	}
	if b.receiptTaken(p, r.Receipt) {
		if a.Action == engine.Resolve {
			a.Refused = till.Errorf(till.CodeValidationFailed, "another payment has this receipt")
			return nil
		}
		b.attend(p)
		b.open(p, CaseReceiptReused, "the operator reports a success under a receipt that another payment has")
		return nil
	}
	return b.settle(ctx, p, a)
}

// mismatch says in which way a reported success is not the payment's, "" if
// it is. What the operator does not say cannot differ.
func mismatch(p *store.PaymentRow, a *engine.Answer) string {
	r := a.Result
	switch {
	case r.Amount.Currency != "" && r.Amount.Currency != p.Amount.Currency:
		return "the operator reports another currency"
	case r.Amount.Currency != "" && r.Amount.Minor != p.Amount.Minor:
		return "the operator reports another amount"
	case r.Reference != "" && r.Reference != a.Reference.String():
		return "the operator reports another reference"
	}
	return ""
}

// receiptTaken answers whether another payment has the receipt, in the
// database or earlier in this batch, and notes that this one has it now.
func (b *change) receiptTaken(p *store.PaymentRow, text string) bool {
	if text == "" {
		return false
	}
	k := store.Receipt{Client: p.ClientID, Connection: p.Connection, Text: text}
	if id, ok := b.receipts[k]; ok {
		return id != p.ID
	}
	b.receipts[k] = p.ID
	return false
}

// settle credits the client's wallet: in the status' own commit if the
// payment was open, as late money if it had ended otherwise.
func (b *change) settle(ctx context.Context, p *store.PaymentRow, a *engine.Answer) error {
	late := p.Status.Final()
	var suspended int64
	if held, found := b.aside[a.Ref]; found && held.Currency == p.Amount.Currency {
		suspended = held.Minor
	}
	w, err := b.wallet(ctx, p.ClientID, p.Amount.Currency)
	if err != nil {
		return err
	}
	if w.Balance > ledger.MaxBalance-p.Amount.Minor {
		if a.Action == engine.Resolve {
			a.Refused = till.Errorf(till.CodeValidationFailed, "the wallet cannot hold the money")
			return nil
		}
		b.suspend(p, a, CaseWalletFull, "the wallet cannot hold the money")
		return nil
	}

	p.ProviderReference = a.Result.Receipt
	head := b.heads[p.ClientID]
	if late {
		p.UpdatedAt = head.Tick()
		p.LateEvent = head.NextEvent()
		b.tell(p, till.PaymentLateSuccess, p.LateEvent)
		if a.Action != engine.Resolve { // otherwise a person knows already
			b.open(p, CaseLateMoney, "money came after it had ended as "+string(p.Status)+"; it was credited")
		}
	} else {
		b.move(p, till.Success)
	}
	e := ledger.Settle(&p.Payment, late, suspended)
	e.CreatedAt = p.UpdatedAt
	e.ID = till.NewID(e.CreatedAt)
	t, err := w.Post(&e)
	if err != nil {
		return fmt.Errorf("credit payment %s: %w", p.ID, err)
	}
	b.post(&t, &e)
	if a.Action == engine.Resolve {
		b.resolved(p, a)
	}
	return nil
}

// post gathers an entry with its wallet line.
func (b *change) post(t *ledger.Transaction, e *ledger.Entry) {
	b.transactions = append(b.transactions, t)
	b.counts.AddTransaction(t.ClientID, t.CreatedAt, t.Type, t.Amount.Currency)
	b.entries = append(b.entries, e)
	b.record(e.ClientID, e.PaymentID, e.CreatedAt, "engine", string(e.Kind), fmt.Sprintf("%s %s credited", t.Amount.Value(), e.Currency))
}

// suspend puts money aside that came in for a payment but is not what it
// asked for. The payment stays as it is until a person looks at it.
func (b *change) suspend(p *store.PaymentRow, a *engine.Answer, kind, why string) {
	b.held(p)
	b.attend(p)
	_, found := b.aside[a.Ref]
	if !found || !p.Status.Final() { // a person who ended it has seen the money
		b.again(p, kind, why+"; nothing was credited", found)
	}
	if found {
		return
	}
	reported := a.Result.Amount
	if reported.Currency == "" {
		reported = p.Amount
	}
	if reported.Minor <= 0 {
		return // nothing moved, whatever it was called
	}
	e := ledger.Suspend(&p.Payment, reported)
	e.CreatedAt = b.heads[p.ClientID].Tick()
	e.ID = till.NewID(e.CreatedAt)
	b.entries = append(b.entries, &e)
	b.record(e.ClientID, e.PaymentID, e.CreatedAt, "engine", string(e.Kind), fmt.Sprintf("%s %s put aside: %s", reported.Value(), reported.Currency, why))
	b.aside[a.Ref] = reported
}

// attend marks an open payment as one that a person must look at.
func (b *change) attend(p *store.PaymentRow) {
	if !p.Status.Final() && !p.Attention {
		p.Attention = true
		b.touch(p)
	}
}

// wallet returns the client's wallet in a currency, as this batch has left
// it. It exists since the method was enabled; a missing one is made first.
func (b *change) wallet(ctx context.Context, client till.ID, currency string) (*ledger.Wallet, error) {
	k := purse{client, currency}
	if w := b.wallets[k]; w != nil {
		return w, nil
	}
	i := slices.IndexFunc(b.known, func(w *ledger.Wallet) bool { return w.ClientID == client && w.Currency == currency })
	if i >= 0 {
		b.wallets[k] = b.known[i]
		return b.known[i], nil
	}
	if err := b.tx.EnsureWallet(ctx, client, currency, b.heads[client].Tick()); err != nil {
		return nil, err
	}
	w, err := b.tx.Wallet(ctx, client, currency)
	if err != nil {
		return nil, err
	}
	b.wallets[k] = w
	return w, nil
}
