package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"till"
	"till/engine"
	"till/store"
)

// Record is a create: everything that its row had when it was made, and who its client
// is, should that be lost as well.
type Record struct {
	Kind   till.SubjectKind
	Client till.Client // without CreatedAt and Suspended
	Row    store.Subject
}

// recordJSON is a Record as it is written. Members are only ever added.
type recordJSON struct {
	Kind        till.SubjectKind `json:"kind"`
	Client      string           `json:"client"`
	ClientName  string           `json:"name"`
	Mode        till.Mode        `json:"mode"`
	ID          string           `json:"id"`
	Key         string           `json:"key"`
	BodyHash    []byte           `json:"hash"`
	BodyVersion int              `json:"version"`
	Method      string           `json:"method"`
	Country     string           `json:"country,omitempty"`
	Minor       int64            `json:"minor"`
	Currency    string           `json:"currency"`
	Fee         int64            `json:"fee,omitempty"`
	Phone       string           `json:"phone"`
	Reference   string           `json:"reference,omitempty"`
	Document    []byte           `json:"document,omitempty"`
	Connection  string           `json:"connection"`
	Fingerprint string           `json:"fingerprint"`
	CreatedAt   int64            `json:"created"` // microseconds, as the others
	ExpiresAt   int64            `json:"expires"`
	Window      int64            `json:"window"`

	// Of a refund, whose kind is "refund": a release from before refunds does not understand
	// the record, and so makes no payout of it.
	PaymentID string    `json:"payment,omitempty"`
	Road      till.Road `json:"road,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// kindRefund is the kind of a record of a refund, which is a payout that names a payment.
const kindRefund = till.SubjectKind(till.NounRefund)

// encode returns the text that is sealed.
func encode(kind till.SubjectKind, m *engine.JournalEntry) ([]byte, error) {
	r := &m.Row
	j := recordJSON{
		Kind: kind, Client: r.Ref.Client.String(), ClientName: m.Client.Name, Mode: m.Client.Mode, ID: r.Ref.ID.String(), Key: r.IdempotencyKey,
		BodyHash: r.BodyHash[:], BodyVersion: r.BodyVersion, Method: r.Method, Country: r.Country, Minor: r.Amount.Minor, Currency: r.Amount.Currency, Fee: r.Fee,
		Phone: r.Phone, Reference: r.Reference, Document: r.Document, Connection: r.Connection, Fingerprint: r.Fingerprint,
		CreatedAt: int64(r.CreatedAt), ExpiresAt: int64(r.ExpiresAt), Window: r.Window.Microseconds(),
	}
	if r.Noun == till.NounRefund {
		j.Kind, j.PaymentID, j.Road, j.Reason = kindRefund, r.PaymentID.String(), r.Road, r.Reason
	}
	return json.Marshal(j)
}

// errRecord means that a record opens and says nothing sensible: a later release may
// have written it.
var errRecord = errors.New("a record cannot be understood by this release")

func decode(text []byte) (*Record, error) {
	var j recordJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, errRecord // its text may quote the record
	}
	client, clientErr := till.ParseID(j.Client)
	id, idErr := till.ParseID(j.ID)
	_, keyErr := till.ParseID(j.Key)
	var payment till.ID
	if j.Kind == kindRefund {
		if payment, _ = till.ParseID(j.PaymentID); payment.IsZero() {
			return nil, errRecord
		}
		j.Kind = till.SubjectPayout
	}
	if errors.Join(clientErr, idErr, keyErr) != nil || len(j.BodyHash) != 32 || j.Kind != till.SubjectPayment && j.Kind != till.SubjectPayout {
		return nil, errRecord
	}
	r := &Record{Kind: j.Kind, Client: till.Client{ID: client, Name: j.ClientName, Mode: j.Mode}, Row: store.Subject{
		Ref: store.Ref{Client: client, ID: id}, IdempotencyKey: j.Key, BodyHash: [32]byte(j.BodyHash), BodyVersion: j.BodyVersion,
		Method: j.Method, Country: j.Country, Amount: till.Money{Minor: j.Minor, Currency: j.Currency}, Fee: j.Fee,
		Phone: j.Phone, Reference: j.Reference, Document: j.Document, Connection: j.Connection, Fingerprint: j.Fingerprint,
		CreatedAt: till.Time(j.CreatedAt), ExpiresAt: till.Time(j.ExpiresAt), Window: time.Duration(j.Window) * time.Microsecond,
		PaymentID: payment, Road: j.Road, Reason: j.Reason,
	}}
	return r, nil
}

// Payment returns the row of a payment as it was created.
func (r *Record) Payment() *store.PaymentRow {
	s := &r.Row
	return &store.PaymentRow{
		Payment: till.Payment{
			ClientID: s.Ref.Client, ID: s.Ref.ID, IdempotencyKey: s.IdempotencyKey, Status: till.Pending, Method: s.Method, Country: s.Country,
			Amount: s.Amount, Fee: s.Fee, Phone: s.Phone, Reference: s.Reference, Document: s.Document, ApprovalWindow: s.Window,
			Connection: s.Connection, Fingerprint: s.Fingerprint, Resolution: till.Resolution{State: till.Waiting},
			CreatedAt: s.CreatedAt, UpdatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt,
		},
		BodyHash: s.BodyHash, BodyVersion: s.BodyVersion,
	}
}

// Payout returns the row of a payout or refund as it was created.
func (r *Record) Payout() *store.PayoutRow {
	s := &r.Row
	return &store.PayoutRow{
		Payout: till.Payout{
			ClientID: s.Ref.Client, ID: s.Ref.ID, IdempotencyKey: s.IdempotencyKey, Status: till.PayoutPending, Method: s.Method, Country: s.Country,
			Amount: s.Amount, Fee: s.Fee, Phone: s.Phone, Reference: s.Reference, Document: s.Document, SendWindow: s.Window,
			Connection: s.Connection, Fingerprint: s.Fingerprint, Resolution: till.Resolution{State: till.Waiting},
			CreatedAt: s.CreatedAt, UpdatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt, PaymentID: s.PaymentID, Road: s.Road, Reason: s.Reason,
		},
		BodyHash: s.BodyHash, BodyVersion: s.BodyVersion,
	}
}

// headJSON is the first record of a segment.
type headJSON struct {
	Installation int64  `json:"installation"` // when it was made, in microseconds
	Opened       string `json:"opened"`
}

func (h *headJSON) String() string {
	return fmt.Sprintf("an installation that was made at %s", till.Time(h.Installation))
}
