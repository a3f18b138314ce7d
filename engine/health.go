package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/internal/loop"
	"till/provider"
	"till/store"
	"till/store/admin"
)

// defaultHealthInterval is how often instances share the health of operators. They never
// disagree for longer.
const defaultHealthInterval = time.Second

// How long results of calls are kept, and how they are deleted.
const (
	keepHealth  = 10 * time.Minute
	clearEvery  = time.Minute
	clearAtOnce = 500
)

// health collects the results of this instance's calls and shares them with other
// instances. It keeps the common state in memory, where a create reads it at no cost.
type health struct {
	self    till.ID // identifies this process
	kind    till.SubjectKind
	watched map[string]provider.Traits
	views   atomic.Pointer[map[string]*view]
	changes atomic.Int64 // increases when a connection's state changes

	mu             sync.Mutex
	sums           map[admin.Operation]admin.CallStats // since the last syncHealth
	probed         map[string]probed
	probeRequested map[string]bool

	waker     *loop.Waker
	syncing   sync.Mutex
	cleared   time.Time
	evaluated atomic.Bool // at least once
}

// view is a connection's health, as read from the database.
type view struct {
	state   admin.BreakerState
	status  Status
	retryAt time.Time // when a client may try again, on our clock
	since   till.Time // since when it does not pass; zero: it passes

	// While this instance may admit probes: how many are left, and until when.
	round    int64
	leaseEnd time.Time
	admit    *atomic.Int64
}

func newHealth(connections map[string]provider.Provider, kind till.SubjectKind) *health {
	h := &health{
		self: till.NewID(till.TimeOf(time.Now())), kind: kind, watched: map[string]provider.Traits{}, waker: loop.NewWaker(),
		sums: map[admin.Operation]admin.CallStats{}, probed: map[string]probed{}, probeRequested: map[string]bool{},
	}
	for name, p := range connections {
		if t := p.Traits(); !t.NoBreaker {
			h.watched[name] = t
		}
	}
	h.views.Store(&map[string]*view{})
	return h
}

// view returns a connection's health, nil if it is passing.
func (h *health) view(connection string) *view { return (*h.views.Load())[connection] }

func (h *health) passing(connection string) bool {
	v := h.view(connection)
	return v == nil || v.state == admin.Passing
}

// ready reports whether the operators' health is known. An instance that has just started
// must not send to an operator that others have stopped.
func (h *health) ready() bool { return len(h.watched) == 0 || h.evaluated.Load() }

// requestProbe notes that this instance would send to a connection if it could.
func (h *health) requestProbe(connection string) {
	h.mu.Lock()
	h.probeRequested[connection] = true
	h.mu.Unlock()
}

// record counts a call. It shares a probe's result at once.
func (h *health) record(connection string, action Action, err error, took time.Duration, round int64) {
	if _, watched := h.watched[connection]; !watched {
		return
	}
	s := admin.CallStats{Answered: 1, TotalLatency: took.Truncate(time.Microsecond)}
	if err != nil {
		s = admin.CallStats{Unanswered: 1}
		if errors.Is(err, provider.ErrCredentials) {
			s.AuthRefused = 1
		}
	}
	o := admin.Operation{Connection: connection, Name: operation(h.kind, action)}
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Add(h.sums[o])
	h.sums[o] = s
	if round == 0 {
		return
	}
	if p := h.probed[connection]; p.round < round || err == nil { // one answer is enough
		h.probed[connection] = probed{round, err == nil}
	}
	h.waker.Wake()
}

// Watch shares operators' health and rate limits with the other instances until ctx ends.
// Instances that only accept need it too: they must reject what cannot be sent.
func (w *Worker) Watch(ctx context.Context) {
	var loops sync.WaitGroup
	run := func(name string, interval time.Duration, wake <-chan struct{}, step func(context.Context) time.Duration) {
		loops.Go(func() {
			loop.Run(ctx, loop.Options{Step: step, Wake: wake, Interval: interval,
				OnPanic: func(v any) { w.c.Log.Error(name+" panicked", "panic", v, "stack", string(debug.Stack())) }})
		})
	}
	if len(w.health.watched) > 0 {
		run("health", w.c.HealthInterval, w.health.waker.C(), w.syncHealth)
	}
	if len(w.prefetched) > 0 {
		run("reserves", prefetchInterval, nil, w.refillPrefetched)
	}
	<-ctx.Done()
	loops.Wait()
}

// healthReport is what an instance adds to the shared health at a syncHealth.
type healthReport struct {
	sums   map[admin.Operation]admin.CallStats
	probed map[string]probed
	wanted map[string]bool
}

// syncHealth shares what was collected, evaluates all connections and keeps the result.
func (w *Worker) syncHealth(ctx context.Context) time.Duration {
	h := w.health
	h.syncing.Lock()
	defer h.syncing.Unlock()
	h.mu.Lock()
	g := healthReport{h.sums, h.probed, h.probeRequested}
	h.sums, h.probed, h.probeRequested = map[admin.Operation]admin.CallStats{}, map[string]probed{}, map[string]bool{}
	h.mu.Unlock()

	var views map[string]*view
	changed := false
	read := func(tx *store.Tx) (err error) {
		views, changed, err = w.evaluate(ctx, tx, g)
		return err
	}
	var err error
	if len(g.sums) == 0 {
		err = w.c.Store.View(ctx, read)
	}
	if clear := time.Since(h.cleared) >= clearEvery; err == nil && (len(g.sums) > 0 || changed || clear) {
		err = w.c.Store.UpdateBackground(ctx, func(tx *store.Tx) error {
			if err := admin.AddHealth(ctx, tx, g.sums); err != nil {
				return err
			}
			if clear {
				if _, err := admin.DeleteHealth(ctx, tx, keepHealth, clearAtOnce); err != nil {
					return err
				}
			}
			return read(tx)
		})
		if err == nil && clear {
			h.cleared = time.Now()
		}
	}
	if err != nil {
		// The results are shared again, unless they may have been committed.
		if !errors.Is(err, store.ErrUnknownCommit) {
			h.giveBack(g)
		}
		if ctx.Err() == nil {
			w.c.Log.Warn("operator health not shared", "error", err)
		}
		return -1
	}
	w.applyViews(views)
	return -1
}

// giveBack keeps for the next syncHealth what could not be written. The number of
// connections limits it.
func (h *health) giveBack(g healthReport) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for o, s := range g.sums {
		s.Add(h.sums[o])
		h.sums[o] = s
	}
	for c, p := range g.probed {
		if q := h.probed[c]; q.round < p.round || q.round == p.round && p.known {
			h.probed[c] = p
		}
	}
	for c := range g.wanted {
		h.probeRequested[c] = true
	}
}

// evaluate reads the health of all connections and changes what has to change. It also
// reports whether something has to change, because a reading transaction cannot write.
func (w *Worker) evaluate(ctx context.Context, tx *store.Tx, g healthReport) (map[string]*view, bool, error) {
	breakers, err := admin.Breakers(ctx, tx)
	if err != nil {
		return nil, false, err
	}
	rows, err := admin.Health(ctx, tx, healthSpan)
	if err != nil {
		return nil, false, err
	}
	rows = w.ownHealth(rows)
	views := map[string]*view{}
	changed := false
	for name, traits := range w.health.watched {
		b := breakers[w.breaker(name)]
		if b == nil {
			b = &admin.Breaker{Connection: w.breaker(name), State: admin.Passing}
		}
		ev := since(b, rows, tx.Now())
		ev.probed, ev.wanted = g.probed[name], g.wanted[name]
		next := nextState(*b, ev, w.health.self, tx.Now())
		if next != *b {
			changed = true
			// A reading transaction writes nothing; the writing one that follows evaluates
			// again.
			if tx.Writes() {
				won, err := admin.SwapBreaker(ctx, tx, &next)
				if err != nil {
					return nil, false, err
				}
				if won {
					w.logBreaker(b, &next)
					if err := updateCredentialsCase(ctx, tx, &next, ev); err != nil {
						return nil, false, err
					}
					b = &next
				} else if b, err = w.reread(ctx, tx, b.Connection); err != nil {
					return nil, false, err
				}
			}
		}
		views[name] = w.health.viewOf(name, b, ev, traits, tx.Now())
	}
	return views, changed, nil
}

// updateCredentialsCase opens a case for credentials that an operator refuses: only a
// person can repair them. The case closes when the operator answers again.
func updateCredentialsCase(ctx context.Context, tx *store.Tx, b *admin.Breaker, ev evidence) error {
	switch {
	case b.State == admin.Stopped && (refused(ev.submits) || refused(ev.checks)):
		return tx.OpenOperatorCase(ctx, &store.OperatorCase{Connection: b.Connection, Kind: store.CaseCredentials, OpenedAt: tx.Now(),
			Detail: "the operator refuses our credentials; 'till doctor --config FILE' says more"})
	case b.State == admin.Passing:
		return tx.CloseOperatorCase(ctx, b.Connection, store.CaseCredentials)
	}
	return nil
}

// reread returns a breaker that another instance changed first.
func (w *Worker) reread(ctx context.Context, tx *store.Tx, name string) (*admin.Breaker, error) {
	breakers, err := admin.Breakers(ctx, tx)
	if err != nil || breakers[name] == nil {
		return &admin.Breaker{Connection: name, State: admin.Passing}, err
	}
	return breakers[name], nil
}

func (h *health) viewOf(name string, b *admin.Breaker, ev evidence, t provider.Traits, now till.Time) *view {
	v := &view{state: b.State, status: statusOf(b, ev, t, now), round: b.Round}
	if b.State != admin.Passing {
		v.since = b.ChangedAt
	}
	if b.State == admin.Stopped && !pauseOver(b, now) {
		v.retryAt = time.Now().Add(b.RetryAt.Sub(now))
	}
	if b.State == admin.Probing && b.Owner == h.self && leaseLive(b, now) {
		v.leaseEnd = time.Now().Add(b.LeaseUntil.Sub(now))
		v.admit = &atomic.Int64{}
		v.admit.Store(probes)
		if old := h.view(name); old != nil && old.round == b.Round && old.admit != nil {
			v.admit = old.admit
		}
	}
	return v
}

// applyViews makes a result the current one. Steps that waited for another state are polled
// again.
func (w *Worker) applyViews(views map[string]*view) {
	changed := false
	for name, v := range views {
		old := w.health.view(name)
		if old == nil {
			old = &view{state: admin.Passing}
		}
		changed = changed || old.state != v.state || old.round != v.round
	}
	w.health.views.Store(&views)
	w.health.evaluated.Store(true)
	if changed {
		w.health.changes.Add(1)
		w.waker.Wake()
	}
}

// Status returns a connection's health: the same on all instances, within HealthInterval.
func (w *Worker) Status(connection string) Status {
	if v := w.health.view(connection); v != nil {
		return v.status
	}
	return Operational
}

// troubleSince returns since when a connection does not pass, zero if it does.
func (w *Worker) troubleSince(connection string) till.Time {
	if v := w.health.view(connection); v != nil {
		return v.since
	}
	return 0
}

// passing reports whether new payments pass to a connection without a probe. It reads
// memory only.
func (w *Worker) passing(connection string) bool { return w.health.passing(connection) }

// Reachable returns nil if a new row may be made for a connection that has no substitute, and
// CodeMethodUnavailable if its operator does not answer now. From time to time one is let
// through as a probe.
func (w *Worker) Reachable(name string) error {
	if w.passing(name) {
		return nil
	}
	if w.canProbe(name) {
		if ok, _ := w.takeProbe(name); ok {
			return nil
		}
	}
	return &till.Error{Code: till.CodeMethodUnavailable, Detail: "the operator does not answer just now", RetryAfter: w.retryAfter(name)}
}

// canProbe reports whether this instance may now try a connection that is not passing with
// a new payment. takeProbe then succeeds, unless other calls were first. canProbe also
// notes that a probe is wanted.
func (w *Worker) canProbe(connection string) bool {
	v := w.health.view(connection)
	if v == nil || v.state == admin.Passing {
		return true
	}
	w.health.requestProbe(connection)
	return v.admit != nil && v.admit.Load() > 0 && time.Now().Before(v.leaseEnd)
}

// retryAfter returns how long until a connection that is not passing may be tried again.
func (w *Worker) retryAfter(connection string) time.Duration {
	v := w.health.view(connection)
	if v == nil || v.state == admin.Passing {
		return 0
	}
	return max(time.Second, time.Until(v.retryAt))
}

// takeProbe reports whether one new payment may be accepted as a probe for a connection
// that is not passing. One instance at a time may admit some. If not, retry is when to try
// again.
func (w *Worker) takeProbe(connection string) (ok bool, retry time.Duration) {
	v := w.health.view(connection)
	if v == nil || v.state == admin.Passing {
		return true, 0
	}
	w.health.requestProbe(connection)
	if v.admit != nil && time.Now().Before(v.leaseEnd) && v.admit.Add(-1) >= 0 {
		return true, 0
	}
	return false, max(time.Second, time.Until(v.retryAt))
}

// logBreaker writes the line of a circuit breaker that changed. Lines "changed" have the
// same fields everywhere; a golden test holds the list.
func (w *Worker) logBreaker(was, is *admin.Breaker) {
	w.c.Log.LogAttrs(context.Background(), slog.LevelWarn, "changed",
		slog.String("what", "breaker"), slog.String("id", is.Connection), slog.String("from", string(was.State)), slog.String("to", string(is.State)),
		slog.String("why", fmt.Sprintf("stopped %d times without lasting recovery", is.Tries)))
}
