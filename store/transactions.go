package store

import (
	"context"

	"till"
	"till/internal/db"
	"till/ledger"
)

var insertFacts = db.DefineByClient(1, db.SQL{Name: "facts.insert",
	SQLite: `INSERT INTO facts (client_id, subject_id, fact, entry_id) VALUES ($1, $2, $3, $4)`,
	Postgres: `INSERT INTO facts (client_id, subject_id, fact, entry_id)
		SELECT u.a1, u.a2, u.a3, u.a4
		FROM (SELECT unnest($1::bytea[]) AS a1, unnest($2::bytea[]) AS a2, unnest($3::text[]) AS a3, unnest($4::bytea[]) AS a4 LIMIT $5::bigint) AS u`,
	Arrays: true})

// TransactionFilter says which transactions are wanted. Zero fields do not
// filter. PayoutID finds the lines of a refund, too.
type TransactionFilter struct {
	Type, Currency, Reference string
	PaymentID, PayoutID       till.ID
	RefundID                  till.ID
	From, To                  till.Time // both inclusive

	// Amount, in minor units of Currency, has no index: the caller bounds the range.
	Amount int64
}

const plainTransactionColumns = `p.id, p.wallet_id, p.sequence, p.type, p.direction, p.amount, p.currency, p.balance_after,
	p.payment_id, p.payout_id, p.reference, p.provider_reference, p.created_at`

const TransactionColumns = plainTransactionColumns + `,
	coalesce((SELECT q.method FROM payments q WHERE q.client_id = p.client_id AND q.id = p.payment_id),
		(SELECT o.method FROM payouts o WHERE o.client_id = p.client_id AND o.id = p.payout_id))` // never changes, and is not copied into the line

func scanTransaction(r db.Row, client till.ID, t *ledger.Transaction) error {
	*t = ledger.Transaction{ClientID: client}
	return r.Scan(TransactionDests(t)...)
}

// TransactionDests are where transactionColumns go.
func TransactionDests(t *ledger.Transaction) []any {
	return []any{db.ID(&t.ID), db.ID(&t.WalletID), &t.Sequence, &t.Type, &t.Direction, &t.Amount.Minor, &t.Amount.Currency,
		&t.BalanceAfter, db.ID(&t.PaymentID), db.ID(&t.PayoutID), db.Text(&t.Reference), db.Text(&t.ProviderReference), &t.CreatedAt, db.Text(&t.Method)}
}

// list is the filter as a question.
func (f *TransactionFilter) list(client till.ID, page Page) *list {
	l := newList(false, counted{client: client, table: countTransactions, a: f.Type, b: f.Currency}, TransactionColumns, f.From, f.To, page)
	l.fewColumns = "p.client_id, " + plainTransactionColumns
	l.whereIndexed("p.reference = ", f.Reference != "", f.Reference)
	l.whereIndexed("p.payment_id = ", !f.PaymentID.IsZero(), f.PaymentID.Bytes())
	l.whereIndexed("p.payout_id = ", !f.PayoutID.IsZero(), f.PayoutID.Bytes())
	l.whereIndexed("p.payment_id IS NOT NULL AND p.payout_id = ", !f.RefundID.IsZero(), f.RefundID.Bytes())
	l.whereScanned("p.amount = ", f.Amount != 0, f.Amount)
	return l
}

// ListTransactions returns a page of a client's transactions and the exact
// number of all that match, both from this transaction's snapshot.
func (tx *Tx) ListTransactions(ctx context.Context, client till.ID, f TransactionFilter, page Page) (out []*ledger.Transaction, total int64, err error) {
	total, err = tx.list(ctx, f.list(client, page), func(r db.Row) error {
		t := &ledger.Transaction{}
		out = append(out, t)
		return scanTransaction(r, client, t)
	})
	return out, total, err
}

// EachTransaction calls scan with the next transactions of a client that match,
// after an id, ascending or descending. The zero id is before all of them. It
// reads at most limit and returns how many it read. scan must not keep its
// argument.
func (tx *Tx) EachTransaction(ctx context.Context, client till.ID, f TransactionFilter, beyond till.ID, ascending bool, limit int,
	scan func(t *ledger.Transaction) error) (n int, err error) {
	if !f.From.IsZero() && !f.To.IsZero() && f.From > f.To {
		return 0, nil
	}
	l := f.list(client, Page{Ascending: ascending})
	lo, hi := l.bounds()
	start := hi
	if ascending {
		start = lo
	}
	if !beyond.IsZero() {
		start = Neighbour(beyond, ascending)
	}
	var t ledger.Transaction
	err = tx.read(ctx, l, position{start: start, hour: -1}, limit, func(r db.Row) error {
		if err := scanTransaction(r, client, &t); err != nil {
			return err
		}
		n++
		return scan(&t)
	})
	return n, err
}

// Neighbour returns the id next to another, above or below it.
func Neighbour(id till.ID, above bool) till.ID {
	for i := len(id) - 1; i >= 0; i-- {
		if above {
			if id[i]++; id[i] != 0 {
				break
			}
		} else {
			if id[i]--; id[i] != 0xff {
				break
			}
		}
	}
	return id
}

// Fact is what becomes of a payment or payout once at most.
type Fact struct {
	Ref     Ref
	Fact    string
	EntryID till.ID
}

// The facts.
const (
	FactMoneyOut = "money_out" // the money of a payout left, in time or late
	FactReversal = "reversal"  // the operator took money back
	FactFee      = "fee"
)

// InsertFacts writes facts down. The database refuses one that is there: the
// whole change that rests on it is not written then.
func (tx *Tx) InsertFacts(ctx context.Context, facts []Fact) error {
	args := make([][]any, len(facts))
	for i := range facts {
		f := &facts[i]
		args[i] = []any{f.Ref.Client[:], f.Ref.ID[:], f.Fact, f.EntryID[:]}
	}
	return tx.db.Defer(insertFacts, args)
}
