package till

import (
	"fmt"
	"slices"
	"time"
)

// PayoutStatus is how far a payout got. It is what clients see.
type PayoutStatus string

// The statuses of a payout.
const (
	PayoutPending    PayoutStatus = "pending"    // its money is reserved; nothing heard from the operator yet
	PayoutProcessing PayoutStatus = "processing" // the operator holds the request
	PayoutSuccess    PayoutStatus = "success"    // the recipient has the money, the client's wallet is debited
	PayoutFailed     PayoutStatus = "failed"     // refused, or never sent; the reserve is released
	PayoutCancelled  PayoutStatus = "cancelled"  // taken back before it was sent, as far as is known; the reserve is released
)

// PayoutStatuses lists every status, in the order of a payout's life.
var PayoutStatuses = []PayoutStatus{PayoutPending, PayoutProcessing, PayoutSuccess, PayoutFailed, PayoutCancelled}

// PayoutTransitions is the whole state machine of payouts, as Moves is of payments.
var PayoutTransitions = map[PayoutStatus][]PayoutStatus{
	PayoutPending:    {PayoutProcessing, PayoutSuccess, PayoutFailed, PayoutCancelled},
	PayoutProcessing: {PayoutSuccess, PayoutFailed},
}

// Valid reports whether s is one of the statuses.
func (s PayoutStatus) Valid() bool { return slices.Contains(PayoutStatuses, s) }

// Final reports whether a payout in status s has ended for ever.
func (s PayoutStatus) Final() bool {
	return s == PayoutSuccess || s == PayoutFailed || s == PayoutCancelled
}

// CanBecome answers nil if a payout may move from s to next, and the reason
// if it may not.
func (s PayoutStatus) CanBecome(next PayoutStatus) error {
	switch {
	case s == next:
		return ErrSameStatus
	case s.Final():
		return ErrFinal
	case slices.Contains(PayoutTransitions[s], next):
		return nil
	}
	return fmt.Errorf("%w: %s to %s", ErrIllegalTransition, s, next)
}

// Payout is money sent from a client's wallet to a recipient's.
type Payout struct {
	ClientID       ID
	ID             ID
	IdempotencyKey string // exactly as sent; matched without regard to case

	Status         PayoutStatus
	PreviousStatus PayoutStatus // "" at creation; the database checks the pair

	Method    string
	Country   string // "" where not sent
	Amount    Money  // what the recipient gets; always > 0
	Fee       int64  // on top of it, in the same currency; fixed at creation
	Phone     string // the recipient's
	Reference string // "" where not sent

	// Document is the part of the request that never changes and is echoed as
	// sent: the JSON members description, recipient and metadata, ready to be
	// spliced into an object.
	Document []byte

	ProviderReference string // the operator's receipt, "" until known
	FailureReason     FailureReason
	FailureDetail     *FailureDetail

	CreatedAt  Time
	UpdatedAt  Time
	ExpiresAt  Time          // no send starts after it
	SendWindow time.Duration // ExpiresAt was CreatedAt plus this at creation

	// LateSuccessAt is when it was paid after it had failed or was cancelled, the time of
	// the event that reports it; zero while it was not. The status stays.
	LateSuccessAt Time

	// Connection is where the payout is sent, pinned with its fingerprint
	// before the first send: it is asked about there and nowhere else.
	Connection  string
	Fingerprint string

	// PaymentID is the payment that the payout gives back: then it is a refund, and Road
	// and Reason say how and why. Zero for a plain payout.
	PaymentID ID
	Road      Road
	Reason    string // one of RefundReasons, "" where not sent

	Resolution Resolution
}

// IsRefund reports whether the payout gives a payment back.
func (p *Payout) IsRefund() bool { return !p.PaymentID.IsZero() }

// Noun is the word for the payout: a refund is one too, and clients know it as a refund.
func (p *Payout) Noun() Noun {
	if p.IsRefund() {
		return NounRefund
	}
	return NounPayout
}

// Reserve returns what is held in the wallet while the payout is on its way:
// the amount and the fee, in minor units.
func (p *Payout) Reserve() int64 { return p.Amount.Minor + p.Fee }

// AsCreated returns the payout as its creation answered it, whatever has
// happened since: what a repeated create call is given. Its window may have been
// extended since. If it ends sooner than a window after created_at, the clock was
// ahead, and the window counts from the true time.
func (p *Payout) AsCreated() *Payout {
	c := *p
	c.Status, c.PreviousStatus = PayoutPending, ""
	c.ProviderReference, c.FailureReason, c.FailureDetail = "", "", nil
	c.UpdatedAt = p.CreatedAt
	c.ExpiresAt = min(p.ExpiresAt, p.CreatedAt.Add(p.SendWindow))
	c.LateSuccessAt = 0
	c.Resolution = Resolution{State: Waiting}
	return &c
}
