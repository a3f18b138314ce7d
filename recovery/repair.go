package recovery

import (
	"context"
	"fmt"

	"till"
	"till/engine"
	"till/ledger"
	"till/store"
	"till/store/proof"
)

// WalletRepair is a wallet that differs from its lines, and what the lines say.
type WalletRepair struct {
	Was, Is ledger.Wallet
	// Lines says why the lines themselves are wrong; "" means that they are right. Lines
	// never change, so such a wallet cannot be rebuilt.
	Lines string
}

// repairSlice is how many lines are read at a time.
const repairSlice = 1000

// BrokenWallets returns the wallets whose balance, last sequence, reserve or debt is not
// what immutable rows say: their lines, the open payouts, and the entries.
func BrokenWallets(ctx context.Context, s *store.Store) (out []*WalletRepair, err error) {
	err = s.EachPageOfClients(ctx, func(clients []till.ID) error {
		for _, client := range clients {
			err := s.View(ctx, func(tx *store.Tx) error {
				wallets, err := tx.Wallets(ctx, client)
				if err != nil {
					return err
				}
				for _, w := range wallets {
					r, err := rebuild(ctx, tx, w)
					if err != nil {
						return err
					}
					if r != nil {
						out = append(out, r)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// rebuild returns what a wallet should be, nil if it is that.
func rebuild(ctx context.Context, tx *store.Tx, w *ledger.Wallet) (*WalletRepair, error) {
	sum, err := proof.SumLines(ctx, tx, w.ClientID, w.ID)
	if err != nil {
		return nil, err
	}
	reserved, err := proof.Reserves(ctx, tx, w.ClientID, w.Currency)
	if err != nil {
		return nil, err
	}
	posted, err := tx.Posted(ctx, w.ClientID, ledger.Receivable, w.Currency)
	if err != nil {
		return nil, err
	}
	r := &WalletRepair{Was: *w, Is: *w}
	r.Is.Balance, r.Is.LastSequence, r.Is.Reserved, r.Is.Owed, r.Is.Broken = sum.Balance, sum.Last, reserved, -posted, false
	if r.Was == r.Is {
		return nil, nil
	}
	if r.Lines, err = wrongLines(ctx, tx, w); err != nil || r.Lines != "" {
		return r, err
	}
	if r.Is.Balance < 0 || r.Is.Balance > ledger.MaxBalance || r.Is.Available() < 0 || r.Is.Owed < 0 {
		r.Lines = fmt.Sprintf("they sum to %d, of which %d would be reserved and %d owed", r.Is.Balance, r.Is.Reserved, r.Is.Owed)
	}
	return r, nil
}

// wrongLines says what is wrong with a wallet's lines, "" if nothing is.
func wrongLines(ctx context.Context, tx *store.Tx, w *ledger.Wallet) (string, error) {
	var last, balance int64
	for {
		lines, err := proof.Statement(ctx, tx, w.ClientID, w.ID, last, repairSlice)
		if err != nil || len(lines) == 0 {
			return "", err
		}
		for _, t := range lines {
			amount := t.Amount.Minor
			if t.Direction == "debit" {
				amount = -amount
			}
			balance += amount
			if t.Sequence != last+1 {
				return fmt.Sprintf("there is a gap between line %d and %d", last, t.Sequence), nil
			}
			if t.BalanceAfter != balance {
				return fmt.Sprintf("the balance after line %d is %d and should be %d", t.Sequence, t.BalanceAfter, balance), nil
			}
			last = t.Sequence
		}
	}
}

// RepairWallet rebuilds a wallet, if it still differs as it did when it was shown, and
// writes that into the client's audit log. What waits for it is due at once.
func RepairWallet(ctx context.Context, s *store.Store, shown *WalletRepair, by string) error {
	client := shown.Was.ClientID
	_, err := store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, again bool) error {
		heads, err := tx.LockHeads(ctx, []till.ID{client})
		if err != nil {
			return err
		}
		w, err := tx.Wallet(ctx, client, shown.Was.Currency)
		if err != nil {
			return err
		}
		r, err := rebuild(ctx, tx, w)
		switch {
		case err != nil:
			return err
		case r == nil && again:
			return nil // it was committed
		case r == nil || *r != *shown:
			return till.Errorf(till.CodeValidationFailed, "the wallet has changed since it was shown: run the command again")
		case r.Lines != "":
			return till.Errorf(till.CodeValidationFailed, "its lines are wrong, and lines never change: put a backup back")
		}
		head := heads[client]
		r.Is.UpdatedAt = head.NextTime()
		audit := &store.AuditRow{ClientID: client, Sequence: head.NextAudit(), At: r.Is.UpdatedAt, Actor: by, Action: "wallet.rebuild", Detail: r.String()}
		if err := tx.SaveWallets(ctx, []*ledger.Wallet{&r.Is}); err != nil {
			return err
		}
		if err := tx.InsertAudit(ctx, []*store.AuditRow{audit}); err != nil {
			return err
		}
		if err := tx.SaveHeads(ctx, heads); err != nil {
			return err
		}
		return hastenQuarantined(ctx, tx, client)
	})
	return err
}

// String says what the repair changes.
func (r *WalletRepair) String() string {
	return fmt.Sprintf("%s: balance %d is %d by its lines, last line %d is %d, reserved %d is %d, owed %d is %d", r.Was.Currency,
		r.Was.Balance, r.Is.Balance, r.Was.LastSequence, r.Is.LastSequence, r.Was.Reserved, r.Is.Reserved, r.Was.Owed, r.Is.Owed)
}

// hastenQuarantined makes the quarantined payments and payouts of a client due now: their
// answers can be recorded again.
func hastenQuarantined(ctx context.Context, tx *store.Tx, client till.ID) error {
	cases, err := tx.Cases(ctx, store.CaseFilter{Client: client, Kind: engine.CaseQuarantined, Limit: MaxUnexplained})
	refs := make([]store.Ref, len(cases))
	for i, c := range cases {
		refs[i] = store.Ref{Client: c.ClientID, ID: c.SubjectID}
	}
	if err != nil {
		return err
	}
	return tx.HastenSteps(ctx, refs)
}
