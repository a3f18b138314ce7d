package engine

import (
	"context"
	"strings"

	"till"
	"till/store"
	"till/store/admin"
)

// Subject is a payment's or a payout's row.
type Subject interface {
	comparable
	Subject() store.Subject
	// MoveTo changes the status, or returns an error if the transition does not exist.
	MoveTo(to string) error
}

// Table holds what differs between payments and payouts for the engine.
type Table[R Subject] struct {
	Kind till.SubjectKind

	// Locked returns the rows among those that store.Tx.LockSubjects read.
	Locked func(l *store.Locked) map[store.Ref]R
	// Read returns the named rows that exist.
	Read func(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref]R, error)
	// ByKey returns the row that an idempotency key made; the zero R if none.
	ByKey func(ctx context.Context, tx *store.Tx, client, key till.ID) (R, error)
	// Update writes changed rows.
	Update func(ctx context.Context, tx *store.Tx, rows []R) error
	// Extend moves the end of a row's window.
	Extend func(ctx context.Context, tx *store.Tx, ref store.Ref, until till.Time) error
	// ForUpdate returns a changeable copy of a cached row.
	ForUpdate func(row R) R
	// Lean returns a row to cache, without large parts that decide nothing. Nil if rows are
	// not cached.
	Lean func(row R) R
	// AsCreated returns a row as it was created.
	AsCreated func(row R) R
	// Count counts a row in, or out if n is negative.
	Count func(c *store.CounterDelta, row R, status string, n int64)
	// NotFound is the error code for a row that does not exist.
	NotFound till.Code
	// Booked is the word in texts for what was done with money that moved.
	Booked string
}

// Name is the kind as a word, for texts and log keys.
func (t *Table[R]) Name() string { return string(t.Kind) }

// missing returns the error for a row that does not exist.
func (t *Table[R]) missing() error {
	return till.Errorf(t.NotFound, "there is no such %s", t.Kind)
}

// PaymentTable is the Table of payments.
var PaymentTable = Table[*store.PaymentRow]{
	Kind:   till.SubjectPayment,
	Locked: func(l *store.Locked) map[store.Ref]*store.PaymentRow { return l.Payments },
	Read: func(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref]*store.PaymentRow, error) {
		return tx.Payments(ctx, refs)
	},
	ByKey: func(ctx context.Context, tx *store.Tx, client, key till.ID) (*store.PaymentRow, error) {
		return tx.PaymentByKey(ctx, client, key)
	},
	Update: func(ctx context.Context, tx *store.Tx, rows []*store.PaymentRow) error {
		return tx.UpdatePayments(ctx, rows)
	},
	Extend: func(ctx context.Context, tx *store.Tx, ref store.Ref, until till.Time) error {
		return tx.ExtendPayment(ctx, ref, until)
	},
	ForUpdate: func(p *store.PaymentRow) *store.PaymentRow { return p.ForUpdate() },
	Lean:      func(p *store.PaymentRow) *store.PaymentRow { return p.Lean() },
	AsCreated: func(p *store.PaymentRow) *store.PaymentRow { return p.AsCreated() },
	Count: func(c *store.CounterDelta, p *store.PaymentRow, status string, n int64) {
		c.AddPayment(&p.Payment, till.Status(status), n)
	},
	NotFound: till.CodePaymentNotFound, Booked: "credited",
}

// PayoutTable is the Table of payouts.
var PayoutTable = Table[*store.PayoutRow]{
	Kind:   till.SubjectPayout,
	Locked: func(l *store.Locked) map[store.Ref]*store.PayoutRow { return l.Payouts },
	Read: func(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref]*store.PayoutRow, error) {
		return tx.Payouts(ctx, refs)
	},
	ByKey: func(ctx context.Context, tx *store.Tx, client, key till.ID) (*store.PayoutRow, error) {
		return tx.PayoutByKey(ctx, client, key)
	},
	Update: func(ctx context.Context, tx *store.Tx, rows []*store.PayoutRow) error {
		return tx.UpdatePayouts(ctx, rows)
	},
	Extend: func(ctx context.Context, tx *store.Tx, ref store.Ref, until till.Time) error {
		return tx.ExtendPayout(ctx, ref, until)
	},
	AsCreated: func(p *store.PayoutRow) *store.PayoutRow { return p.AsCreated() },
	Count: func(c *store.CounterDelta, p *store.PayoutRow, status string, n int64) {
		c.AddPayout(&p.Payout, till.PayoutStatus(status), n)
	},
	NotFound: till.CodePayoutNotFound, Booked: "posted",
}

// The kinds of cases that payments and payouts open.
const (
	CaseOverdue             = "overdue"               // its window is over and the operator has not decided
	CaseUnknownStatus       = "unknown_status"        // the operator answers with a status that we do not know
	CaseMismatch            = "mismatch"              // money moved, but not the requested amount
	CaseContradiction       = "contradiction"         // the operator contradicts its earlier answer
	CaseLateMoney           = "late_money"            // money moved after the row had ended without success
	CaseReversed            = "reversed"              // the operator took back money that had moved
	CaseReceiptReused       = "receipt_reused"        // one receipt for two rows
	CaseHandleReused        = "handle_reused"         // the operator's id of one request, reported for another
	CaseWalletFull          = "wallet_full"           // the wallet cannot hold the money
	CaseQuarantined         = "quarantined"           // a fault of ours: it cannot be acted on, or its answer not recorded
	CaseRefundedBeyond      = "refunded_beyond"       // more went back of a payment than was paid
	CaseRefundedElsewhere   = "refunded_elsewhere"    // the operator says that somebody else gave the payment back
	CaseRefundedAndReversed = "refunded_and_reversed" // a payment was refunded, and the operator took it back
	CasePaidTwice           = "paid_twice"            // another payment of the same checkout was credited before

	CaseHeld = "held" // payouts are held, or it may be the retry of one that was lost with a restored database
)

// closedByEnd are the kinds of cases that close when their row ends.
var closedByEnd = []string{CaseOverdue, CaseUnknownStatus, CaseQuarantined, CaseHeld}

// operation returns the operation of an action for a kind of subject.
func operation(kind till.SubjectKind, action Action) string {
	switch {
	case kind == till.SubjectPayout && action == Submit:
		return store.OpPayoutSubmit
	case kind == till.SubjectPayout:
		return store.OpPayoutCheck
	case action == Submit:
		return store.OpSubmit
	}
	return store.OpCheck
}

func (w *Worker) operation(connection string, action Action) admin.Operation {
	return admin.Operation{Connection: connection, Name: operation(w.kind, action)}
}

// kindName is the worker's kind as a log key, which slog takes as a string only.
func (w *Worker) kindName() string { return string(w.kind) }

func (w *Worker) lane(connection string, action Action) string {
	return store.Lane(connection, operation(w.kind, action))
}

// kindOf returns the kind of subject of a lane.
func kindOf(lane string) till.SubjectKind {
	if strings.HasSuffix(lane, " "+store.OpPayoutSubmit) || strings.HasSuffix(lane, " "+store.OpPayoutCheck) {
		return till.SubjectPayout
	}
	return till.SubjectPayment
}

// breaker returns the name of a connection's breaker.
func (w *Worker) breaker(connection string) string {
	if w.kind == till.SubjectPayout {
		return connection + " payouts"
	}
	return connection
}

// ownHealth returns the results of this worker's kind of calls, under the names of its
// breakers and of the operations that breakers are evaluated by.
func (w *Worker) ownHealth(rows []admin.HealthRow) []admin.HealthRow {
	var out []admin.HealthRow
	for _, r := range rows {
		for _, action := range []Action{Submit, Check} {
			if r.Name == operation(w.kind, action) {
				r.Connection, r.Name = w.breaker(r.Connection), operation(till.SubjectPayment, action)
				out = append(out, r)
				break
			}
		}
	}
	return out
}

// lockBreakers locks and returns the breakers of connections, by connection.
func (w *Worker) lockBreakers(ctx context.Context, tx *store.Tx, connections []string) (map[string]*admin.Breaker, error) {
	names := make([]string, len(connections))
	for i, c := range connections {
		names[i] = w.breaker(c)
	}
	found, err := admin.LockBreakers(ctx, tx, names)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*admin.Breaker, len(found))
	for i, c := range connections {
		if b := found[names[i]]; b != nil {
			out[c] = b
		}
	}
	return out, nil
}
