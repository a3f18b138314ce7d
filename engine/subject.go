package engine

import (
	"context"
	"strings"

	"till"
	"till/store"
)

// Subject is a payment's or a payout's row, as far as both are alike.
type Subject interface {
	comparable
	Subject() store.Subject
	// MoveTo changes the status, and answers why not if it may not.
	MoveTo(to string) error
}

// Table is what the machinery must know of payments, or of payouts, beside
// what their rows have alike.
type Table[R Subject] struct {
	Kind till.SubjectKind

	// Locked finds the rows among what store.Tx.Lock has read.
	Locked func(l *store.Locked) map[store.Ref]R
	// Read returns those of the named rows that exist.
	Read func(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref]R, error)
	// ByKey returns the row that an idempotency key made; the zero R if none.
	ByKey func(ctx context.Context, tx *store.Tx, client, key till.ID) (R, error)
	// Update writes what has changed of rows.
	Update func(ctx context.Context, tx *store.Tx, rows []R) error
	// Extend moves the end of the time in which a row may be sent.
	Extend func(ctx context.Context, tx *store.Tx, ref store.Ref, until till.Time) error
	// ForUpdate returns a row to be changed, for one that is remembered.
	ForUpdate func(row R) R
	// Lean returns a row to be remembered: without what may be large and decides
	// nothing. Nil where no row is remembered.
	Lean func(row R) R
	// AsCreated returns a row as it was created.
	AsCreated func(row R) R
	// Count counts a row in, or out if n is negative.
	Count func(c *store.CounterDelta, row R, status string, n int64)
	// NotFound is the code of the error that there is no such row.
	NotFound till.Code
	// Booked says in texts what was done with money that moved.
	Booked string
}

// Name is the kind as a word, for texts and log keys.
func (t *Table[R]) Name() string { return string(t.Kind) }

// missing is the error that there is no such row.
func (t *Table[R]) missing() error {
	return till.Errorf(t.NotFound, "there is no such %s", t.Kind)
}

// PaymentTable is what the machinery must know of payments.
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

// PayoutTable is what the machinery must know of payouts.
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
	CaseOverdue       = "overdue"        // its time is over and the operator has not decided
	CaseUnknownStatus = "unknown_status" // the operator says a word we do not know
	CaseMismatch      = "mismatch"       // money moved, but not what was asked for
	CaseContradiction = "contradiction"  // the operator takes back what it said
	CaseLateMoney     = "late_money"     // money moved after another final
	CaseReversed      = "reversed"       // the operator took back money that had moved
	CaseReceiptReused = "receipt_reused" // one receipt for two
	CaseHandleReused  = "handle_reused"  // the operator's id of one request, brought for another
	CaseWalletFull    = "wallet_full"    // the wallet cannot hold the money
	CaseQuarantined   = "quarantined"    // a fault of ours keeps it from being acted on, or its answer from being recorded
	CaseHeld          = "held"           // payouts are held, or it may be the retry of one that was lost with an old database
)

// closedByEnd are the kinds of cases that the end of a row closes.
var closedByEnd = []string{CaseOverdue, CaseUnknownStatus, CaseQuarantined, CaseHeld}

// operation names a kind of call for a kind of subject.
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

func (w *Worker) operation(connection string, action Action) store.Operation {
	return store.Operation{Connection: connection, Name: operation(w.kind, action)}
}

// kindName is the worker's kind as a log key, which slog takes as a string only.
func (w *Worker) kindName() string { return string(w.kind) }

func (w *Worker) lane(connection string, action Action) string {
	return store.Lane(connection, operation(w.kind, action))
}

// kindOf returns whose steps wait in a lane.
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

// ownHealth returns what came of the calls of this engine's kind, under the names of
// its breakers and as what a breaker is judged by.
func (w *Worker) ownHealth(rows []store.HealthRow) []store.HealthRow {
	var out []store.HealthRow
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
func (w *Worker) lockBreakers(ctx context.Context, tx *store.Tx, connections []string) (map[string]*store.Breaker, error) {
	names := make([]string, len(connections))
	for i, c := range connections {
		names[i] = w.breaker(c)
	}
	found, err := tx.LockBreakers(ctx, names)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*store.Breaker, len(found))
	for i, c := range connections {
		if b := found[names[i]]; b != nil {
			out[c] = b
		}
	}
	return out, nil
}
