package ledger

import "till"

// Wallet is what the service owes a client in one currency.
type Wallet struct {
	ClientID     till.ID
	ID           till.ID
	Currency     string
	Balance      int64
	Reserved     int64 // held for payouts on their way
	Owed         int64 // what the client owes us: repaid first by what comes in
	LastSequence int64 // of its transactions
	UpdatedAt    till.Time

	// Broken says that the balance was not that of the last line when the wallet was read.
	// Nothing is posted to such a wallet; see ErrBroken.
	Broken bool
}

// Available returns what may be paid out.
func (w *Wallet) Available() int64 { return w.Balance - w.Reserved }

// Transaction is one line of a wallet's statement. It never changes.
type Transaction struct {
	ClientID     till.ID
	ID           till.ID
	WalletID     till.ID
	Sequence     int64 // dense per wallet, from 1
	Type         string
	Direction    string // credit or debit
	Amount       till.Money
	BalanceAfter int64

	PaymentID         till.ID // zero where there is none
	PayoutID          till.ID
	Reference         string
	ProviderReference string
	CreatedAt         till.Time
	Method            string // of the payment or payout, as it is read; "" where there is none
}

// Post applies the entry's wallet line, and what of it the client owes, and
// returns the line as a transaction. It returns ErrOutOfBounds, and changes
// nothing, if a sum would leave its bounds, and ErrBroken if the wallet is broken.
func (w *Wallet) Post(e *Entry) (Transaction, error) {
	amount, ok := e.WalletAmount()
	if !ok {
		return Transaction{}, errUnbalanced
	}
	if w.Broken {
		return Transaction{}, ErrBroken
	}
	balance := w.Balance + amount
	if balance < w.Reserved || balance > MaxBalance {
		return Transaction{}, ErrOutOfBounds
	}
	if err := w.Owe(e); err != nil {
		return Transaction{}, err
	}
	w.Balance = balance
	w.LastSequence++

	t := Transaction{
		ClientID: e.ClientID, ID: e.ID, WalletID: w.ID, Sequence: w.LastSequence,
		Type: string(e.Kind), Direction: "credit",
		Amount:       till.Money{Minor: amount, Currency: e.Currency},
		BalanceAfter: balance, PaymentID: e.PaymentID, PayoutID: e.PayoutID, Reference: e.Reference,
		ProviderReference: e.ProviderReference, CreatedAt: e.CreatedAt,
	}
	if amount < 0 {
		t.Direction, t.Amount.Minor = "debit", -amount
	}
	return t, nil
}

// Owe applies what an entry says about the client's debt, and nothing else: an
// entry that takes all of its money from there has no line in the wallet. It
// returns ErrOutOfBounds, and changes nothing, if the debt would leave its
// bounds, and ErrBroken if the wallet is broken.
func (w *Wallet) Owe(e *Entry) error {
	if w.Broken {
		return ErrBroken
	}
	owed := w.Owed - e.sum(Receivable)
	if owed < 0 || owed > MaxBalance {
		return ErrOutOfBounds
	}
	w.Owed, w.UpdatedAt = owed, e.CreatedAt
	return nil
}
