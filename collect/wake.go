package collect

import (
	"context"

	"till"
	"till/engine"
	"till/internal/order"
	"till/provider"
	"till/store"
)

// Wake records that a callback came for a payment: its operator is asked at
// once. The wake is committed when Wake returns.
func (c *Collector) Wake(ctx context.Context, ref store.Ref) error {
	return c.desk.Wake(ctx, "", ref, nil)
}

// WakeWith is Wake for a callback that came for a connection, with its body.
func (c *Collector) WakeWith(ctx context.Context, connection string, ref store.Ref, body []byte) error {
	return c.desk.Wake(ctx, connection, ref, body)
}

// ReferenceOf returns what a payment is submitted under.
func (c *Collector) ReferenceOf(p *till.Payment) till.ID {
	return c.engine.Keys.Reference(p.ClientID, p.IdempotencyKey)
}

// OpenCallback returns the payment that a callback's token names, if the
// token is one of ours.
func (c *Collector) OpenCallback(connection, token string) (store.Ref, bool) {
	return c.engine.Keys.Open(connection, token)
}

// job is what the engine must know to act on a payment.
func (c *Collector) job(p *store.PaymentRow) *engine.Job {
	ref := store.Ref{Client: p.ClientID, ID: p.ID}
	j := &engine.Job{
		Ref: ref, Connection: p.Connection, Fingerprint: p.Fingerprint,
		ExpiresAt: p.ExpiresAt, Window: p.ApprovalWindow, Final: p.Status.Final(), Row: p.Lean(),
		Request: provider.Request{
			Client: p.ClientID, ID: p.ID, Reference: c.ReferenceOf(&p.Payment),
			Method: p.Method, Country: p.Country, Phone: p.Phone, Amount: p.Amount,
			Description: order.Description(p.Document), ExpiresAt: p.ExpiresAt,
		},
	}
	if c.c.CallbackBase != "" {
		j.Request.CallbackURL = c.c.CallbackBase + "/" + p.Connection + "/" + c.engine.Keys.Token(p.Connection, ref)
	}
	return j
}

// Load implements engine.subjects.
func (c *Collector) Load(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref]*engine.Job, error) {
	rows, err := tx.Payments(ctx, refs)
	if err != nil {
		return nil, err
	}
	jobs := make(map[store.Ref]*engine.Job, len(rows))
	for ref, p := range rows {
		jobs[ref] = c.job(p)
	}
	return jobs, nil
}

// Extend implements engine.subjects: a re-send gives the customer a window of
// its own.
func (c *Collector) Extend(ctx context.Context, tx *store.Tx, ref store.Ref, until till.Time) error {
	return tx.ExtendPayment(ctx, ref, until)
}
