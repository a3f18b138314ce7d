package ledger

import (
	"errors"
	"fmt"

	"till"
)

// AccountKind says what an account holds.
type AccountKind string

// The kinds of accounts. All belong to one client and one currency.
const (
	WalletAccount   AccountKind = "wallet"      // what we owe the client
	OperatorAccount AccountKind = "operator"    // what a connection's operator holds for us
	SuspenseAccount AccountKind = "suspense"    // came in, cannot be attributed yet
	Receivable      AccountKind = "receivable"  // what the client owes us
	Fees            AccountKind = "fees"        // what the client has paid us
	Adjustments     AccountKind = "adjustments" // the other side of a person's corrections
)

// Account names an account of a client. Connection is set on operator
// accounts only: their statements are reconciled one by one.
type Account struct {
	Kind       AccountKind
	Connection string
}

// Posting is one line of an entry: a credit if positive, a debit if negative.
type Posting struct {
	Account Account
	Amount  int64
}

// EntryKind says why money moved. The kinds that touch a wallet are the types
// of transactions in the API.
type EntryKind string

// The kinds of entries.
const (
	Collection         EntryKind = "collection"
	LateCollection     EntryKind = "late_collection"
	CollectionReversal EntryKind = "collection_reversal" // touches no wallet that has nothing
	Fee                EntryKind = "fee"
	Adjustment         EntryKind = "adjustment"
	Suspense           EntryKind = "suspense" // touches no wallet
)

// TransactionTypes lists every type that a wallet's statement can show.
var TransactionTypes = []string{
	"collection", "late_collection", "collection_reversal", "payout",
	"payout_reversal", "late_payout", "refund", "late_refund", "fee", "adjustment",
}

// Entry is one money decision.
type Entry struct {
	ID        till.ID
	ClientID  till.ID
	Kind      EntryKind
	Currency  string
	Postings  []Posting
	CreatedAt till.Time

	PaymentID         till.ID // zero where it is about no payment; of a refund too
	PayoutID          till.ID // zero where it is about no payout or refund
	Reference         string  // the client's
	ProviderReference string
	Connection        string
}

var (
	// errUnbalanced says that an entry's postings do not sum to zero.
	errUnbalanced = errors.New("ledger: entry does not balance")
	// ErrOutOfBounds says that a balance would leave its bounds.
	ErrOutOfBounds = errors.New("ledger: balance out of bounds")
	// ErrBroken says that a wallet differs from its statement. A line that followed would
	// make the difference permanent, because lines never change.
	ErrBroken = till.Errorf(till.CodeServiceUnavailable,
		"the wallet's balance is not that of its last line, so nothing is posted to it: 'till repair wallets' rebuilds it from its lines")
)

// MaxBalance is the most that a wallet holds, in minor units. The database
// has the same number in a constraint.
const MaxBalance = 1_000_000_000_000_000_000

// Check answers nil if the entry is well formed: at least two postings, none
// of them zero, which sum to zero.
func (e *Entry) Check() error {
	var sum int64
	for _, p := range e.Postings {
		if p.Amount == 0 {
			return fmt.Errorf("%w: empty posting", errUnbalanced)
		}
		sum += p.Amount
	}
	if sum != 0 || len(e.Postings) < 2 {
		return errUnbalanced
	}
	return nil
}

// Subject returns the payment, payout or refund that the entry is about.
func (e *Entry) Subject() till.ID {
	if !e.PayoutID.IsZero() {
		return e.PayoutID
	}
	return e.PaymentID
}

// WalletAmount returns what the entry adds to the wallet (or takes, if
// negative), and whether it touches it at all.
func (e *Entry) WalletAmount() (int64, bool) {
	for _, p := range e.Postings {
		if p.Account.Kind == WalletAccount {
			return p.Amount, true
		}
	}
	return 0, false
}

// Settle returns the entry for a payment whose money came in: late if the
// payment had ended otherwise before. suspended is what an earlier Suspend
// put aside for this payment in the same currency; it is taken from there
// first, so that the operator's account is not debited twice for one
// movement of money.
func Settle(p *till.Payment, late bool, suspended int64) Entry {
	e := entryOf(p, Collection)
	if late {
		e.Kind = LateCollection
	}
	operator := Account{Kind: OperatorAccount, Connection: p.Connection}
	if fromOperator := p.Amount.Minor - suspended; fromOperator != 0 {
		e.Postings = append(e.Postings, Posting{operator, -fromOperator})
	}
	if suspended != 0 {
		e.Postings = append(e.Postings, Posting{Account{Kind: SuspenseAccount}, -suspended})
	}
	e.Postings = append(e.Postings, Posting{Account{Kind: WalletAccount}, p.Amount.Minor})
	return e
}

// Suspend returns the entry for money that the operator says came in for a
// payment but that is not what the payment asked for.
func Suspend(p *till.Payment, reported till.Money) Entry {
	e := entryOf(p, Suspense)
	e.Currency = reported.Currency
	e.Postings = []Posting{
		{Account{Kind: OperatorAccount, Connection: p.Connection}, -reported.Minor},
		{Account{Kind: SuspenseAccount}, reported.Minor},
	}
	return e
}

// GiveBack returns the entry for money in suspense that is not the client's: it was given
// back outside, or a report of it was wrong. The operator holds it for us no longer.
func GiveBack(p *till.Payment, aside till.Money) Entry {
	e := Suspend(p, aside)
	for i := range e.Postings {
		e.Postings[i].Amount = -e.Postings[i].Amount
	}
	return e
}

func entryOf(p *till.Payment, kind EntryKind) Entry {
	return Entry{
		ClientID: p.ClientID, Kind: kind, Currency: p.Amount.Currency,
		PaymentID: p.ID, Reference: p.Reference,
		ProviderReference: p.ProviderReference, Connection: p.Connection,
	}
}
