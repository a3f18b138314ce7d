package proof

import (
	"context"
	"strings"

	"till"
	"till/internal/db"
	"till/ledger"
	"till/store"
)

var selectHead = db.Define(db.SQL{Name: "verify.selectHead",
	SQLite: `SELECT last_time, last_event, last_audit FROM client_heads WHERE client_id = $1`})

var statementToVerify = `SELECT t.id, t.sequence, t.type, t.direction, t.amount, t.currency, t.balance_after, t.payment_id, t.payout_id, t.created_at,
		CAST(coalesce(sum(o.amount), 0) AS BIGINT), count(o.amount),
		coalesce(sum(CASE WHEN o.kind <> t.type OR o.currency <> t.currency THEN 1 ELSE 0 END), 0),
		coalesce(sum(CASE WHEN o.created_at <> t.created_at THEN 1 ELSE 0 END), 0)
		FROM (SELECT * FROM transactions WHERE client_id = $1 AND wallet_id = $2 AND sequence > $3 ORDER BY sequence LIMIT $4) AS t
		LEFT JOIN postings o ON o.client_id = t.client_id AND o.entry_id = t.id
		GROUP BY t.id, t.sequence, t.type, t.direction, t.amount, t.currency, t.balance_after, t.payment_id, t.payout_id, t.created_at
		ORDER BY t.sequence`

var verifyStatement = db.Define(db.SQL{Name: "verify.verifyStatement",
	SQLite: statementToVerify,
	Citus:  db.OfClient(statementToVerify, "$1")})

var linesToVerify = `SELECT t.id, w.id IS NULL FROM (SELECT client_id, id, wallet_id FROM transactions WHERE client_id = $1 AND id > $2 ORDER BY id LIMIT $3) AS t
		LEFT JOIN wallets w ON w.client_id = t.client_id AND w.id = t.wallet_id ORDER BY t.id`

var countStrayLines = db.Define(db.SQL{Name: "verify.countStrayLines",
	SQLite: linesToVerify,
	Citus:  db.OfClient(linesToVerify, "$1")})

var verifyEntries = db.Define(db.SQL{Name: "verify.verifyEntries",
	SQLite: `SELECT o.entry_id, min(o.kind), min(o.created_at), CAST(sum(o.amount) AS BIGINT), count(*), count(DISTINCT o.currency), min(o.currency),
		CAST(-coalesce(sum(CASE WHEN o.account = 'receivable' THEN o.amount END), 0) AS BIGINT),
		coalesce(sum(CASE WHEN o.account = 'adjustments' THEN 1 END), 0),
		coalesce(sum(CASE WHEN (o.kind = 'fee') <> (o.account = 'fees') OR o.account = 'adjustments' AND o.kind <> 'adjustment'
			OR o.account <> 'adjustments' AND o.account <> 'receivable' AND o.kind = 'adjustment' THEN 1 END), 0),
		EXISTS (SELECT 1 FROM transactions t WHERE t.client_id = $1 AND t.id = o.entry_id)
		FROM postings o WHERE o.client_id = $2 AND o.entry_id > $3 GROUP BY o.entry_id ORDER BY o.entry_id LIMIT $4`})

var stepsToVerify = `SELECT s.subject_id FROM steps s LEFT JOIN payments p ON p.client_id = s.client_id AND p.id = s.subject_id
		LEFT JOIN payouts q ON q.client_id = s.client_id AND q.id = s.subject_id
		WHERE s.client_id = $1 AND ((s.kind = 'payment' AND p.id IS NULL) OR (s.kind = 'payout' AND q.id IS NULL)) LIMIT $2`

var selectStraySteps = db.Define(db.SQL{Name: "verify.selectStraySteps",
	SQLite: stepsToVerify,
	Citus:  db.OfClient(stepsToVerify, "$1")})

var countIdempotencyKeys = db.Define(db.SQL{Name: "verify.countIdempotencyKeys",
	SQLite: `SELECT count(*), count(DISTINCT idempotency_key) FROM payments WHERE client_id = $1`})

var selectMoneyEntries = db.Define(db.SQL{Name: "verify.selectMoneyEntries",
	SQLite: `SELECT id, coalesce(payout_id, payment_id), type, created_at FROM transactions WHERE client_id = $1 AND id BETWEEN $2 AND $3
		UNION ALL SELECT entry_id, coalesce(payout_id, payment_id), kind, created_at FROM postings WHERE client_id = $4 AND entry_id BETWEEN $5 AND $6
		AND (kind = 'suspense' AND account = 'suspense' OR (kind = 'late_payout' OR kind = 'late_refund' OR kind = 'collection_reversal') AND account = 'operator')`})

// The reads in this file serve a check of the whole database. Each returns
// one slice of rows with what belongs to them, from one snapshot; what must
// hold between them is not known here.

// Head returns a client's head without locking it; nil if there is none.
func Head(ctx context.Context, tx *store.Tx, client till.ID) (*store.Head, error) {
	h := &store.Head{ClientID: client}
	found, err := tx.DB().QueryRow(ctx, selectHead,
		[]any{client[:]}, &h.LastTime, &h.LastEvent, &h.LastAudit)
	if err != nil || !found {
		return nil, err
	}
	return h, nil
}

var selectNextOwner = db.Define(db.SQL{Name: "verify.selectNextOwner",
	SQLite: `SELECT client_id FROM (` + nextOwners() + `) AS owners ORDER BY client_id LIMIT 1`})

// nextOwners selects the next client id of each table.
func nextOwners() string {
	var all []string
	for _, table := range []string{"clients", "client_heads", "payments", "payouts", "steps", "events", "wallets", "transactions", "postings", "counters", "tallies", "audit", "webhook_endpoints"} {
		all = append(all, `SELECT client_id FROM (SELECT client_id FROM `+table+` WHERE client_id > $1 ORDER BY client_id LIMIT 1) AS `+table+`_owner`)
	}
	return strings.Join(all, ` UNION ALL `)
}

// NextOwner returns the next client id that any row has, after the given one;
// false if there is none. There may be no such client.
func NextOwner(ctx context.Context, tx *store.Tx, after till.ID) (till.ID, bool, error) {
	var id till.ID
	found, err := tx.DB().QueryRow(ctx, selectNextOwner, []any{after[:]}, db.ID(&id))
	return id, found, err
}

// VerifyEvent is an event as far as a check compares it; Sequence is zero
// where there is none.
type VerifyEvent struct {
	Sequence          int64
	Kind              till.EventKind
	SubjectID         till.ID
	CreatedAt         till.Time
	Status            till.Status
	ExpiresAt         till.Time
	ProviderReference string
	FailureReason     till.FailureReason
	FailureCode       string
	FailureMessage    string
	FailureRetryable  int // 0 also where it is null
	Resolution        till.ResolutionState
	Calls             int
}

func (e *VerifyEvent) dest() []any {
	return []any{db.Int(&e.Sequence), db.Text(&e.Kind), db.ID(&e.SubjectID), db.Int(&e.CreatedAt), db.Text(&e.Status), db.Int(&e.ExpiresAt),
		db.Text(&e.ProviderReference), db.Text(&e.FailureReason), db.Text(&e.FailureCode), db.Text(&e.FailureMessage), db.Int(&e.FailureRetryable),
		db.Text(&e.Resolution), db.Int(&e.Calls)}
}

func verifyEventColumns(alias string) (columns string) {
	for i, c := range []string{"sequence", "kind", "subject_id", "created_at", "status", "expires_at",
		"provider_reference", "failure_reason", "failure_code", "failure_message", "failure_retryable", "resolution", "calls"} {
		if i > 0 {
			columns += ", "
		}
		columns += alias + "." + c
	}
	return columns
}

// VerifyPayment is a payment with everything that hangs on it. A payment with
// two credits comes twice.
type VerifyPayment struct {
	till.Payment
	PendingEvent, ProcessingEvent, FinalEvent, LateEvent, ReversedEvent, UpdatedEvent int64
	FailureCode, FailureMessage                                                       string
	FailureRetryable                                                                  int

	Pending, Processing, Last, Late, Reversed, Updated VerifyEvent // the rows that the six numbers name
	Attention                                          VerifyEvent // the last one about a person's attention, if there is one
	Action                                             VerifyEvent // that the customer has to go to an address, if there is one
	ActionEvent                                        int64

	Issuer        string    // of its receipt
	ReceiptOwner  store.Ref // who has its receipt, by the record of receipts; zero if none
	ReceiptReused bool      // it is, or was, on the attention list because another has it

	FeeTaken  bool    // the fact that a fee must have; only looked up where one should be
	TakenBack till.ID // the entry of the fact that a reversal must have, likewise

	Scheduled bool      // it has a step
	OpenCase  bool      // it is on the attention list
	LastRead  till.Time // when the operator was last read; only where nothing is scheduled

	Credit         string // the type of the transaction that credited it, "" if none did
	CreditID       till.ID
	CreditAmount   till.Money
	CreditCurrency string // of the wallet that was credited

	// RemadeAt is when it was made again from the journal; zero if it was not, or if its
	// first event has its own time. verify sets it.
	RemadeAt till.Time
}

// ReceiptAt returns the receipt that an event of the payment must have: none
// before the event that reported it.
func (p *VerifyPayment) ReceiptAt(e *VerifyEvent) string {
	if e.Sequence < p.UpdatedEvent {
		return ""
	}
	return p.ProviderReference
}

// lastAttention is the number of the last event about a person's attention for p.
const lastAttention = `(SELECT max(a.sequence) FROM attention_events a WHERE a.client_id = p.client_id AND a.subject_id = p.id)`

var paymentsToVerify = `SELECT p.id, p.status, p.previous_status, p.amount, p.currency, p.fee, p.document, p.provider_reference,
		p.failure_reason, p.failure_code, p.failure_message, p.failure_retryable,
		p.created_at, p.updated_at, p.expires_at, p.approval_window, p.connection, ` + store.IssuerOf("p") + `,
		p.pending_event, p.processing_event, p.final_event, p.late_event, p.reversed_event, p.updated_event, r.client_id, r.subject_id,
		CASE WHEN p.provider_reference IS NOT NULL AND (r.subject_id IS NULL OR r.subject_id <> p.id OR r.client_id <> p.client_id) THEN (SELECT 1 FROM cases c WHERE c.client_id = p.client_id AND c.subject_id = p.id AND c.kind = 'receipt_reused') END,
		CASE WHEN p.fee > 0 THEN (SELECT 1 FROM facts f WHERE f.client_id = p.client_id AND f.subject_id = p.id AND f.fact = 'fee') END,
		CASE WHEN p.reversed_event > 0 THEN (SELECT f.entry_id FROM facts f WHERE f.client_id = p.client_id AND f.subject_id = p.id AND f.fact = 'reversal') END,
		s.subject_id IS NOT NULL,
		EXISTS (SELECT 1 FROM cases c WHERE c.client_id = p.client_id AND c.subject_id = p.id AND c.closed_at IS NULL),
		CASE WHEN s.subject_id IS NULL AND p.status <> 'success' THEN (SELECT max(a.last_at) FROM attempts a
			WHERE a.client_id = p.client_id AND a.subject_id = p.id AND a.kind = 'check' AND a.outcome <> 'error') END,
		t.type, t.id, t.amount, t.currency, w.currency, ` + verifyEventColumns("e1") + `, ` + verifyEventColumns("e2") + `, ` + verifyEventColumns("e3") + `, ` + verifyEventColumns("e4") + `, ` + verifyEventColumns("e5") + `, ` + verifyEventColumns("e6") + `, ` + verifyEventColumns("e7") + `, ` + verifyEventColumns("e8") + `, f.event
		FROM payments p
		` + store.JoinReceipt(till.SubjectPayment) + `
		LEFT JOIN steps s ON s.client_id = p.client_id AND s.subject_id = p.id
		LEFT JOIN transactions t ON t.client_id = p.client_id AND t.payment_id = p.id AND t.money_in = 1
		LEFT JOIN wallets w ON w.client_id = t.client_id AND w.id = t.wallet_id
		LEFT JOIN events e1 ON e1.client_id = p.client_id AND e1.sequence = p.pending_event
		LEFT JOIN events e2 ON e2.client_id = p.client_id AND e2.sequence = p.processing_event
		LEFT JOIN events e3 ON e3.client_id = p.client_id AND e3.sequence = p.final_event
		LEFT JOIN events e4 ON e4.client_id = p.client_id AND e4.sequence = p.late_event
		LEFT JOIN events e5 ON e5.client_id = p.client_id AND e5.sequence = p.reversed_event
		LEFT JOIN events e6 ON e6.client_id = p.client_id AND e6.sequence = p.updated_event
		LEFT JOIN events e7 ON e7.client_id = p.client_id AND e7.sequence = ` + lastAttention + `
		LEFT JOIN payment_flows f ON f.client_id = p.client_id AND f.payment_id = p.id
		LEFT JOIN events e8 ON e8.client_id = p.client_id AND e8.sequence = f.event
		WHERE p.client_id = $1 AND p.id > $2 ORDER BY p.id LIMIT $3`

var verifyPayments = db.Define(db.SQL{Name: "verify.verifyPayments",
	SQLite: paymentsToVerify,
	Citus:  verifyOnCitus(paymentsToVerify, "$1")})

// VerifyPayments returns the next payments of a client beyond an id.
func VerifyPayments(ctx context.Context, tx *store.Tx, client, after till.ID, limit int) ([]*VerifyPayment, error) {
	var out []*VerifyPayment
	err := tx.DB().Query(ctx, verifyPayments, []any{client[:], after[:], limit}, func(r db.Row) error {
		p := &VerifyPayment{}
		p.ClientID = client
		dest := []any{db.ID(&p.ID), &p.Status, db.Text(&p.PreviousStatus), &p.Amount.Minor, &p.Amount.Currency, &p.Fee, &p.Document, db.Text(&p.ProviderReference),
			db.Text(&p.FailureReason), db.Text(&p.FailureCode), db.Text(&p.FailureMessage), db.Int(&p.FailureRetryable),
			&p.CreatedAt, &p.UpdatedAt, &p.ExpiresAt, db.Duration(&p.ApprovalWindow), &p.Connection, &p.Issuer,
			&p.PendingEvent, db.Int(&p.ProcessingEvent), db.Int(&p.FinalEvent), db.Int(&p.LateEvent), db.Int(&p.ReversedEvent), db.Int(&p.UpdatedEvent),
			db.ID(&p.ReceiptOwner.Client), db.ID(&p.ReceiptOwner.ID), db.Bool(&p.ReceiptReused),
			db.Bool(&p.FeeTaken), db.ID(&p.TakenBack), db.Bool(&p.Scheduled), db.Bool(&p.OpenCase), db.Int(&p.LastRead),
			db.Text(&p.Credit), db.ID(&p.CreditID), db.Int(&p.CreditAmount.Minor), db.Text(&p.CreditAmount.Currency), db.Text(&p.CreditCurrency)}
		for _, e := range []*VerifyEvent{&p.Pending, &p.Processing, &p.Last, &p.Late, &p.Reversed, &p.Updated, &p.Attention, &p.Action} {
			dest = append(dest, e.dest()...)
		}
		dest = append(dest, db.Int(&p.ActionEvent))
		out = append(out, p)
		return r.Scan(dest...)
	})
	if err == nil {
		err = readOwners(ctx, tx, till.SubjectPayment, out)
	}
	return out, err
}

// LoggedEvent is an event with the numbers that what it is about has for its
// own.
type LoggedEvent struct {
	VerifyEvent
	Known                                                                             bool // there is such a payment or payout
	PendingEvent, ProcessingEvent, FinalEvent, LateEvent, ReversedEvent, UpdatedEvent int64
	ActionEvent                                                                       int64
	AttentionEvent                                                                    int64 // this one's own, if it is named so
}

var eventsToVerify = `SELECT ` + verifyEventColumns("e") + `, p.id IS NOT NULL OR q.id IS NOT NULL,
		coalesce(p.pending_event, q.pending_event), coalesce(p.processing_event, q.processing_event),
		coalesce(p.final_event, q.final_event), coalesce(p.late_event, q.late_event), p.reversed_event, p.updated_event,
		(SELECT f.event FROM payment_flows f WHERE f.client_id = e.client_id AND f.payment_id = e.subject_id),
		(SELECT a.sequence FROM attention_events a WHERE a.client_id = e.client_id AND a.subject_id = e.subject_id AND a.sequence = e.sequence)
		FROM events e LEFT JOIN payments p ON p.client_id = e.client_id AND p.id = e.subject_id
		LEFT JOIN payouts q ON q.client_id = e.client_id AND q.id = e.subject_id AND (e.kind LIKE 'payout.%' OR e.kind LIKE 'refund.%')
		WHERE e.client_id = $1 AND e.sequence > $2 ORDER BY e.sequence LIMIT $3`

var loggedEvents = db.Define(db.SQL{Name: "verify.loggedEvents",
	SQLite: eventsToVerify,
	Citus:  db.OfClient(eventsToVerify, "$1")})

// LoggedEvents returns the next events of a client beyond a sequence.
func LoggedEvents(ctx context.Context, tx *store.Tx, client till.ID, after int64, limit int) ([]*LoggedEvent, error) {
	var out []*LoggedEvent
	err := tx.DB().Query(ctx, loggedEvents, []any{client[:], after, limit}, func(r db.Row) error {
		e := &LoggedEvent{}
		out = append(out, e)
		return r.Scan(append(e.dest(), db.Bool(&e.Known), db.Int(&e.PendingEvent), db.Int(&e.ProcessingEvent), db.Int(&e.FinalEvent), db.Int(&e.LateEvent), db.Int(&e.ReversedEvent), db.Int(&e.UpdatedEvent), db.Int(&e.ActionEvent), db.Int(&e.AttentionEvent))...)
	})
	return out, err
}

// StatementLine is a transaction with the sum of the postings under its id.
type StatementLine struct {
	ledger.Transaction
	Others      int64 // what the other sides of the entry sum to
	OtherLines  int   // how many there are
	OtherKinds  int   // how many of them are of another kind or currency
	OtherMoment int   // how many of them were posted at another time
}

// Statement returns the next lines of a wallet beyond a sequence.
func Statement(ctx context.Context, tx *store.Tx, client, wallet till.ID, after int64, limit int) ([]*StatementLine, error) {
	var out []*StatementLine
	err := tx.DB().Query(ctx, verifyStatement,
		[]any{client[:], wallet[:], after, limit}, func(r db.Row) error {
			t := &StatementLine{}
			t.ClientID, t.WalletID = client, wallet
			out = append(out, t)
			return r.Scan(db.ID(&t.ID), &t.Sequence, &t.Type, &t.Direction, &t.Amount.Minor, &t.Amount.Currency, &t.BalanceAfter,
				db.ID(&t.PaymentID), db.ID(&t.PayoutID), &t.CreatedAt, &t.Others, &t.OtherLines, &t.OtherKinds, &t.OtherMoment)
		})
	return out, err
}

// CountStrayLines reads the next transactions of a client beyond an id. It returns
// how many name a wallet that the client does not have, the last id, and how many
// it read.
func CountStrayLines(ctx context.Context, tx *store.Tx, client, after till.ID, limit int) (stray int64, last till.ID, n int, err error) {
	err = tx.DB().Query(ctx, countStrayLines, []any{client[:], after[:], limit}, func(r db.Row) error {
		var lost bool
		err := r.Scan(db.ID(&last), db.Bool(&lost))
		if n++; lost {
			stray++
		}
		return err
	})
	return stray, last, n, err
}

// PostedEntry is the postings of an entry, together, without a wallet's line.
type PostedEntry struct {
	ID         till.ID
	Kind       ledger.EntryKind
	CreatedAt  till.Time
	Sum        int64
	Lines      int
	Currencies int
	Currency   string
	Owed       int64 // the part that the client owes, or repays if negative
	Adjusting  int   // lines of the account of adjustments
	Misplaced  int   // lines that such an entry cannot have
	Line       bool  // a wallet's line has the same id
}

// PostedEntries returns the next entries of a client beyond an id.
func PostedEntries(ctx context.Context, tx *store.Tx, client, after till.ID, limit int) ([]*PostedEntry, error) {
	var out []*PostedEntry
	// Grouped by nothing but the key, whose order the rows have: otherwise all that
	// are left would be sorted for each slice.
	err := tx.DB().Query(ctx, verifyEntries,
		[]any{client[:], client[:], after[:], limit}, func(r db.Row) error {
			e := &PostedEntry{}
			out = append(out, e)
			return r.Scan(db.ID(&e.ID), db.Text(&e.Kind), &e.CreatedAt, &e.Sum, &e.Lines, &e.Currencies, db.Text(&e.Currency), &e.Owed, &e.Adjusting, &e.Misplaced, db.Bool(&e.Line))
		})
	return out, err
}

// StraySteps returns up to limit steps of a client that belong to no payment
// and no payout.
func StraySteps(ctx context.Context, tx *store.Tx, client till.ID, limit int) ([]till.ID, error) {
	return db.ReadAll(ctx, tx.DB(), selectStraySteps, []any{client[:], limit}, func(r db.Row) (till.ID, error) {
		var id till.ID
		err := r.Scan(db.ID(&id))
		return id, err
	})
}

// CountIdempotencyKeys returns how many payments a client has, and how many
// different keys they have.
func CountIdempotencyKeys(ctx context.Context, tx *store.Tx, client till.ID) (payments, keys int64, err error) {
	_, err = tx.DB().QueryRow(ctx, countIdempotencyKeys, []any{client[:]}, &payments, &keys)
	return payments, keys, err
}

// MoneyEntry is a wallet's line, or an entry that put money aside or took it
// back, as far as the audit log must know it.
type MoneyEntry struct {
	ID, PaymentID till.ID // PaymentID: of the payment or payout
	Kind          string
	CreatedAt     till.Time
}

var overdrawnSuspense = db.Define(db.SQL{Name: "verify.overdrawnSuspense",
	SQLite: `SELECT client_id, payment_id, currency, CAST(sum(amount) AS BIGINT) FROM postings
		WHERE account = 'suspense' GROUP BY currency, client_id, payment_id HAVING sum(amount) < 0 LIMIT $1`})

// OverdrawnSuspense returns payments for which more was taken out of suspense than was put
// there, and by how much.
func OverdrawnSuspense(ctx context.Context, tx *store.Tx, limit int) (refs []store.Ref, by []till.Money, err error) {
	err = tx.DB().Query(ctx, overdrawnSuspense, []any{limit}, func(r db.Row) error {
		var ref store.Ref
		var m till.Money
		err := r.Scan(db.ID(&ref.Client), db.ID(&ref.ID), &m.Currency, &m.Minor)
		m.Minor = -m.Minor
		refs, by = append(refs, ref), append(by, m)
		return err
	})
	return refs, by, err
}

// MoneyEntries returns a client's money decisions made after one moment and
// until another.
func MoneyEntries(ctx context.Context, tx *store.Tx, client till.ID, after, until till.Time) ([]MoneyEntry, error) {
	lo, hi := till.FirstID(after+1), till.LastID(until)
	return db.ReadAll(ctx, tx.DB(), selectMoneyEntries, []any{client[:], lo[:], hi[:], client[:], lo[:], hi[:]}, func(r db.Row) (MoneyEntry, error) {
		var e MoneyEntry
		err := r.Scan(db.ID(&e.ID), db.ID(&e.PaymentID), &e.Kind, &e.CreatedAt)
		return e, err
	})
}
