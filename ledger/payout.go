package ledger

import "till"

// The kinds of entries of payouts, and of those that are refunds.
const (
	Payout     EntryKind = "payout"
	LatePayout EntryKind = "late_payout" // touches no wallet that has nothing
	Refund     EntryKind = "refund"
	LateRefund EntryKind = "late_refund" // as LatePayout
)

// Reserve holds an amount back for a payout on its way. It returns
// ErrOutOfBounds, and changes nothing, if less is available, and ErrBroken if the wallet is
// broken.
func (w *Wallet) Reserve(amount int64, at till.Time) error {
	if w.Broken {
		return ErrBroken
	}
	if amount < 0 || amount > w.Available() {
		return ErrOutOfBounds
	}
	w.Reserved, w.UpdatedAt = w.Reserved+amount, at
	return nil
}

// Release gives back what Reserve held: the payout is over, or its money is
// about to be posted. It returns ErrOutOfBounds, and changes nothing, if less
// is held.
func (w *Wallet) Release(amount int64, at till.Time) error {
	if amount < 0 || amount > w.Reserved {
		return ErrOutOfBounds
	}
	w.Reserved, w.UpdatedAt = w.Reserved-amount, at
	return nil
}

// PayOut returns the entry for a payout whose recipient has the money.
func PayOut(p *till.Payout) Entry {
	kind := Payout
	if p.IsRefund() {
		kind = Refund
	}
	e := payoutEntry(p, kind)
	e.Postings = []Posting{
		{Account{Kind: WalletAccount}, -p.Amount.Minor},
		{Account{Kind: OperatorAccount, Connection: p.Connection}, p.Amount.Minor},
	}
	return e
}

// TakePayoutFee returns the entry for the fee of a payout that succeeded.
func TakePayoutFee(p *till.Payout) Entry {
	e := payoutEntry(p, Fee)
	e.Postings = feePostings(p.Fee)
	return e
}

// PayOutLate returns the entry for a payout that was paid after it had failed,
// so that its reserve may be spent. It is recorded whatever the wallet holds:
// what is available covers it, the rest is owed by the client. No fee is
// taken: the client was notified that it failed.
func PayOutLate(p *till.Payout, available int64) Entry {
	kind := LatePayout
	if p.IsRefund() {
		kind = LateRefund
	}
	e := payoutEntry(p, kind)
	e.Postings = []Posting{{Account{Kind: OperatorAccount, Connection: p.Connection}, p.Amount.Minor}}
	e.debitOrOwe(p.Amount.Minor, available)
	return e
}

func payoutEntry(p *till.Payout, kind EntryKind) Entry {
	return Entry{
		ClientID: p.ClientID, Kind: kind, Currency: p.Amount.Currency,
		PaymentID: p.PaymentID, PayoutID: p.ID, Reference: p.Reference,
		ProviderReference: p.ProviderReference, Connection: p.Connection,
	}
}
