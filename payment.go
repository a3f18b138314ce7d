package till

import (
	"errors"
	"fmt"
	"time"
)

// Status is how far a payment got. It is what clients see.
type Status string

// The statuses of a payment.
const (
	Pending    Status = "pending"    // awaiting the customer; nothing heard from the operator yet
	Processing Status = "processing" // the operator holds the request
	Success    Status = "success"    // funds received, the client's wallet credited
	Failed     Status = "failed"     // refused by the customer or the operator, or never sent
	Expired    Status = "expired"    // the operator says the customer did not answer in time
)

// Statuses lists every status, in the order of a payment's life.
var Statuses = []Status{Pending, Processing, Success, Failed, Expired}

// Transitions is the whole state machine: every legal change of status and no
// other. The database rejects every other transition: by foreign key on SQLite,
// in a trigger on PostgreSQL. A test writes docs/state_machine.md from it.
var Transitions = map[Status][]Status{
	Pending:    {Processing, Success, Failed, Expired},
	Processing: {Success, Failed, Expired},
}

var (
	// ErrFinal says that a payment has ended; its status never changes again.
	ErrFinal = errors.New("the payment is final")
	// ErrIllegalTransition says that no payment ever moves that way.
	ErrIllegalTransition = errors.New("no such move")
	// ErrSameStatus says that there is nothing to change: a no-op, not a fault.
	ErrSameStatus = errors.New("already in that status")
)

// Valid reports whether s is one of the statuses.
func (s Status) Valid() bool {
	switch s {
	case Pending, Processing, Success, Failed, Expired:
		return true
	}
	return false
}

// Final reports whether a payment in status s has ended for ever.
func (s Status) Final() bool { return s == Success || s == Failed || s == Expired }

// CanBecome answers nil if a payment may move from s to next, and the reason
// if it may not.
func (s Status) CanBecome(next Status) error {
	if s == next {
		return ErrSameStatus
	}
	if s.Final() {
		return ErrFinal
	}
	for _, to := range Transitions[s] {
		if to == next {
			return nil
		}
	}
	return fmt.Errorf("%w: %s to %s", ErrIllegalTransition, s, next)
}

// FailureReason is why a payment did not succeed. The list is open: clients
// treat a value they do not know as unspecified.
type FailureReason string

// The reasons.
const (
	CustomerDeclined  FailureReason = "customer_declined"
	CustomerTimeout   FailureReason = "customer_timeout"
	NotApproved       FailureReason = "not_approved" // declined or timed out; the operator does not say which
	InsufficientFunds FailureReason = "insufficient_funds"
	FundsOrLimit      FailureReason = "funds_or_limit" // the operator does not say which
	PayerNotFound     FailureReason = "payer_not_found"
	PayerLimitReached FailureReason = "payer_limit_reached"
	PayerNotAllowed   FailureReason = "payer_not_allowed"
	PayerBusy         FailureReason = "payer_busy"
	WrongPIN          FailureReason = "wrong_pin"
	AmountOutOfBounds FailureReason = "amount_out_of_bounds"

	// Of payouts.
	RecipientNotFound     FailureReason = "recipient_not_found"
	RecipientLimitReached FailureReason = "recipient_limit_reached"
	RecipientNotAllowed   FailureReason = "recipient_not_allowed"

	// Of either.
	ProviderUnavailable FailureReason = "provider_unavailable" // never reached the operator in time
	ProviderRejected    FailureReason = "provider_rejected"
	ProviderError       FailureReason = "provider_error"
	Unspecified         FailureReason = "unspecified"
)

// FailureDetail is what the operator said about a failure, for support.
type FailureDetail struct {
	ProviderCode    string
	ProviderMessage string
	Retryable       bool
}

// ResolutionState says how sure the service is of a payment's state.
type ResolutionState string

// The resolution states.
const (
	Waiting        ResolutionState = "waiting"         // the customer's time is running
	Querying       ResolutionState = "querying"        // the outcome is unclear; the operator is being asked
	Confirmed      ResolutionState = "confirmed"       // final, on the operator's word or because it was never sent
	NeedsAttention ResolutionState = "needs_attention" // a person checks it; it is still asked about
)

// Resolution is the service's own work on a payment, shown to the client so
// that "unknown" is never dressed up as "failed".
type Resolution struct {
	State         ResolutionState
	LastCheckedAt Time // zero if never
	NextCheckAt   Time // zero if none is scheduled
	Attempts      int  // calls made to the operator
}

// Payment is money asked from a customer's wallet.
type Payment struct {
	ClientID       ID
	ID             ID
	IdempotencyKey string // exactly as sent; matched without regard to case

	Status         Status
	PreviousStatus Status // "" at creation; the database checks the pair

	Method    string
	Country   string // "" where not sent
	Amount    Money  // always > 0
	Fee       int64  // minor units of Amount's currency; fixed at creation, at most Amount
	Phone     string
	Reference string // "" where not sent

	// Document is the part of the request that never changes and is echoed as
	// sent: the JSON members description, customer, charge, tax, metadata,
	// ready to be spliced into an object.
	Document []byte

	ProviderReference string // the operator's receipt, "" until known
	FailureReason     FailureReason
	FailureDetail     *FailureDetail

	CreatedAt      Time
	UpdatedAt      Time
	ExpiresAt      Time
	ApprovalWindow time.Duration // ExpiresAt was CreatedAt plus this at creation

	// What became of the money after the end; the status stays. Both are the times
	// of the events that report it, and zero while there is none.
	LateSuccessAt Time // it came after the payment had failed or expired
	ReversedAt    Time // the operator took it back

	// Connection is where the payment is sent, pinned with its fingerprint
	// before the first send: it is asked about there and nowhere else.
	Connection  string
	Fingerprint string

	Resolution Resolution

	// NextAction is what the customer has to do, nil if nothing but to look at the phone. Who
	// shows a payment sets it.
	NextAction *NextAction
}

// NextAction is where the customer of an open payment goes to approve it.
type NextAction struct {
	URL       string
	ExpiresAt Time
}

// net returns what is left to the client of the amount, in minor units.
func (p *Payment) net() int64 { return p.Amount.Minor - p.Fee }

// AsCreated returns the payment as its creation answered it, whatever has
// happened since: what a repeated create call is given. Its window may have been
// extended since. If it ends sooner than a window after created_at, the clock was
// ahead, and the window counts from the true time.
func (p *Payment) AsCreated() *Payment {
	c := *p
	c.Status, c.PreviousStatus = Pending, ""
	c.ProviderReference, c.FailureReason, c.FailureDetail = "", "", nil
	c.UpdatedAt = p.CreatedAt
	c.ExpiresAt = min(p.ExpiresAt, p.CreatedAt.Add(p.ApprovalWindow))
	c.LateSuccessAt, c.ReversedAt = 0, 0
	c.Resolution, c.NextAction = Resolution{State: Waiting}, nil
	return &c
}

// NewResolutionState derives the state that clients see: attention is that a
// person must act, unclear that the operator's answer is missing or overdue.
func NewResolutionState(final, attention, unclear bool) ResolutionState {
	switch {
	case attention:
		return NeedsAttention
	case final:
		return Confirmed
	case unclear:
		return Querying
	}
	return Waiting
}
