package proof

import (
	"context"

	"till"
	"till/internal/db"
	"till/store"
)

var factsToVerify = `SELECT f.subject_id, f.fact, f.entry_id, p.id IS NOT NULL, q.id IS NOT NULL, p.amount, p.currency, p.fee,
		p.status = 'success' OR p.late_event IS NOT NULL, p.reversed_event,
		count(o.amount), min(o.kind), o.payment_id, min(o.currency),
		CAST(coalesce(sum(CASE WHEN o.account = 'fees' THEN o.amount END), 0) AS BIGINT),
		CAST(coalesce(sum(CASE WHEN o.account = 'operator' THEN o.amount END), 0) AS BIGINT)
		FROM (SELECT * FROM facts WHERE client_id = $1 AND (subject_id > $2 OR subject_id = $3 AND fact > $4) AND (fact = 'fee' OR fact = 'reversal')
			ORDER BY subject_id, fact LIMIT $5) AS f
		LEFT JOIN payments p ON p.client_id = f.client_id AND p.id = f.subject_id
		LEFT JOIN payouts q ON q.client_id = f.client_id AND q.id = f.subject_id
		LEFT JOIN postings o ON o.client_id = f.client_id AND o.entry_id = f.entry_id
		GROUP BY f.subject_id, f.fact, f.entry_id, p.id, q.id, p.amount, p.currency, p.fee, p.status, p.late_event, p.reversed_event, o.payment_id
		ORDER BY f.subject_id, f.fact`

var verifyFacts = db.Define(db.SQL{Name: "verify.verifyFacts",
	SQLite: factsToVerify,
	Citus:  db.OfClient(factsToVerify, "$1")})

var adjustmentsToVerify = `SELECT a.id, a.entry_id, a.currency, a.amount, a.reason, a.actor, a.created_at,
		count(o.amount), CAST(coalesce(sum(o.amount), 0) AS BIGINT), min(o.currency), min(o.created_at),
		EXISTS (SELECT 1 FROM transactions t WHERE t.client_id = $1 AND t.id = a.entry_id)
			OR EXISTS (SELECT 1 FROM postings d WHERE d.client_id = a.client_id AND d.entry_id = a.entry_id AND d.account = 'receivable')
		FROM (SELECT * FROM adjustments WHERE client_id = $2 AND id > $3 ORDER BY id LIMIT $4) AS a
		LEFT JOIN postings o ON o.client_id = a.client_id AND o.entry_id = a.entry_id AND o.account = 'adjustments'
		GROUP BY a.client_id, a.id, a.entry_id, a.currency, a.amount, a.reason, a.actor, a.created_at ORDER BY a.id`

var verifyAdjustments = db.Define(db.SQL{Name: "verify.verifyAdjustments",
	SQLite: adjustmentsToVerify,
	Citus:  db.OfClient(adjustmentsToVerify, "$1")})

var countAdjustments = db.Define(db.SQL{Name: "verify.countAdjustments",
	SQLite: `SELECT count(*) FROM adjustments WHERE client_id = $1`})

var countFacts = db.Define(db.SQL{Name: "verify.countFacts",
	SQLite: `SELECT count(*) FROM facts WHERE client_id = $1`})

// VerifyFact is a fact with what it should rest on.
type VerifyFact struct {
	Ref     store.Ref
	Fact    string
	EntryID till.ID

	// Of the payment that it is about; Known is false where there is none.
	Known         bool
	Payout        bool // it is about a payout
	Amount        till.Money
	Fee           int64
	Credited      bool // in time or late
	ReversedEvent int64

	// Of the entry that it names; Lines is 0 where there is none.
	Lines    int
	Kind     string
	Subject  till.ID
	Currency string
	Fees     int64 // what it posts to the account of fees
	Operator int64 // what it posts to operators
}

// VerifyFacts returns the next facts about payments of a client beyond one.
func VerifyFacts(ctx context.Context, tx *store.Tx, client till.ID, after VerifyFact, limit int) ([]VerifyFact, error) {
	return db.ReadAll(ctx, tx.DB(), verifyFacts, []any{client[:], after.Ref.ID[:], after.Ref.ID[:], after.Fact, limit}, func(r db.Row) (VerifyFact, error) {
		f := VerifyFact{Ref: store.Ref{Client: client}}
		err := r.Scan(db.ID(&f.Ref.ID), &f.Fact, db.ID(&f.EntryID), db.Bool(&f.Known), db.Bool(&f.Payout), db.Int(&f.Amount.Minor), db.Text(&f.Amount.Currency), db.Int(&f.Fee),
			db.Bool(&f.Credited), db.Int(&f.ReversedEvent), &f.Lines, db.Text(&f.Kind), db.ID(&f.Subject), db.Text(&f.Currency), &f.Fees, &f.Operator)
		return f, err
	})
}

// VerifyAdjustment is an adjustment with what its entry posts.
type VerifyAdjustment struct {
	store.Adjustment
	Lines    int        // of the account of adjustments, under its entry
	Posted   till.Money // to that account
	PostedAt till.Time
	Line     bool // a wallet's line has the id of its entry, or all of it is owed
}

// VerifyAdjustments returns the next adjustments of a client beyond an id.
func VerifyAdjustments(ctx context.Context, tx *store.Tx, client, after till.ID, limit int) ([]*VerifyAdjustment, error) {
	var out []*VerifyAdjustment
	err := tx.DB().Query(ctx, verifyAdjustments,
		[]any{client[:], client[:], after[:], limit}, func(r db.Row) error {
			a := &VerifyAdjustment{}
			a.ClientID = client
			out = append(out, a)
			return r.Scan(db.ID(&a.ID), db.ID(&a.EntryID), &a.Amount.Currency, &a.Amount.Minor, &a.Reason, &a.Actor, &a.CreatedAt,
				&a.Lines, &a.Posted.Minor, db.Text(&a.Posted.Currency), db.Int(&a.PostedAt), db.Bool(&a.Line))
		})
	return out, err
}

// CountAdjustments returns how many adjustments a client has.
func CountAdjustments(ctx context.Context, tx *store.Tx, client till.ID) (n int64, err error) {
	_, err = tx.DB().QueryRow(ctx, countAdjustments, []any{client[:]}, &n)
	return n, err
}

// CountFacts returns how many facts a client has.
func CountFacts(ctx context.Context, tx *store.Tx, client till.ID) (n int64, err error) {
	_, err = tx.DB().QueryRow(ctx, countFacts, []any{client[:]}, &n)
	return n, err
}
