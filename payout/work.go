package payout

import (
	"context"

	"till"
	"till/engine"
	"till/internal/order"
	"till/provider"
	"till/store"
)

// Wake records that a callback came for a payout: its operator is asked at
// once. The wake is committed when Wake returns.
func (m *Paymaster) Wake(ctx context.Context, ref store.Ref) error {
	return m.desk.Wake(ctx, "", ref, nil)
}

// WakeWith is Wake for a callback that came for a connection, with its body.
func (m *Paymaster) WakeWith(ctx context.Context, connection string, ref store.Ref, body []byte) error {
	return m.desk.Wake(ctx, connection, ref, body)
}

// ReferenceOf returns what a payout is submitted under.
func (m *Paymaster) ReferenceOf(p *till.Payout) till.ID {
	return m.engine.Keys.Reference(p.ClientID, p.IdempotencyKey)
}

// OpenCallback returns the payout that a callback's token names, if the token
// is one of ours.
func (m *Paymaster) OpenCallback(connection, token string) (store.Ref, bool) {
	return m.engine.Keys.Open(connection, token)
}

// job is what the engine must know to act on a payout.
func (m *Paymaster) job(p *store.PayoutRow) *engine.Job {
	ref := store.Ref{Client: p.ClientID, ID: p.ID}
	j := &engine.Job{
		Ref: ref, Connection: p.Connection, Fingerprint: p.Fingerprint,
		ExpiresAt: p.ExpiresAt, Window: p.SendWindow, Final: p.Status.Final(),
		Request: provider.Request{
			Client: p.ClientID, ID: p.ID, Reference: m.ReferenceOf(&p.Payout),
			Method: p.Method, Country: p.Country, Phone: p.Phone, Amount: p.Amount,
			Description: order.Description(p.Document), ExpiresAt: p.ExpiresAt,
		},
	}
	if m.c.CallbackBase != "" {
		j.Request.CallbackURL = m.c.CallbackBase + "/" + p.Connection + "/" + m.engine.Keys.Token(p.Connection, ref)
	}
	return j
}

// Load implements engine.subjects.
func (m *Paymaster) Load(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref]*engine.Job, error) {
	rows, err := tx.Payouts(ctx, refs)
	if err != nil {
		return nil, err
	}
	jobs := make(map[store.Ref]*engine.Job, len(rows))
	for ref, p := range rows {
		jobs[ref] = m.job(p)
	}
	return jobs, nil
}

// Extend implements engine.subjects: a re-send gives the payout a window of
// its own.
func (m *Paymaster) Extend(ctx context.Context, tx *store.Tx, ref store.Ref, until till.Time) error {
	return tx.ExtendPayout(ctx, ref, until)
}
