package till

import (
	"context"
	"slices"
	"time"
)

// Kinds of rows in the outbox.
const (
	KindPayment  = "payment"
	KindPayout   = "payout"
	KindRefund   = "refund"
	KindCheckout = "checkout"
)

// States of a row in the outbox: written, sending, taken, ended; and refused,
// lapsed, lost.
const (
	StateWritten = "written" // provably nothing arrived at the service
	StateSending = "sending" // a try was counted, and no answer says that nothing arrived
	StateTaken   = "taken"   // the service has it
	StateEnded   = "ended"   // its status is final
	StateRefused = "refused" // the service does not take it; nothing exists
	StateLapsed  = "lapsed"  // it was not sent in its time, or withdrawn; nothing exists
	StateLost    = "lost"    // the service had it, or of a payout or refund may have had it, and does not know it
)

// Row is an attempt in the outbox.
type Row struct {
	Key       string // the idempotency key, drawn once
	Kind      string
	Order     string
	Attempt   int
	Body      []byte // the bytes that every try sends
	State     string
	Tries     int
	NextAt    time.Time // when to send it, or to read it again
	Lease     time.Time // the deadline of its last try; the zero time before the first
	SendUntil time.Time // after this it is posted no more; once taken, when the customer's time ends
	RemoteID  string    // the id of the payment, payout, refund or checkout
	Status    string    // the last kind of news, without its noun: success, late_success, reversed, …
	Problem   string    // why a person should look
	CreatedAt time.Time
	Details   string // JSON: status, detail, request_id and errors of the problem; url, return_secret and payment_id of a checkout; "" where there are none
}

// open reports whether an attempt may still bring money.
func (r *Row) open() bool {
	switch r.State {
	case StateWritten, StateSending, StateTaken, StateLost:
		return r.Problem != problemAbandoned
	}
	return false
}

// paid reports whether an attempt brought money that stands.
func (r *Row) paid() bool { return brought(r.Status) }

// unpaid reports whether an attempt ended without money.
func (r *Row) unpaid() bool {
	return r.Status == Failed || r.Status == Expired || r.Status == Cancelled
}

// Words in the column problem beside codes of the service.
const (
	problemAbandoned = "abandoned"
	problemWithdrawn = "withdrawn"
	problemStale     = "stale"
	problemAttention = ResolutionAttention
)

// ResolutionAttention is the state of a payment that a person at the service
// looks at.
const ResolutionAttention = "needs_attention"

// Settlement changes a row of the outbox if it is as expected.
type Settlement struct {
	Key   string
	From  []string  // the states that it may be in; nil for any
	Lease time.Time // if not zero, its lease must be this: no other try was counted since

	State     string    // "" leaves it
	NextAt    time.Time // the zero time leaves it
	SendUntil time.Time // the zero time leaves it
	RemoteID  *string   // nil leaves it
	Status    *string
	Problem   *string
	Details   *string
}

// Subject is what is known about a payment, payout, refund or other event.
type Subject struct {
	ID       string
	Rank     int
	Seen     []string // kinds of news, in the order of their coming
	Sequence int64
}

// Has reports whether a kind of news was seen.
func (s *Subject) Has(kind string) bool { return slices.Contains(s.Seen, kind) }

// Cursor is how far the event log was read.
type Cursor struct {
	Name  string
	Log   string // which log
	After int64
}

// Decision is what an application saves, in its transaction.
type Decision struct {
	Subject *Subject
	Settle  *Settlement
	Cursor  *Cursor
}

// Store is three tables in your database. T is your handle of a transaction, as
// *sql.Tx. A store of your own passes the suite in storetest.
type Store[T any] interface {
	// Install makes the tables where they are missing, and the columns that came
	// later.
	Install(ctx context.Context) error

	// Attempts returns the attempts of an order, oldest first, as tx sees them.
	Attempts(ctx context.Context, tx T, kind, order string) ([]Row, error)
	// Put inserts a row in tx. It returns false if the order has an attempt of
	// this number already; tx can go on then, and sees it.
	Put(ctx context.Context, tx T, row Row) (bool, error)

	// Newest returns the newest attempt of an order, nil if there is none.
	Newest(ctx context.Context, kind, order string) (*Row, error)
	// Due returns rows to send, those first that are due longest.
	Due(ctx context.Context, now time.Time, limit int) ([]Row, error)
	// Count counts a try in a commit of its own, before its first byte: the row
	// is sending from then on. It returns false if another one counted first, if
	// the lease is not that of row any more.
	Count(ctx context.Context, row Row, lease, next time.Time) (bool, error)
	// Settle changes a row, and reports whether it was as expected.
	Settle(ctx context.Context, s Settlement) (bool, error)
	// Open returns rows that are taken and to be read again.
	Open(ctx context.Context, now time.Time, limit int) ([]Row, error)
	// Since returns rows by key, made at or after a time, whose key is greater.
	Since(ctx context.Context, from time.Time, afterKey string, limit int) ([]Row, error)
	// Attention returns rows made at or after a time that a person should see.
	Attention(ctx context.Context, from time.Time, limit int) ([]Row, error)

	// Apply opens a transaction, locks the subject and all attempts of the order
	// that has the key, calls fn with them, saves what it decides, and commits.
	// If fn fails, nothing is saved. Fn may be called again after a conflict with
	// another transaction, which rolled the first one back.
	Apply(ctx context.Context, subject, kind, key string, fn func(ctx context.Context, tx T, s Subject, attempts []Row) (Decision, error)) error

	// Cursor returns a cursor; the zero one if it never moved.
	Cursor(ctx context.Context, name string) (Cursor, error)
	// MoveCursor moves a cursor forward within its log. With reset it may go
	// anywhere.
	MoveCursor(ctx context.Context, c Cursor, reset bool) error
}
