package webhook

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"till"
	"till/store"
)

// change is one thing to be written about an endpoint.
type change struct {
	ref     store.Ref
	kind    changeKind
	version int64 // of the lease under which it was done

	// Of a record.
	result   *chunkResult
	logRange *store.LogRange
	started  till.Time // when the window was read
	release  bool      // the lease is given back, also if there is more to send

	// Of a late attempt.
	row  *store.Delivery
	item *chunkItem

	failingSince till.Time // failing_since as it was seen, to know which head to lock

	committed committedLease // what an attempt to commit has left, if it was committed

	// What came of it.
	e        *store.Endpoint // as it is then; nil: another holds it, or it is gone
	held     bool
	replaced bool // the log has other events than those that were sent
	err      error
}

// lease is a lease as a commit leaves it. That two leave the same, to the
// microsecond, is not to be expected, and would do no harm but send twice.
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

// claim takes an endpoint that has something to be sent and that nobody
// holds.
func (d *Dispatcher) claim(ctx context.Context, ref store.Ref) (*store.Endpoint, *endpointLease) {
	if d.injectFault("before claim") != nil {
		return nil, nil
	}
	e, held := d.commitChange(ctx, &change{kind: claimChange, ref: ref})
	if d.injectFault("after claim") != nil {
		return nil, nil
	}
	return e, held
}

// record writes what came of a window.
func (d *Dispatcher) record(ctx context.Context, e *store.Endpoint, held *endpointLease, c *change) (*store.Endpoint, *endpointLease) {
	c.ref, c.version, c.failingSince = e.Ref(), held.version, e.FailingSince
	return d.commitChange(ctx, c)
}

// release gives a lease back that was not used.
func (d *Dispatcher) release(ctx context.Context, e *store.Endpoint, held *endpointLease) (*store.Endpoint, *endpointLease) {
	return d.record(context.WithoutCancel(ctx), e, held, &change{kind: recordChange, result: &chunkResult{cursor: e.Cursor}, started: d.c.Store.Now(), release: true})
}

func (d *Dispatcher) commitChange(ctx context.Context, c *change) (*store.Endpoint, *endpointLease) {
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

// commit writes changes, all in one commit where that works.
func (d *Dispatcher) commit(ctx context.Context, changes []*change) {
	err := d.commitBatch(ctx, changes)
	if errors.Is(err, store.ErrUnknownCommit) {
		err = d.commitBatch(ctx, changes) // what is there already is another's by its version
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
	err := d.c.Store.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
		b := &recording{ctx: ctx, tx: tx}
		if len(heads) > 0 {
			if b.heads, err = tx.LockHeads(ctx, heads); err != nil {
				return err
			}
		}
		if b.endpoints, b.createdAt, err = tx.LockEndpoints(ctx, refs, events); err != nil {
			return err
		}
		b.touched = make(map[store.Ref]bool, len(refs))
		for _, c := range changes {
			if err := b.apply(c); err != nil {
				return err
			}
		}
		return b.write()
	})
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

// passed names the events up to which a window has come, if it has come
// anywhere: they must be the ones that the log has when that is recorded.
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

// mayDisable reports whether a change may disable its endpoint, which needs
// the client's head: the event about it gets a number.
func (c *change) mayDisable(now till.Time) bool {
	outcomes := c.outcomes()
	for _, o := range outcomes {
		if o.response.Gone() || !o.response.Delivered() && !c.failingSince.IsZero() && now.Sub(c.failingSince) >= failingLimit-time.Minute {
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
