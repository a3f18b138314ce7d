package store

import (
	"time"

	"till"
)

// Subject is what a payment and a payout have in common, for code that serves
// both. Fixed members are values; members that change are pointers into the row.
type Subject struct {
	Ref            Ref
	Noun           till.Noun // what clients call it
	PaymentID      till.ID   // of a refund: what it gives back
	Road           till.Road // of a payout
	Reason         string    // of a refund: the client's
	IdempotencyKey string
	BodyHash       [32]byte
	BodyVersion    int
	Method         string
	Country        string
	Amount         till.Money
	Fee            int64
	Phone          string // of who pays or is paid
	Reference      string // the client's
	Document       []byte // the members that are echoed as sent; nil where it was not read
	Connection     string
	Fingerprint    string
	CreatedAt      till.Time

	Status  string
	Final   bool // it has ended for ever
	Settled bool // and the money moved, or never can: no late read is owed
	Booked  bool // its money is booked: credited or paid, in time or late

	// Reversible says that it is settled, and that the operator may still take
	// the money back: a callback is a reason to ask.
	Reversible bool

	ExpiresAt         till.Time
	Window            time.Duration // how long it may be sent
	UpdatedAt         *till.Time
	ProviderReference *string
	FailureReason     *till.FailureReason
	FailureDetail     **till.FailureDetail
	Resolution        *till.Resolution
	Attention         *bool

	ProcessingEvent, FinalEvent, LateEvent *int64

	Ended *Callbacks // of steps that have ended, to be added when the row is written
}

// Subject returns what the payment has in common with a payout.
func (p *PaymentRow) Subject() Subject {
	return Subject{
		Ref: Ref{p.ClientID, p.ID}, Noun: till.NounPayment, IdempotencyKey: p.IdempotencyKey, BodyHash: p.BodyHash, BodyVersion: p.BodyVersion,
		Method: p.Method, Country: p.Country, Amount: p.Amount, Fee: p.Fee, Phone: p.Phone, Reference: p.Reference, Document: p.Document,
		Connection: p.Connection, Fingerprint: p.Fingerprint, CreatedAt: p.CreatedAt,
		Status: string(p.Status), Final: p.Status.Final(), Settled: p.Credited(), Booked: p.Credited(), Reversible: p.Credited() && p.ReversedEvent == 0,
		ExpiresAt: p.ExpiresAt, Window: p.ApprovalWindow, UpdatedAt: &p.UpdatedAt, ProviderReference: &p.ProviderReference,
		FailureReason: &p.FailureReason, FailureDetail: &p.FailureDetail, Resolution: &p.Resolution, Attention: &p.Attention,
		ProcessingEvent: &p.ProcessingEvent, FinalEvent: &p.FinalEvent, LateEvent: &p.LateEvent, Ended: &p.ended,
	}
}

// Credited reports whether the payment's money was credited, in time or late.
func (p *PaymentRow) Credited() bool { return p.Status == till.Success || p.LateEvent != 0 }

// MoveTo changes the status, if it may.
func (p *PaymentRow) MoveTo(to string) error {
	if err := p.Status.CanBecome(till.Status(to)); err != nil {
		return err
	}
	p.PreviousStatus, p.Status = p.Status, till.Status(to)
	return nil
}

// AsCreated returns the row as it was created, whatever has happened since.
func (p *PaymentRow) AsCreated() *PaymentRow {
	c := *p
	c.Payment = *p.Payment.AsCreated()
	return &c
}
