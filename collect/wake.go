package collect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"till"
	"till/engine"
	"till/internal/batch"
	"till/provider"
	"till/store"
)

// wake is one callback on its way through the batch.
type wake struct {
	ref  store.Ref
	mail []byte // nil where it is not kept
	err  error
}

// MaxMail is how much of a callback's body is kept, where an operator's adapter
// asks for it; a longer one is not kept at all.
const MaxMail = 16 << 10

// Wake records that a callback came for a payment: its operator is asked at
// once. What the callback said is not looked at; the read is the truth. The
// wake is committed when Wake returns, so the callback can be answered.
func (c *Collector) Wake(ctx context.Context, ref store.Ref) error {
	return c.WakeWith(ctx, "", ref, nil)
}

// WakeWith is Wake for a callback that came for a connection, with its body.
func (c *Collector) WakeWith(ctx context.Context, connection string, ref store.Ref, body []byte) error {
	w := &wake{ref: ref}
	if len(body) > 0 && len(body) <= MaxMail && c.traits(connection).KeepsMail {
		w.mail = body
	}
	if err := c.wakes.Do(ctx, w); err != nil {
		if errors.Is(err, batch.ErrFull) || errors.Is(err, batch.ErrClosed) {
			return till.Errorf(till.CodeServiceUnavailable, "too many callbacks are waiting")
		}
		return err
	}
	return w.err
}

func (c *Collector) runWakes(ctx context.Context, wakes []*wake) {
	// In one order, as all locks are taken.
	slices.SortStableFunc(wakes, func(a, b *wake) int {
		return cmp.Or(bytes.Compare(a.ref.Client[:], b.ref.Client[:]), bytes.Compare(a.ref.ID[:], b.ref.ID[:]))
	})
	err := c.c.Store.Update(ctx, func(tx *store.Tx) error {
		for _, w := range wakes {
			if err := c.wakeOne(ctx, tx, w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		err = c.unavailable("record callbacks", err)
		for _, w := range wakes {
			w.err = err
		}
		return
	}
	if c.c.Work {
		c.engine.Wake()
	}
}

// wakeOne makes a payment's step due. A payment that ended other than in
// success and is read no more is read once more: money may have come late. A
// success needs no reading, and an id we do not know was lost with a restored
// backup; both are answered as if all were well, because the operator can do
// nothing about either.
func (c *Collector) wakeOne(ctx context.Context, tx *store.Tx, w *wake) error {
	ref := w.ref
	woken, err := tx.WakeStep(ctx, ref, w.mail)
	if err != nil || woken {
		return err
	}
	rows, err := tx.Payments(ctx, []store.Ref{ref})
	if err != nil {
		return err
	}
	p := rows[ref]
	switch {
	case p == nil:
		c.c.Log.Warn("a callback names a payment that is not here", "payment", ref.ID)
		return nil
	case p.Status == till.Success || p.LateEvent != 0:
		return nil
	}
	t := c.traits(p.Connection)
	return tx.InsertWokenStep(ctx, &store.Step{
		ClientID: ref.Client, SubjectID: ref.ID, Kind: store.KindPayment, Lane: store.Lane(p.Connection, store.OpCheck), DueAt: tx.Now(),
		Calls: p.Resolution.Attempts, CheckedAt: p.Resolution.LastCheckedAt,
		Sends: 1, Acked: true, LateFrom: p.UpdatedAt, LateReads: len(t.LateReads), Mail: w.mail,
	})
}

// traits returns the habits of a connection. For one that is not configured
// here they say how often to look whether it is configured elsewhere.
func (c *Collector) traits(connection string) provider.Traits {
	if p := c.c.Connections[connection]; p != nil {
		return p.Traits()
	}
	return provider.Traits{Poll: 30 * time.Second, PollMax: time.Hour, Grace: time.Minute}
}

// job is what the engine must know to act on a payment.
func (c *Collector) job(p *store.PaymentRow) *engine.Job {
	ref := store.Ref{Client: p.ClientID, ID: p.ID}
	j := &engine.Job{
		Ref: ref, Connection: p.Connection, Fingerprint: p.Fingerprint,
		ExpiresAt: p.ExpiresAt, Window: p.ApprovalWindow, Final: p.Status.Final(),
		Request: provider.Request{
			Client: p.ClientID, ID: p.ID, Reference: c.keys.reference(p.ClientID, p.IdempotencyKey),
			Method: p.Method, Country: p.Country, Phone: p.Phone, Amount: p.Amount,
			Description: description(p.Document), ExpiresAt: p.ExpiresAt,
		},
	}
	if c.c.CallbackBase != "" {
		j.Request.CallbackURL = c.c.CallbackBase + "/" + p.Connection + "/" + c.keys.token(p.Connection, ref)
	}
	return j
}

// Load implements engine.Subject.
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

// Extend implements engine.Subject: a re-send gives the customer a window of
// its own.
func (c *Collector) Extend(ctx context.Context, tx *store.Tx, ref store.Ref, until till.Time) error {
	return tx.ExtendPayment(ctx, ref, until)
}
