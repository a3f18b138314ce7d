package books

import (
	"context"

	"till"
	"till/ledger"
	"till/store"
	"till/store/proof"
)

// verifyWallets walks each wallet's statement. Lines never change, so the
// running balance holds across snapshots; it is compared with the wallet in
// the one that has no further line.
func (v *verifier) verifyWallets(ctx context.Context) error {
	var wallets []*ledger.Wallet
	err := v.view(ctx, func(tx *store.Tx) (err error) {
		wallets, err = tx.Wallets(ctx, v.client)
		return err
	})
	if err != nil {
		return err
	}
	for _, w := range wallets {
		v.Wallets++
		if err := v.verifyWallet(ctx, w.ID, w.Currency); err != nil {
			return err
		}
	}
	return nil
}

// verifyStray finds lines that are in no wallet. They are not those of the
// walk above.
func (v *verifier) verifyStray(ctx context.Context) error {
	for last, more := (till.ID{}), true; more; {
		err := v.view(ctx, func(tx *store.Tx) error {
			stray, next, n, err := proof.CountStrayLines(ctx, tx, v.client, last, v.o.Slice)
			v.check(stray == 0, "I3", till.ID{}, "%d transactions are in no wallet of the client", stray)
			last, more = next, n > 0
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) verifyWallet(ctx context.Context, id till.ID, currency string) error {
	var last, balance int64
	for {
		var slice []*proof.StatementLine
		var w *ledger.Wallet
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			if w, err = tx.Wallet(ctx, v.client, currency); err != nil {
				return err
			}
			if slice, err = proof.Statement(ctx, tx, v.client, id, last, v.o.Slice); err != nil || len(slice) > 0 {
				return err
			}
			return v.verifyReserved(ctx, tx, w)
		})
		if err != nil {
			return err
		}
		if len(slice) == 0 {
			v.verifyBalance(w, id, balance, last)
			return nil
		}
		for _, t := range slice {
			v.Transactions++
			v.check(t.Sequence == last+1, "I3", id, "the statement has a gap between %d and %d", last, t.Sequence)
			last = t.Sequence
			amount := t.Amount.Minor
			if t.Direction == "debit" {
				amount = -amount
			}
			balance += amount
			v.check(t.BalanceAfter == balance, "I3", t.ID, "the balance after line %d is %d and should be %d", t.Sequence, t.BalanceAfter, balance)
			v.check(t.Amount.Currency == currency, "I3", t.ID, "a line in %s is in the wallet in %s", t.Amount.Currency, currency)
			v.check(t.ID.Time() == t.CreatedAt, "I4", t.ID, "its id says another time than created_at")
			v.check(t.OtherLines > 0 && t.Others == -amount, "I1", t.ID, "the entry does not balance: the wallet gets %d, the other sides %d", amount, t.Others)
			v.check(t.OtherKinds == 0, "I1", t.ID, "the sides of the entry are of different kinds or currencies")
			v.check(t.OtherMoment == 0, "I1", t.ID, "the sides of the entry were posted at different times")
			if t.Type == string(ledger.Collection) || t.Type == string(ledger.LateCollection) {
				v.check(!t.PaymentID.IsZero(), "I2", t.ID, "money came in for no payment")
			}
			if t.Type == string(ledger.Payout) || t.Type == string(ledger.LatePayout) {
				v.check(!t.PayoutID.IsZero(), "I2", t.ID, "money went out for no payout")
			}
			v.verifyRefundLine(t)
		}
	}
}

func (v *verifier) verifyBalance(w *ledger.Wallet, id till.ID, balance, last int64) {
	if w == nil || w.ID != id {
		v.problem("I3", id, "the wallet is gone")
		return
	}
	v.check(w.Balance == balance, "I3", id, "the balance is %d and the statement sums to %d", w.Balance, balance)
	v.check(w.LastSequence == last, "I3", id, "the last sequence is %d and the statement ends at %d", w.LastSequence, last)
	v.check(w.Reserved >= 0 && w.Available() >= 0 && w.Balance <= ledger.MaxBalance, "I3", id,
		"the balance %d or what is reserved of it, %d, is out of bounds", w.Balance, w.Reserved)
}

// verifyEntries proves the rest of I1: the entries that touch no wallet. Every
// entry balances in its one currency, so all of them together do.
//
// Entries never change and come in the order of time, so what they say about
// debts and corrections adds up across snapshots; it is compared with the
// wallets, the corrections and the facts in the one that has no further entry.
func (v *verifier) verifyEntries(ctx context.Context) error {
	var last till.ID
	owed, adjusting, once := map[string]int64{}, int64(0), int64(0)
	for {
		var slice []*proof.PostedEntry
		var end *moneyEnd
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			if slice, err = proof.PostedEntries(ctx, tx, v.client, last, v.o.Slice); err == nil && len(slice) == 0 {
				end, err = v.readEnd(ctx, tx)
			}
			return err
		})
		if err != nil {
			return err
		}
		if end != nil {
			v.verifyOwed(end, owed, adjusting, once)
			return nil
		}
		for _, e := range slice {
			v.Entries++
			last = e.ID
			v.check(e.Currencies == 1, "I1", e.ID, "the entry has postings in %d currencies", e.Currencies)
			v.check(e.ID.Time() == e.CreatedAt, "I4", e.ID, "its id says another time than created_at")
			v.check(e.Misplaced == 0, "I1", e.ID, "an entry of kind %s posts to an account that it cannot touch", e.Kind)
			owed[e.Currency] += e.Owed
			adjusting += int64(e.Adjusting)
			if onceOnly(e.Kind) {
				once++
			}
			if e.Line {
				continue // it was judged with its line
			}
			v.check(e.Kind == ledger.Suspense || e.Owed > 0 && (e.Kind == ledger.CollectionReversal || e.Kind == ledger.LatePayout || e.Kind == ledger.LateRefund || e.Kind == ledger.Adjustment), "I1", e.ID, "an entry of kind %s touches no wallet", e.Kind)
			v.check(e.Lines >= 2 && e.Sum == 0, "I1", e.ID, "the entry does not balance: its %d postings sum to %d", e.Lines, e.Sum)
		}
	}
}

// verifySuspense proves of I1 that no payment took more out of suspense than was put there
// for it. Few postings are in suspense.
func (v *verifier) verifySuspense(ctx context.Context) error {
	return v.view(ctx, func(tx *store.Tx) error {
		refs, by, err := proof.OverdrawnSuspense(ctx, tx, v.o.MaxProblems)
		for i, ref := range refs {
			v.client = ref.Client
			v.problem("I1", ref.ID, "%s %s more were taken out of suspense than were put there for it", by[i].Value(), by[i].Currency)
		}
		return err
	})
}
