package till

// EventKind names what an event tells.
type EventKind string

// The kinds of payment events.
const (
	PaymentPending     EventKind = "payment.pending"
	PaymentProcessing  EventKind = "payment.processing"
	PaymentSuccess     EventKind = "payment.success"
	PaymentFailed      EventKind = "payment.failed"
	PaymentExpired     EventKind = "payment.expired"
	PaymentLateSuccess EventKind = "payment.late_success" // money came after another final; the status stays
	PaymentReversed    EventKind = "payment.reversed"     // the operator took the money back; the status stays
)

// KindOf returns the kind of event that a payment's move to s is told by.
func KindOf(s Status) EventKind { return EventKind("payment." + string(s)) }

// Event is one thing that happened to a payment, in the commit that made it
// happen. It keeps only what changed; its body is rendered with the part of
// the payment that never changes.
type Event struct {
	ClientID  ID
	Sequence  int64 // dense per client, from 1
	Kind      EventKind
	PaymentID ID
	CreatedAt Time // equals the payment's UpdatedAt after the change

	Status            Status
	ProviderReference string
	FailureReason     FailureReason
	FailureDetail     *FailureDetail
	ExpiresAt         Time
	Resolution        Resolution

	// Document is the snapshot of what the event is about, as JSON, where that
	// is no payment: then the fields from Status on are empty, and PaymentID is
	// its id.
	Document string
}

// ID returns the event's id, the same on every delivery.
func (e *Event) ID() ID { return EventID(e.ClientID, e.Sequence, e.CreatedAt) }
