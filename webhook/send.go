package webhook

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"till"
	"till/store"
)

// attemptTime is how long a Poster takes at most.
const attemptTime = defaultTimeout

// holding is the right to send to an endpoint.
type holding struct {
	version int64
	// until is when the lease ends on this process's own monotonic clock; it
	// was read before the commit that gave the lease, so it is never too late.
	until time.Time
}

// step reads a window, sends it and records what came of it. It returns the
// endpoint as it is then, and what is held of it: nil if nothing is.
func (d *Deliverer) step(ctx context.Context, r *runner, e *store.Endpoint, held *holding) (*store.Endpoint, *holding) {
	ctx = context.WithoutCancel(ctx)
	started := d.c.Store.Now()
	w, err := d.load(ctx, e, d.widen(e.ClientID, r))
	defer d.narrow(e.ClientID, r, 0)
	var keys *keyring
	if err == nil {
		keys, err = d.open(e)
	}
	if err != nil {
		d.c.Log.Error("read what is to be delivered", "endpoint", e.ID, "error", err)
		return nil, nil // the lease ends by itself; to come back at once would not help
	}
	d.narrow(e.ClientID, r, w.weight())
	if len(w.items) == d.c.Window && e.NextRetry.IsZero() {
		d.tasks.Go(func() { d.readAhead(ctx, e.ClientID, w.to) })
	}
	late := d.send(ctx, r, w, keys, held)
	if err := d.failAt("after send"); err != nil {
		return nil, nil
	}
	res := w.close(d.c.Store.Now(), jitter)
	after, next := d.record(ctx, e, held, &change{kind: recordChange, result: res, span: w.span, started: started})
	for it, l := range late {
		if next != nil || after != nil {
			l.row = res.rowOf(it.DeliveryKey)
		}
		close(l.recorded)
	}
	return after, next
}

func (r *result) rowOf(k store.DeliveryKey) *store.Delivery {
	for _, l := range r.rows {
		if l.row.Key() == k {
			return l.row
		}
	}
	return nil
}

// keyring is the secrets of an endpoint.
type keyring struct {
	secrets  []Secret // the new one first
	oldUntil till.Time
}

func (d *Deliverer) open(e *store.Endpoint) (*keyring, error) {
	k := &keyring{oldUntil: e.OldUntil}
	for _, sealed := range [][]byte{e.Secret, e.OldSecret} {
		if sealed == nil {
			continue
		}
		s, err := d.c.Vault.Open(sealed, e.ClientID, e.ID)
		if err != nil {
			return nil, err
		}
		k.secrets = append(k.secrets, s)
	}
	return k, nil
}

// at returns the secrets that sign at a moment.
func (k *keyring) at(now till.Time) []Secret {
	if len(k.secrets) > 1 && now >= k.oldUntil {
		return k.secrets[:1]
	}
	return k.secrets
}

// sends is a window on its way.
type sends struct {
	d       *Deliverer
	w       *window
	keys    *keyring
	until   time.Time // no attempt begins that could end later
	pass    *pass
	closing chan struct{}

	mu     sync.Mutex
	lane   int
	failed int // attempts in a row
	closed bool
	late   map[*item]*lateItem
}

// lateItem is an attempt that its window did not wait for.
type lateItem struct {
	recorded chan struct{}
	row      *store.Delivery // set before recorded is closed; nil: the window was not recorded
}

// send sends a window until all is sent, too much has failed, or its time is
// over. It returns the attempts that are still under way.
func (d *Deliverer) send(ctx context.Context, r *runner, w *window, keys *keyring, held *holding) map[*item]*lateItem {
	s := &sends{d: d, w: w, keys: keys, until: held.until.Add(-attemptTime), closing: make(chan struct{}), failed: w.e.Failures}
	workers := min(d.free(r, w.e), len(w.lanes))
	if workers <= 0 {
		return nil
	}
	s.pass = d.pacer.begin(w.e, d.c.Sender.Host(w.e.URL))
	var all sync.WaitGroup
	for range workers {
		all.Add(1)
		d.tasks.Go(func() {
			late := s.work(ctx, all.Done)
			if late != nil {
				d.recordLate(ctx, r, w.e, late, s.late[late])
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); s.pass.end(); close(done) }()
	timer := time.NewTimer(d.c.WindowTime)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
	}
	return s.close(r)
}

// close ends a window whose time is over. From now on whoever ends an attempt
// records it alone.
func (s *sends) close(r *runner) map[*item]*lateItem {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	close(s.closing)
	late, out := make(map[*item]*lateItem), make(map[*item]*lateItem)
	for i, it := range s.w.items {
		seen := *it // as it is now: the attempt goes on writing to its own
		s.w.items[i] = &seen
		if it.state == sending {
			l := &lateItem{recorded: make(chan struct{})}
			late[it], out[&seen] = l, l
		}
	}
	s.late = late
	s.d.mu.Lock()
	r.late += len(late)
	s.d.mu.Unlock()
	return out
}

// work sends lanes until there is none left. It returns the item whose
// attempt ended after the window was closed, nil if there was none.
func (s *sends) work(ctx context.Context, done func()) (late *item) {
	defer func() {
		if late == nil {
			done()
		}
	}()
	for {
		s.mu.Lock()
		n := s.lane
		s.lane++
		s.mu.Unlock()
		if n >= len(s.w.lanes) {
			return nil
		}
		for _, it := range s.w.lanes[n] {
			t, o, begun := s.post(ctx, it)
			if !begun {
				return nil
			}
			if s.end(it, t, o) {
				done()
				return it
			}
		}
	}
}

// post makes an attempt once every gate has let it through. It reports whether
// it did: not if the window was over before.
func (s *sends) post(ctx context.Context, it *item) (t store.Try, o outcome, begun bool) {
	gates := s.pass.gates(it.byHand() || it.replay)
	if !enterAll(gates, s.closing) {
		return t, o, false
	}
	defer leaveAll(gates)
	select {
	case s.d.posts <- struct{}{}:
	case <-s.closing:
		return t, o, false
	}
	defer func() { <-s.d.posts }()
	if !s.begin(it) {
		return t, o, false
	}
	t, o = s.attempt(ctx, it)
	s.pass.learn(&o)
	return t, o, true
}

// begin reports whether an attempt may begin.
func (s *sends) begin(it *item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	probe := s.w.e.Failures >= till.FailingAfter // the single item of this window
	if s.closed || s.failed >= till.FailingAfter && !probe || !time.Now().Before(s.until) {
		return false
	}
	it.state = sending
	return true
}

// end reports whether the window was closed before the attempt ended.
func (s *sends) end(it *item, t store.Try, o outcome) (late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it.state, it.attempt, it.outcome = ended, t, o
	switch {
	case o.answer.Delivered():
		s.failed = 0
	case o.counts(s.w.e.Failures):
		s.failed++
	}
	return s.closed
}

// attempt signs and posts one item.
func (s *sends) attempt(ctx context.Context, it *item) (t store.Try, o outcome) {
	d, e := s.d, s.w.e
	now := d.c.Store.Now()
	t, o.again, o.url = store.Try{SentAt: now, URL: e.URL}, it.row != nil && it.row.Attempts > 0, e.URL
	defer func() {
		if v := recover(); v != nil {
			d.c.Log.Error("an event cannot be sent", "endpoint", e.ID, "sequence", it.Sequence, "panic", v, "stack", string(debug.Stack()))
			t.Problem = ProblemInternal
			o.answer, o.ended, o.ours = Answer{Problem: ProblemInternal}, d.c.Store.Now(), true
		}
	}()
	b := it.body
	if it.Kind == store.DeliverTest {
		b = testBody(e, it.row)
	}
	json := b.bytes()
	a := d.c.Sender.Post(ctx, e.URL, Sign(b.id, now.Std(), json, s.keys.at(now)...), json)
	t.Took, t.Code, t.Text, t.Problem = a.Took, a.Status, a.Body, a.Problem
	o.answer, o.ended = a, d.c.Store.Now()
	return t, o
}

// ProblemInternal says that an attempt failed on our side.
const ProblemInternal = "internal"

// recordLate records an attempt that its window did not wait for, once the
// window is recorded.
func (d *Deliverer) recordLate(ctx context.Context, r *runner, e *store.Endpoint, it *item, l *lateItem) {
	<-l.recorded
	if l.row != nil {
		c := &change{kind: lateChange, ref: e.Ref(), row: l.row, item: it, since: e.FailingSince}
		if err := d.changes.Do(ctx, c); err != nil || c.err != nil {
			d.c.Log.Error("record a delivery", "endpoint", e.ID, "error", errors.Join(err, c.err))
		}
	}
	d.mu.Lock()
	r.late--
	if r.late == 0 && !r.busy && r.timer == nil {
		delete(d.at, e.Ref())
	}
	d.mu.Unlock()
	d.waker.Wake()
}

func (d *Deliverer) failAt(step string) error {
	if d.fault == nil {
		return nil
	}
	return d.fault(step)
}
