package ledger

import "till"

// TakeFee returns the entry for the fee of a payment whose money came in. The
// fee is never more than that money, so the wallet covers it.
func TakeFee(p *till.Payment) Entry {
	e := entryOf(p, Fee)
	e.Postings = feePostings(p.Fee)
	return e
}

func feePostings(fee int64) []Posting {
	return []Posting{{Account{Kind: WalletAccount}, -fee}, {Account{Kind: Fees}, fee}}
}

// Reverse returns the entry for a collection that the operator took back. It
// is recorded whatever the wallet holds: what is available covers it, the
// rest is owed by the client. The fee is not given back: the work was done.
func Reverse(p *till.Payment, available int64) Entry {
	e := entryOf(p, CollectionReversal)
	e.Postings = []Posting{{Account{Kind: OperatorAccount, Connection: p.Connection}, p.Amount.Minor}}
	e.debitOrOwe(p.Amount.Minor, available)
	return e
}

// debitOrOwe takes an amount from the wallet, whatever it holds: what is available
// covers it, the client owes the rest.
func (e *Entry) debitOrOwe(amount, available int64) {
	covered := min(amount, max(available, 0))
	if covered > 0 {
		e.Postings = append(e.Postings, Posting{Account{Kind: WalletAccount}, -covered})
	}
	if owed := amount - covered; owed > 0 {
		e.Postings = append(e.Postings, Posting{Account{Kind: Receivable}, -owed})
	}
}

// RepaidReference is the reference of a line that pays back what a client
// owes: such a line belongs to no payment.
const RepaidReference = "repayment of what was owed"

// Repay returns the entry that pays what a client owes from what its wallet
// has available, and whether there is anything to pay. No wallet is left with
// both: money that could be paid out, and a debt. A broken one waits for its repair.
func Repay(w *Wallet) (Entry, bool) {
	amount := min(w.Owed, w.Available())
	if amount <= 0 || w.Broken {
		return Entry{}, false
	}
	return Entry{
		ClientID: w.ClientID, Kind: Adjustment, Currency: w.Currency, Reference: RepaidReference,
		Postings: []Posting{{Account{Kind: WalletAccount}, -amount}, {Account{Kind: Receivable}, amount}},
	}, true
}

// Adjust returns the entry of a person's correction of a wallet: a credit if
// the amount is positive, a debit if it is negative.
func Adjust(w *Wallet, amount int64, reference string) Entry {
	return Entry{
		ClientID: w.ClientID, Kind: Adjustment, Currency: w.Currency, Reference: reference,
		Postings: []Posting{{Account{Kind: Adjustments}, -amount}, {Account{Kind: WalletAccount}, amount}},
	}
}

// Correct is Adjust for a correction that is made whatever the wallet holds. The
// client owes what is not available for a debit.
func Correct(w *Wallet, amount int64, reference string) Entry {
	e := Adjust(w, amount, reference)
	if amount >= 0 {
		return e
	}
	e.Postings = e.Postings[:1] // the other side, which has all of it
	e.debitOrOwe(-amount, w.Available())
	return e
}

// sum returns what the entry's postings of one kind of account sum to.
func (e *Entry) sum(kind AccountKind) (sum int64) {
	for _, p := range e.Postings {
		if p.Account.Kind == kind {
			sum += p.Amount
		}
	}
	return sum
}
