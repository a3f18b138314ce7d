package webhook

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"till"
	"till/store"
	"till/store/webhooks"
)

// change is one write about an endpoint.
type change struct {
	ref     store.Ref
	kind    changeKind
	version int64 // of the lease under which it was made

	// Of recordChange.
	result   *chunkResult
	logRange *webhooks.LogRange
	started  till.Time // when the chunk was read
	release  bool      // give the lease back, even if there is more to send

	// Of lateChange.
	row  *webhooks.Delivery
	item *chunkItem

	failingSince till.Time // failing_since as read, to know which heads to lock

	committed committedLease // the lease of the last try, to recognise it after an unknown commit

	// The result.
	e        *webhooks.Endpoint // as committed; nil: another instance has the lease, or the endpoint was deleted
	held     bool
	replaced bool // the log no longer has the events that were sent
	err      error
}

// committedLease is a lease as a commit leaves it. Two commits that leave the same version
// and microsecond are not expected; they would only cause a second send.
type committedLease struct {
	version int64
	until   till.Time
}

type changeKind int

const (
	claimChange changeKind = iota
	recordChange
	lateChange
)

func jitter() float64 { return 2*rand.Float64() - 1 }

// claim takes the lease of an endpoint that has something due and no lease.
func (d *Dispatcher) claim(ctx context.Context, ref store.Ref) (*webhooks.Endpoint, *endpointLease) {
	if d.injectFault("before claim") != nil {
		return nil, nil
	}
	e, held := d.commitChange(ctx, &change{kind: claimChange, ref: ref})
	if d.injectFault("after claim") != nil {
		return nil, nil
	}
	return e, held
}

// record writes the result of a chunk.
func (d *Dispatcher) record(ctx context.Context, e *webhooks.Endpoint, held *endpointLease, c *change) (*webhooks.Endpoint, *endpointLease) {
	c.ref, c.version, c.failingSince = e.Ref(), held.version, e.FailingSince
	return d.commitChange(ctx, c)
}

// release gives back a lease without a chunk.
func (d *Dispatcher) release(ctx context.Context, e *webhooks.Endpoint, held *endpointLease) (*webhooks.Endpoint, *endpointLease) {
	return d.record(context.WithoutCancel(ctx), e, held, &change{kind: recordChange, result: &chunkResult{cursor: e.Cursor}, started: d.c.Store.Now(), release: true})
}

func (d *Dispatcher) commitChange(ctx context.Context, c *change) (*webhooks.Endpoint, *endpointLease) {
	until := time.Now().Add(Lease)
	if err := d.changes.Do(context.WithoutCancel(ctx), c); err != nil || c.err != nil {
		d.c.Log.Warn("deliveries not recorded", "endpoint", c.ref.ID, "error", errors.Join(err, c.err))
		return nil, nil
	}
	if c.e == nil || !c.held {
		return c.e, nil
	}
	return c.e, &endpointLease{version: c.e.LeaseVersion, until: until}
}

// commit writes changes in one commit, or one by one if that fails.
func (d *Dispatcher) commit(ctx context.Context, changes []*change) {
	err := d.commitBatch(ctx, changes)
	if errors.Is(err, store.ErrUnknownCommit) {
		err = d.commitBatch(ctx, changes) // a change that was committed is recognised by its lease
	}
	away := errors.Is(err, store.ErrUnavailable)
	for _, c := range changes {
		if c.err = err; err != nil && !away && len(changes) > 1 {
			c.err = d.commitBatch(ctx, []*change{c})
		}
	}
}

func (d *Dispatcher) commitBatch(ctx context.Context, changes []*change) error {
	if err := d.injectFault("before commit"); err != nil {
		return err
	}
	refs := make([]store.Ref, len(changes))
	var heads []till.ID
	var events []store.EventKey
	now := d.c.Store.Now()
	for i, c := range changes {
		refs[i] = c.ref
		c.replaced = false
		events = append(events, c.passed()...)
		if c.mayDisable(now) {
			heads = append(heads, c.ref.Client)
		}
	}
	var disabled []*webhooks.Endpoint
	err := d.c.Store.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
		b := &recording{ctx: ctx, tx: tx}
		if len(heads) > 0 {
			if b.heads, err = tx.LockHeads(ctx, heads); err != nil {
				return err
			}
		}
		if b.endpoints, b.createdAt, err = webhooks.LockEndpoints(ctx, tx, refs, events); err != nil {
			return err
		}
		b.touched = make(map[store.Ref]bool, len(refs))
		for _, c := range changes {
			if err := b.apply(c); err != nil {
				return err
			}
		}
		disabled = b.disabled
		return b.write()
	})
	if err == nil {
		for _, e := range disabled {
			d.logDisabled(e)
		}
	}
	for _, c := range changes {
		if c.replaced {
			d.bodyCache.forget(c.ref.Client)
			d.c.Log.Warn("event log replaced", "client", c.ref.Client, "endpoint", c.ref.ID)
		}
	}
	if err == nil {
		err = d.injectFault("after commit")
	}
	return err
}

// passed returns the last events that a chunk moves past. The log must still have them when
// the chunk is recorded.
func (c *change) passed() (out []store.EventKey) {
	if c.result == nil {
		return nil
	}
	if !c.result.cursorAt.IsZero() {
		out = append(out, store.EventKey{Client: c.ref.Client, Sequence: c.result.cursor})
	}
	if !c.result.nextAt.IsZero() {
		out = append(out, store.EventKey{Client: c.ref.Client, Sequence: c.result.next - 1})
	}
	return out
}

// mayDisable reports whether a change may disable its endpoint. That needs the client's
// head, for the event's sequence.
func (c *change) mayDisable(now till.Time) bool {
	outcomes := c.outcomes()
	for _, o := range outcomes {
		if o.response.gone() || !o.response.Delivered() && !c.failingSince.IsZero() && now.Sub(c.failingSince) >= failingLimit-time.Minute {
			return true
		}
	}
	return false
}

func (c *change) outcomes() []attemptOutcome {
	switch {
	case c.result != nil:
		return c.result.outcomes
	case c.item != nil:
		return []attemptOutcome{c.item.outcome}
	}
	return nil
}
