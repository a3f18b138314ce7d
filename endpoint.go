package till

import "slices"

// Endpoint is an address that a client's events are pushed to.
type Endpoint struct {
	ClientID, ID ID
	URL          string
	Events       []EventKind // nil: all of them
	Description  string

	Enabled       bool
	DisabledAt    Time
	DisableReason DisableReason // "" while it is enabled

	CreatedAt, UpdatedAt Time
	FailingSince         Time // the first failure since the last success; zero while it is well
	Failures             int  // failures in a row, a burst counted once
	LastSuccessAt        Time
	Backlog              int64 // events of the log that were not looked at yet
}

// DisableReason says who disabled an endpoint, or what did.
type DisableReason string

// Why an endpoint is disabled.
const (
	DisabledByClient  DisableReason = "client"  // the client asked for it
	DisabledAsGone    DisableReason = "gone"    // it answered 410
	DisabledAsFailing DisableReason = "failing" // for five days nothing arrived
)

// The events about endpoints.
const (
	EndpointDisabled EventKind = "webhook_endpoint.disabled" // we disabled it: it is gone or only failed
	EndpointTest     EventKind = "webhook_endpoint.test"     // asked for by hand; never in the log
)

// EventKinds are the kinds that an endpoint can be notified of. Some of them
// do not happen yet; who names them now need not come back.
var EventKinds = []EventKind{
	PaymentPending, PaymentProcessing, PaymentSuccess, PaymentFailed, PaymentExpired, PaymentLateSuccess, PaymentReversed, PaymentUpdated, PaymentActionRequired,
	PaymentNeedsAttention, PaymentAttentionEnded,
	PayoutEventPending, PayoutEventProcessing, PayoutEventSuccess, PayoutEventFailed, PayoutEventCancelled, PayoutEventLateSuccess,
	PayoutNeedsAttention, PayoutAttentionEnded,
	RefundPending, RefundProcessing, RefundSuccess, RefundFailed, RefundCancelled, RefundLateSuccess,
	RefundNeedsAttention, RefundAttentionEnded,
	CheckoutEventPaid, CheckoutEventExpired, CheckoutEventCancelled, CheckoutEventOverpaid,
	EndpointDisabled,
}

// Subscribed reports whether the endpoint is notified of events of a kind.
func (e *Endpoint) Subscribed(k EventKind) bool {
	return e.Events == nil || slices.Contains(e.Events, k)
}

// FailingAfter is how many failures in a row make an endpoint one that fails:
// a single event that it cannot take does not.
const FailingAfter = 3

// Status returns how the endpoint is, in one word: active, failing or
// disabled.
func (e *Endpoint) Status() string {
	switch {
	case !e.Enabled:
		return "disabled"
	case e.Failures >= FailingAfter:
		return "failing"
	}
	return "active"
}

// AppendJSON appends the endpoint as clients see it, in answers and events
// alike, without its closing brace: one answer adds the secret.
func (e *Endpoint) AppendJSON(b []byte) []byte {
	b = append(b, `{"id":"`...)
	b = e.ID.Append(b)
	b = append(b, `","url":`...)
	b = appendString(b, e.URL)
	b = append(b, `,"events":[`...)
	for i, k := range e.Kinds() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, k)
	}
	b = append(b, `],"description":`...)
	b = appendStringOrNull(b, e.Description)
	b = append(b, `,"enabled":`...)
	if e.Enabled {
		b = append(b, "true"...)
	} else {
		b = append(b, "false"...)
	}
	b = append(b, `,"status":"`...)
	b = append(b, e.Status()...)
	b = append(b, `","disabled_at":`...)
	b = e.DisabledAt.AppendJSON(b)
	b = append(b, `,"disabled_reason":`...)
	b = appendStringOrNull(b, string(e.DisableReason))
	b = append(b, `,"failing_since":`...)
	b = e.FailingSince.AppendJSON(b)
	b = append(b, `,"last_success_at":`...)
	b = e.LastSuccessAt.AppendJSON(b)
	b = append(b, `,"created_at":`...)
	b = e.CreatedAt.AppendJSON(b)
	b = append(b, `,"updated_at":`...)
	return e.UpdatedAt.AppendJSON(b)
}

// AllEvents stands for every kind of event, also those to come.
const AllEvents = "*"

// Kinds returns the kinds that the endpoint is notified of, as clients write
// them.
func (e *Endpoint) Kinds() []string {
	if e.Events == nil {
		return []string{AllEvents}
	}
	out := make([]string, len(e.Events))
	for i, k := range e.Events {
		out[i] = string(k)
	}
	return out
}
