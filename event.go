package till

// EventKind names what an event reports.
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
	PaymentUpdated     EventKind = "payment.updated"      // its receipt came after the money; the status stays

	PaymentActionRequired EventKind = "payment.action_required" // the customer has to go to an address; the status stays
)

// The kinds about a person's attention; the status stays.
const (
	PaymentNeedsAttention EventKind = "payment.needs_attention" // a person has to check it
	PaymentAttentionEnded EventKind = "payment.attention_ended" // nobody has to any more, and it goes on
	PayoutNeedsAttention  EventKind = "payout.needs_attention"
	PayoutAttentionEnded  EventKind = "payout.attention_ended"
	RefundNeedsAttention  EventKind = "refund.needs_attention"
	RefundAttentionEnded  EventKind = "refund.attention_ended"
)

// The kinds of payout events.
const (
	PayoutEventPending     EventKind = "payout.pending"
	PayoutEventProcessing  EventKind = "payout.processing"
	PayoutEventSuccess     EventKind = "payout.success"
	PayoutEventFailed      EventKind = "payout.failed"
	PayoutEventCancelled   EventKind = "payout.cancelled"
	PayoutEventLateSuccess EventKind = "payout.late_success" // it was paid after it had failed or was cancelled; the status stays
)

// The kinds of refund events.
const (
	RefundPending     EventKind = "refund.pending"
	RefundProcessing  EventKind = "refund.processing"
	RefundSuccess     EventKind = "refund.success"
	RefundFailed      EventKind = "refund.failed"
	RefundCancelled   EventKind = "refund.cancelled"
	RefundLateSuccess EventKind = "refund.late_success" // as PayoutEventLateSuccess
)

// The kinds of checkout events. They come behind the events of the payments that are the cause.
const (
	CheckoutEventPaid      EventKind = "checkout.paid"
	CheckoutEventExpired   EventKind = "checkout.expired"
	CheckoutEventCancelled EventKind = "checkout.cancelled"
	CheckoutEventOverpaid  EventKind = "checkout.overpaid" // another ask of it was credited, too
)

// Event is one thing that happened to a payment, payout, refund or checkout. That of a payment,
// payout or refund is in the commit that made it happen. It keeps only what changed; its body is rendered with the
// part that never changes.
type Event struct {
	ClientID  ID
	Sequence  int64 // dense per client, from 1
	Kind      EventKind
	SubjectID ID   // the payment, payout, refund, checkout or endpoint that changed
	CreatedAt Time // equals its UpdatedAt after the change

	Status            Status // of a payout or refund: its PayoutStatus
	ProviderReference string
	FailureReason     FailureReason
	FailureDetail     *FailureDetail
	ExpiresAt         Time
	Resolution        Resolution

	// Document is the snapshot of what the event is about, as JSON, where that
	// is no payment and no payout: then the fields from Status on are empty, and SubjectID is
	// its id. Of a checkout it is what AppendState writes. Of PaymentActionRequired it is the
	// payment's NextAction.
	Document string
}

// ID returns the event's id, the same on every delivery.
func (e *Event) ID() ID { return EventID(e.ClientID, e.Sequence, e.CreatedAt) }
