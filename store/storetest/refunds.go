package storetest

import (
	"context"
	"encoding/json"
	"testing"

	"till"
	"till/engine"
	"till/internal/jsonx"
	"till/payout"
	"till/store"
	"till/store/admin"
	"till/store/refunds"
)

// AllowRefunds makes an installation at the newest level, as a new database has it.
func AllowRefunds(tb testing.TB, s *store.Store) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context())
	err := s.Update(ctx, func(tx *store.Tx) error {
		if i, err := admin.ReadInstallation(ctx, tx); err != nil {
			return err
		} else if i == nil {
			err := admin.InsertInstallation(ctx, tx, &admin.Installation{LogID: till.NewID(tx.Now()), SecretCheck: []byte("check"), CreatedAt: tx.Now()})
			if err != nil {
				return err
			}
		}
		_, err := admin.RaiseLevel(ctx, tx, admin.Level)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// RefundBody is the body of a call that gives a payment back.
type RefundBody struct {
	PaymentID string
	Key       string // a new one unless set
	Value     string // all that is left unless set
	Currency  string // XAF unless set
	Rest      string // further members, `"reason": "other"`
	Fee       int64
}

// Request returns the body as it was sent.
func (b RefundBody) Request(tb testing.TB, s *store.Store) *payout.RefundRequest {
	tb.Helper()
	if b.Key == "" {
		b.Key = till.NewID(s.Now()).String()
	}
	if b.Currency == "" {
		b.Currency = "XAF"
	}
	members := map[string]any{"payment_id": b.PaymentID, "idempotency_key": b.Key}
	if b.Value != "" {
		members["amount"] = map[string]string{"value": b.Value, "currency": b.Currency}
	}
	body, err := json.Marshal(members)
	if err != nil {
		tb.Fatal(err)
	}
	if body = body[:len(body)-1]; b.Rest != "" {
		body = append(body, ","+b.Rest...)
	}
	r := &payout.RefundRequest{}
	if err := jsonx.Decode(append(body, '}'), r); err != nil {
		tb.Fatal(err)
	}
	return r
}

// CreateRefund asks for a refund of a client's payment, with a fee.
func CreateRefund(tb testing.TB, m *payout.Disburser, s *store.Store, client *till.Client, b RefundBody) (payout.Created, error) {
	tb.Helper()
	who := engine.Client{Client: client, Actor: "api:test", Enabled: func(string) bool { return true },
		Fees: []till.Fee{{Kind: till.RefundFee, Method: "mtn_momo", Currency: "XAF", Flat: b.Fee}, {Kind: till.PayoutFee, Method: "mtn_momo", Currency: "XAF", Flat: 999}}}
	return m.Refund(context.WithoutCancel(tb.Context()), who, b.Request(tb, s))
}

// NewRefund makes a refund of a payment.
func NewRefund(tb testing.TB, m *payout.Disburser, s *store.Store, client *till.Client, b RefundBody) *till.Payout {
	tb.Helper()
	made, err := CreateRefund(tb, m, s, client, b)
	if err != nil {
		tb.Fatalf("create a refund: %v", err)
	}
	return made.Payout
}

// RefundSums returns what is kept of a payment's refunds; zero if there is nothing.
func RefundSums(tb testing.TB, s *store.Store, p *till.Payment) (sums till.RefundSums) {
	tb.Helper()
	ref := store.Ref{Client: p.ClientID, ID: p.ID}
	View(tb, s, func(ctx context.Context, tx *store.Tx) error {
		all, err := refunds.Sums(ctx, tx, []store.Ref{ref})
		sums = all[ref]
		return err
	})
	return sums
}
