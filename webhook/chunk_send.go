package webhook

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"till"
	"till/store/webhooks"
)

// attemptTime is the longest time that an HTTPSender takes.
const attemptTime = defaultTimeout

// endpointLease is the right to send to an endpoint.
type endpointLease struct {
	version int64
	// until is when the lease ends on this process's monotonic clock. The clock is read
	// before the commit that takes the lease, so until is never too late.
	until time.Time
}

// processChunk reads, sends and records a chunk. It returns the endpoint as recorded, and
// its lease, nil if it has ended.
func (d *Dispatcher) processChunk(ctx context.Context, r *endpointWorker, e *webhooks.Endpoint, held *endpointLease) (*webhooks.Endpoint, *endpointLease) {
	ctx = context.WithoutCancel(ctx)
	started := d.c.Store.Now()
	w, err := d.readChunk(ctx, e, d.growMemory(e.ClientID, r))
	defer d.shrinkMemory(e.ClientID, r, 0)
	var keys *endpointSecrets
	if err == nil {
		keys, err = openSecrets(d.c.Secrets, e)
	}
	if err != nil {
		d.c.Log.Error("chunk not read", "endpoint", e.ID, "error", err)
		return nil, nil // the lease ends by itself; an immediate retry would fail again
	}
	d.shrinkMemory(e.ClientID, r, w.weight())
	if len(w.items) == d.c.ChunkSize && e.NextRetry.IsZero() {
		d.tasks.Go(func() { d.readAhead(ctx, e.ClientID, w.to) })
	}
	late := d.sendChunk(ctx, r, w, keys, held)
	if err := d.injectFault("after send"); err != nil {
		return nil, nil
	}
	res := w.close(d.c.Store.Now(), jitter)
	after, next := d.record(ctx, e, held, &change{kind: recordChange, result: res, logRange: w.logRange, started: started})
	for it, l := range late {
		if next != nil || after != nil {
			l.row = res.rowOf(it.DeliveryKey)
		}
		close(l.recorded)
	}
	return after, next
}

func (r *chunkResult) rowOf(k webhooks.DeliveryKey) *webhooks.Delivery {
	for _, l := range r.rows {
		if l.row.Key() == k {
			return l.row
		}
	}
	return nil
}

// endpointSecrets is an endpoint's secrets.
type endpointSecrets struct {
	secrets  []Secret // newest first
	oldUntil till.Time
}

func openSecrets(secrets *SecretSealer, e *webhooks.Endpoint) (*endpointSecrets, error) {
	k := &endpointSecrets{oldUntil: e.OldUntil}
	for _, sealed := range [][]byte{e.Secret, e.OldSecret} {
		if sealed == nil {
			continue
		}
		s, err := secrets.Open(sealed, e.ClientID, e.ID)
		if err != nil {
			return nil, err
		}
		k.secrets = append(k.secrets, s)
	}
	return k, nil
}

// at returns the secrets that are valid for signing at a moment.
func (k *endpointSecrets) at(now till.Time) []Secret {
	if len(k.secrets) > 1 && now >= k.oldUntil {
		return k.secrets[:1]
	}
	return k.secrets
}

// chunkSend is a chunk that is being sent.
type chunkSend struct {
	d         *Dispatcher
	w         *chunk
	keys      *endpointSecrets
	until     time.Time // no attempt begins that could end after the lease
	admission *admission
	closing   chan struct{}

	mu        sync.Mutex
	nextGroup int
	failed    int // failed attempts in a row
	closed    bool
	late      map[*chunkItem]*lateAttempt
}

// lateAttempt is an attempt that its chunk did not wait for.
type lateAttempt struct {
	recorded chan struct{}
	row      *webhooks.Delivery // set before recorded is closed; nil: the chunk was not recorded
}

// sendChunk sends a chunk until all items are sent, too many have failed, or its time is
// over. It returns the attempts that are still under way.
func (d *Dispatcher) sendChunk(ctx context.Context, r *endpointWorker, w *chunk, keys *endpointSecrets, held *endpointLease) map[*chunkItem]*lateAttempt {
	s := &chunkSend{d: d, w: w, keys: keys, until: held.until.Add(-attemptTime), closing: make(chan struct{}), failed: w.e.Failures}
	workers := min(d.freeSlots(r, w.e), len(w.orderedGroups))
	if workers <= 0 {
		return nil
	}
	s.admission = d.limiters.admit(w.e, d.c.Sender.Host(w.e.URL))
	var all sync.WaitGroup
	for range workers {
		all.Add(1)
		d.tasks.Go(func() {
			late := s.sendGroups(ctx, all.Done)
			if late != nil {
				d.recordLate(ctx, r, w.e, late, s.late[late])
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); s.admission.done(); close(done) }()
	timer := time.NewTimer(d.c.ChunkTime)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
	}
	return s.close(r)
}

// close ends a chunk whose time is over. Each attempt that ends later is recorded by
// recordLate.
func (s *chunkSend) close(r *endpointWorker) map[*chunkItem]*lateAttempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	close(s.closing)
	late, out := make(map[*chunkItem]*lateAttempt), make(map[*chunkItem]*lateAttempt)
	for i, it := range s.w.items {
		seen := *it // a copy: the attempt goes on writing to the original
		s.w.items[i] = &seen
		if it.state == sending {
			l := &lateAttempt{recorded: make(chan struct{})}
			late[it], out[&seen] = l, l
		}
	}
	s.late = late
	s.d.mu.Lock()
	r.lateAttempts += len(late)
	s.d.mu.Unlock()
	return out
}

// sendGroups sends groups until none is left. It returns the item whose attempt ended after
// the chunk was closed, nil if there is none.
func (s *chunkSend) sendGroups(ctx context.Context, done func()) (late *chunkItem) {
	defer func() {
		if late == nil {
			done()
		}
	}()
	for {
		s.mu.Lock()
		n := s.nextGroup
		s.nextGroup++
		s.mu.Unlock()
		if n >= len(s.w.orderedGroups) {
			return nil
		}
		for _, it := range s.w.orderedGroups[n] {
			t, o, begun := s.post(ctx, it)
			if !begun {
				return nil
			}
			if s.endAttempt(it, t, o) {
				done()
				return it
			}
		}
	}
}

// post makes an attempt once every limiter admits it. begun is false if the chunk was
// closed before that.
func (s *chunkSend) post(ctx context.Context, it *chunkItem) (t webhooks.DeliveryAttempt, o attemptOutcome, begun bool) {
	all := s.admission.limiters(it.requested() || it.replay)
	if !acquireAll(all, s.closing) {
		return t, o, false
	}
	defer releaseAll(all)
	select {
	case s.d.postSlots <- struct{}{}:
	case <-s.closing:
		return t, o, false
	}
	defer func() { <-s.d.postSlots }()
	if !s.mayBegin(it) {
		return t, o, false
	}
	t, o = s.attempt(ctx, it)
	s.admission.adapt(&o)
	return t, o, true
}

// mayBegin reports whether an attempt may begin.
func (s *chunkSend) mayBegin(it *chunkItem) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	probe := s.w.e.Failures >= till.FailingAfter // the single item of this chunk
	if s.closed || s.failed >= till.FailingAfter && !probe || !time.Now().Before(s.until) {
		return false
	}
	it.state = sending
	return true
}

// endAttempt notes an attempt's outcome. It reports whether the chunk was closed before the
// attempt ended.
func (s *chunkSend) endAttempt(it *chunkItem, t webhooks.DeliveryAttempt, o attemptOutcome) (late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it.state, it.attempt, it.outcome = ended, t, o
	switch {
	case o.response.Delivered():
		s.failed = 0
	case o.counts(s.w.e.Failures):
		s.failed++
	}
	return s.closed
}

// attempt signs and posts one item.
func (s *chunkSend) attempt(ctx context.Context, it *chunkItem) (t webhooks.DeliveryAttempt, o attemptOutcome) {
	d, e := s.d, s.w.e
	now := d.c.Store.Now()
	t, o.repeated, o.url = webhooks.DeliveryAttempt{SentAt: now, URL: e.URL}, it.row != nil && it.row.Attempts > 0, e.URL
	defer func() {
		if v := recover(); v != nil {
			d.c.Meter.Panicked("delivery")
			d.c.Log.Error("event attempt panicked", "endpoint", e.ID, "sequence", it.Sequence, "panic", v, "stack", string(debug.Stack()))
			t.Problem = problemInternal
			o.response, o.ended, o.internal = Response{Problem: problemInternal}, d.c.Store.Now(), true
		}
	}()
	b := it.body
	if it.Kind == webhooks.DeliverTest {
		b = testBody(e, it.row)
	}
	json := b.bytes()
	a := d.c.Sender.Post(ctx, e.URL, Sign(b.id, now.Std(), json, s.keys.at(now)...), json)
	t.Took, t.Code, t.Text, t.Problem = a.Took, a.Status, a.Body, a.Problem
	o.response, o.ended = a, d.c.Store.Now()
	s.observe(it, a, now)
	return t, o
}

// problemInternal says that an attempt failed on our side.
const problemInternal = "internal"

// recordLate records an attempt that its chunk did not wait for, after the chunk is
// recorded.
func (d *Dispatcher) recordLate(ctx context.Context, r *endpointWorker, e *webhooks.Endpoint, it *chunkItem, l *lateAttempt) {
	<-l.recorded
	if l.row != nil {
		c := &change{kind: lateChange, ref: e.Ref(), row: l.row, item: it, failingSince: e.FailingSince}
		if err := d.changes.Do(ctx, c); err != nil || c.err != nil {
			d.c.Log.Error("late delivery not recorded", "endpoint", e.ID, "error", errors.Join(err, c.err))
		}
	}
	d.mu.Lock()
	r.lateAttempts--
	if r.lateAttempts == 0 && !r.busy && r.timer == nil {
		delete(d.workers, e.Ref())
	}
	d.mu.Unlock()
	d.waker.Wake()
}

func (d *Dispatcher) injectFault(step string) error {
	if d.fault == nil {
		return nil
	}
	return d.fault(step)
}
