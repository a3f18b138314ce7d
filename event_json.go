package till

import (
	"strconv"
	"strings"
)

// APIVersion is the revision of the interface. It is in every answer and
// in every event.
const APIVersion = "1.1"

// Subject returns what the event is about: the word before the dot of its
// kind, which is also the name of its snapshot.
func (k EventKind) Subject() string {
	subject, _, _ := strings.Cut(string(k), ".")
	return subject
}

// Scope returns what a key must be allowed to read such events.
func (k EventKind) Scope() Scope {
	switch k.Subject() {
	case "payment", "refund", "checkout": // a refund is a chapter of its payment, a payment one of its checkout
		return PaymentsRead
	case "payout":
		return PayoutsRead
	}
	return WebhooksManage
}

// EventScopes are the scopes of which a key needs one to read events at all.
var EventScopes = []Scope{PaymentsRead, PayoutsRead, WebhooksManage}

// Snapshot returns the payment as it was after the event, made from the part
// of p that never changes and from what it knows by then of the money.
func (e *Event) Snapshot(p *Payment) Payment {
	s := *p
	s.Status, s.UpdatedAt, s.ExpiresAt = e.Status, e.CreatedAt, e.ExpiresAt
	s.ProviderReference, s.FailureReason, s.FailureDetail = e.ProviderReference, e.FailureReason, e.FailureDetail
	s.LateSuccessAt, s.ReversedAt = e.upTo(p.LateSuccessAt), e.upTo(p.ReversedAt)
	s.Resolution = e.Resolution
	return s
}

// upTo returns a time that the event knows of, and zero for one that was still
// to come: the times of a client's events only grow.
func (e *Event) upTo(t Time) Time {
	if t > e.CreatedAt {
		return 0
	}
	return t
}

// PayoutSnapshot returns the payout as it was after the event, made from the
// part of p that never changes and from what it knows by then of the money.
func (e *Event) PayoutSnapshot(p *Payout) Payout {
	s := *p
	s.Status, s.UpdatedAt, s.ExpiresAt = PayoutStatus(e.Status), e.CreatedAt, e.ExpiresAt
	s.ProviderReference, s.FailureReason, s.FailureDetail = e.ProviderReference, e.FailureReason, e.FailureDetail
	s.LateSuccessAt = e.upTo(p.LateSuccessAt)
	s.Resolution = e.Resolution
	return s
}

// AppendJSON appends the event as clients see it, in the log and in webhooks
// alike, byte for byte. p is the payment that it is about, of which only what
// never changes is read; nil if it is about something else.
func (e *Event) AppendJSON(b []byte, p *Payment) []byte { return e.AppendJSONAs(b, e.ID(), p) }

// AppendPayoutJSON is AppendJSON for an event about a payout or refund.
func (e *Event) AppendPayoutJSON(b []byte, p *Payout) []byte {
	b = e.appendHead(b, e.ID())
	s := e.PayoutSnapshot(p)
	b = append(append(append(b, '"'), s.Noun()...), `":`...)
	b = s.AppendJSON(b)
	return append(b, '}', '}')
}

// AppendCheckoutJSON is AppendJSON for an event about a checkout, whose Document has what changed.
func (e *Event) AppendCheckoutJSON(b []byte, c *Checkout) []byte {
	b = append(e.appendHead(b, e.ID()), `"checkout":`...)
	return append(c.AppendEvent(b, e.Document), '}', '}')
}

// AppendJSONAs is AppendJSON under an id that is not of the log.
func (e *Event) AppendJSONAs(b []byte, id ID, p *Payment) []byte {
	b = e.appendHead(b, id)
	switch {
	case e.Kind == PaymentActionRequired && p != nil:
		s := e.Snapshot(p)
		b = append(b, `"payment":`...)
		b = s.appendJSON(b, e.Document)
	case e.Document != "":
		b = appendString(b, e.Kind.Subject())
		b = append(b, ':')
		b = append(b, e.Document...)
	case p != nil:
		s := e.Snapshot(p)
		b = append(b, `"payment":`...)
		b = s.AppendJSON(b)
	}
	return append(b, '}', '}')
}

// appendHead appends everything before what the event is about.
func (e *Event) appendHead(b []byte, id ID) []byte {
	b = append(b, `{"id":"`...)
	b = id.Append(b)
	b = append(b, `","type":`...)
	b = appendString(b, string(e.Kind))
	b = append(b, `,"created_at":`...)
	b = e.CreatedAt.AppendJSON(b)
	b = append(b, `,"api_version":"`+APIVersion+`","sequence":`...)
	b = strconv.AppendInt(b, e.Sequence, 10)
	return append(b, `,"data":{`...)
}
