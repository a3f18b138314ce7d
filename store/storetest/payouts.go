package storetest

import (
	"context"
	"encoding/json"
	"testing"

	"till"
	"till/engine"
	"till/internal/jsonx"
	"till/payout"
	"till/provider"
	"till/store"
)

// NewDisburser makes a Disburser that accepts payouts and calls nobody: what
// becomes of them is decided by the test, with ApplyPayout.
func NewDisburser(tb testing.TB, s *store.Store, change ...func(c *engine.Config)) *payout.Disburser {
	m := payout.New(newConfig(s, change))
	tb.Cleanup(func() {
		if err := m.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return m
}

// NewPayout makes a payout of a client, with a fee.
func NewPayout(tb testing.TB, m *payout.Disburser, client *till.Client, b Body, fee int64) *till.Payout {
	tb.Helper()
	made, err := CreatePayout(tb, m, client, b, fee)
	if err != nil {
		tb.Fatalf("create a payout: %v", err)
	}
	return made.Payout
}

// CreatePayout asks for a payout of a client, with a fee.
func CreatePayout(tb testing.TB, m *payout.Disburser, client *till.Client, b Body, fee int64) (payout.Created, error) {
	tb.Helper()
	set := func(s *string, otherwise string) {
		if *s == "" {
			*s = otherwise
		}
	}
	set(&b.Value, "5000")
	set(&b.Key, till.NewID(client.CreatedAt).String())
	set(&b.Reference, "payout")
	set(&b.Country, "CG")
	set(&b.Phone, "242061234567")
	body, err := json.Marshal(map[string]any{
		"method": "mtn_momo", "country": b.Country, "idempotency_key": b.Key, "reference": b.Reference,
		"amount": map[string]string{"value": b.Value, "currency": "XAF"}, "recipient": map[string]string{"phone": b.Phone},
	})
	if err != nil {
		tb.Fatal(err)
	}
	r := &payout.Request{}
	if err := jsonx.Decode(body, r); err != nil {
		tb.Fatal(err)
	}
	who := engine.Client{Client: client, Actor: "api:test", Enabled: func(string) bool { return true }, Fees: []till.Fee{{Kind: till.PayoutFee, Method: "mtn_momo", Currency: "XAF", Flat: fee}}}
	return m.Create(tb.Context(), who, r)
}

// ApplyPayout records an operator's word about a payout, as if it had just
// been asked.
func ApplyPayout(tb testing.TB, m *payout.Disburser, s *store.Store, p *till.Payout, r provider.Result) {
	tb.Helper()
	now := s.Now()
	a := &engine.Answer{Ref: store.Ref{Client: p.ClientID, ID: p.ID}, Action: engine.Check, Connection: p.Connection,
		Reference: m.ReferenceOf(p), Started: now, Ended: now, Result: r}
	m.Apply(tb.Context(), []*engine.Answer{a})
	if a.RecordErr != nil {
		tb.Fatalf("apply %s: %v", r.Outcome, a.RecordErr)
	}
}
