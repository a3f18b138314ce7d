package engine

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/internal/loop"
	"till/provider"
	"till/store"
)

// defaultPulse is how often instances tell each other how operators stand:
// they never disagree for longer.
const defaultPulse = time.Second

// What is kept of what came of calls, and how it is cleared away.
const (
	keepHealth  = 10 * time.Minute
	clearEvery  = time.Minute
	clearAtOnce = 500
)

// health gathers what comes of this instance's calls, adds it to what the
// others saw, and keeps the common judgement in memory, where it costs a
// create nothing.
type health struct {
	self    till.ID // names this process
	kind    string
	watched map[string]provider.Traits
	views   atomic.Pointer[map[string]*view]
	changes atomic.Int64 // moves on when a connection's state changes

	mu     sync.Mutex
	sums   map[store.Operation]store.Sums // since the last pulse
	probed map[string]probed
	wanted map[string]bool

	waker   *loop.Waker
	pulsing sync.Mutex
	cleared time.Time
	judged  atomic.Bool // at least once
}

// view is how a connection stands, as read from the database.
type view struct {
	state   store.BreakerState
	status  Status
	retryAt time.Time // when a client may try again, on our own clock

	// While this instance may let probes in: how many are left, until when.
	round    int64
	leaseEnd time.Time
	admit    *atomic.Int64
}

func newHealth(connections map[string]provider.Provider, kind string) *health {
	h := &health{
		self: till.NewID(till.TimeOf(time.Now())), kind: kind, watched: map[string]provider.Traits{}, waker: loop.NewWaker(),
		sums: map[store.Operation]store.Sums{}, probed: map[string]probed{}, wanted: map[string]bool{},
	}
	for name, p := range connections {
		if t := p.Traits(); !t.NoBreaker {
			h.watched[name] = t
		}
	}
	h.views.Store(&map[string]*view{})
	return h
}

// view returns how a connection stands, nil if nothing is known against it.
func (h *health) view(connection string) *view { return (*h.views.Load())[connection] }

func (h *health) passing(connection string) bool {
	v := h.view(connection)
	return v == nil || v.state == store.Passing
}

// ready answers whether it is known how operators stand. Whoever has just
// started must not send to one that the others have stopped.
func (h *health) ready() bool { return len(h.watched) == 0 || h.judged.Load() }

// want notes that somebody here would send to a connection if it could.
func (h *health) want(connection string) {
	h.mu.Lock()
	h.wanted[connection] = true
	h.mu.Unlock()
}

// record counts a call that was made. A probe's answer is told at once.
func (h *health) record(connection string, action Action, err error, took time.Duration, round int64) {
	if _, watched := h.watched[connection]; !watched {
		return
	}
	s := store.Sums{Known: 1, Took: till.Time(took.Microseconds())}
	if err != nil {
		s = store.Sums{Unknown: 1}
		if errors.Is(err, provider.ErrCredentials) {
			s.Refused = 1
		}
	}
	o := store.Operation{Connection: connection, Name: operation(h.kind, action)}
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

// Watch shares with the other instances how operators stand and what they may
// be asked, until ctx ends. Instances that only accept need it too: they must
// refuse what the others know cannot be sent.
func (e *Worker) Watch(ctx context.Context) {
	var loops sync.WaitGroup
	run := func(name string, interval time.Duration, wake <-chan struct{}, step func(context.Context) time.Duration) {
		loops.Go(func() {
			loop.Run(ctx, loop.Options{Step: step, Wake: wake, Interval: interval,
				OnPanic: func(v any) { e.c.Log.Error(name+" panicked", "panic", v, "stack", string(debug.Stack())) }})
		})
	}
	if len(e.health.watched) > 0 {
		run("health", e.c.Pulse, e.health.waker.C(), e.pulse)
	}
	if len(e.reserves) > 0 {
		run("reserves", aheadPause, nil, e.fillReserves)
	}
	<-ctx.Done()
	loops.Wait()
}

// gathered is what an instance has to tell at a pulse.
type gathered struct {
	sums   map[store.Operation]store.Sums
	probed map[string]probed
	wanted map[string]bool
}

// pulse tells what was gathered, judges and keeps the judgement.
func (e *Worker) pulse(ctx context.Context) time.Duration {
	h := e.health
	h.pulsing.Lock()
	defer h.pulsing.Unlock()
	h.mu.Lock()
	g := gathered{h.sums, h.probed, h.wanted}
	h.sums, h.probed, h.wanted = map[store.Operation]store.Sums{}, map[string]probed{}, map[string]bool{}
	h.mu.Unlock()

	var views map[string]*view
	changed := false
	read := func(tx *store.Tx) (err error) {
		views, changed, err = e.judge(ctx, tx, g)
		return err
	}
	var err error
	if len(g.sums) == 0 {
		err = e.c.Store.View(ctx, read)
	}
	if clear := time.Since(h.cleared) >= clearEvery; err == nil && (len(g.sums) > 0 || changed || clear) {
		err = e.c.Store.UpdateBehind(ctx, func(tx *store.Tx) error {
			if err := tx.AddHealth(ctx, g.sums); err != nil {
				return err
			}
			if clear {
				if _, err := tx.DeleteHealth(ctx, keepHealth, clearAtOnce); err != nil {
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
		// What was seen is told again, unless it may have been told already.
		if !errors.Is(err, store.ErrUnknownCommit) {
			h.giveBack(g)
		}
		if ctx.Err() == nil {
			e.c.Log.Warn("share how operators stand", "error", err)
		}
		return -1
	}
	e.keep(views)
	return -1
}

// giveBack keeps what could not be told for the next pulse. It is bounded by
// the number of connections.
func (h *health) giveBack(g gathered) {
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
		h.wanted[c] = true
	}
}

// judge reads how all connections stand, changes what has to change, and
// reports whether it would have to: a read cannot.
func (e *Worker) judge(ctx context.Context, tx *store.Tx, g gathered) (map[string]*view, bool, error) {
	breakers, err := tx.Breakers(ctx)
	if err != nil {
		return nil, false, err
	}
	rows, err := tx.Health(ctx, healthSpan)
	if err != nil {
		return nil, false, err
	}
	rows = e.own(rows)
	views := map[string]*view{}
	changed := false
	for name, traits := range e.health.watched {
		b := breakers[e.breaker(name)]
		if b == nil {
			b = &store.Breaker{Connection: e.breaker(name), State: store.Passing}
		}
		ev := since(b, rows, tx.Now())
		ev.probed, ev.wanted = g.probed[name], g.wanted[name]
		next := turn(*b, ev, e.health.self, tx.Now())
		if next != *b {
			changed = true
			// In a reading transaction nothing is written; the writing one that
			// follows judges again.
			if tx.Writes() {
				won, err := tx.SwapBreaker(ctx, &next)
				if err != nil {
					return nil, false, err
				}
				if won {
					e.c.Log.Warn("an operator's health has changed", "connection", b.Connection, "from", b.State, "to", next.State, "tries", next.Tries)
					if err := tellCase(ctx, tx, &next, ev); err != nil {
						return nil, false, err
					}
					b = &next
				} else if b, err = e.reread(ctx, tx, b.Connection); err != nil {
					return nil, false, err
				}
			}
		}
		views[name] = e.health.viewOf(name, b, ev, traits, tx.Now())
	}
	return views, changed, nil
}

// tellCase has a person look at credentials that an operator refuses: nothing
// else will mend them. The case ends when the operator answers again.
func tellCase(ctx context.Context, tx *store.Tx, b *store.Breaker, ev evidence) error {
	switch {
	case b.State == store.Stopped && (refused(ev.submits) || refused(ev.checks)):
		return tx.OpenOperatorCase(ctx, &store.OperatorCase{Connection: b.Connection, Kind: store.CaseCredentials, OpenedAt: tx.Now(),
			Detail: "the operator refuses our credentials; 'till doctor --config FILE' says more"})
	case b.State == store.Passing:
		return tx.CloseOperatorCase(ctx, b.Connection, store.CaseCredentials)
	}
	return nil
}

// reread returns a breaker that another instance was faster to change.
func (e *Worker) reread(ctx context.Context, tx *store.Tx, name string) (*store.Breaker, error) {
	breakers, err := tx.Breakers(ctx)
	if err != nil || breakers[name] == nil {
		return &store.Breaker{Connection: name, State: store.Passing}, err
	}
	return breakers[name], nil
}

func (h *health) viewOf(name string, b *store.Breaker, ev evidence, t provider.Traits, now till.Time) *view {
	v := &view{state: b.State, status: statusOf(b, ev, t, now), round: b.Round}
	if b.State == store.Stopped && !pauseOver(b, now) {
		v.retryAt = time.Now().Add(b.RetryAt.Sub(now))
	}
	if b.State == store.Probing && b.Owner == h.self && leaseLive(b, now) {
		v.leaseEnd = time.Now().Add(b.LeaseUntil.Sub(now))
		v.admit = &atomic.Int64{}
		v.admit.Store(probes)
		if old := h.view(name); old != nil && old.round == b.Round && old.admit != nil {
			v.admit = old.admit
		}
	}
	return v
}

// keep makes a judgement the one that counts here. Steps that waited for
// another one are looked at again.
func (e *Worker) keep(views map[string]*view) {
	changed := false
	for name, v := range views {
		old := e.health.view(name)
		if old == nil {
			old = &view{state: store.Passing}
		}
		changed = changed || old.state != v.state || old.round != v.round
	}
	e.health.views.Store(&views)
	e.health.judged.Store(true)
	if changed {
		e.health.changes.Add(1)
		e.waker.Wake()
	}
}

// Status says how a connection stands: the same on all instances, within a
// pulse.
func (e *Worker) Status(connection string) Status {
	if v := e.health.view(connection); v != nil {
		return v.status
	}
	return Operational
}

// Passing answers whether new payments go through to a connection without
// asking further. It is a look into memory.
func (e *Worker) Passing(connection string) bool { return e.health.passing(connection) }

// Offers answers whether a connection that is not passing may be tried with a
// new payment just now, by this instance; TakeProbe then says yes, unless others
// were faster. It notes that somebody would like to.
func (e *Worker) Offers(connection string) bool {
	v := e.health.view(connection)
	if v == nil || v.state == store.Passing {
		return true
	}
	e.health.want(connection)
	return v.admit != nil && v.admit.Load() > 0 && time.Now().Before(v.leaseEnd)
}

// RetryIn returns when a connection that is not passing may be tried again.
func (e *Worker) RetryIn(connection string) time.Duration {
	v := e.health.view(connection)
	if v == nil || v.state == store.Passing {
		return 0
	}
	return max(time.Second, time.Until(v.retryAt))
}

// TakeProbe answers whether one new payment may be accepted for a connection that
// is not passing: as a probe, by the one instance that may let some in. If
// not, retry is when to try again.
func (e *Worker) TakeProbe(connection string) (ok bool, retry time.Duration) {
	v := e.health.view(connection)
	if v == nil || v.state == store.Passing {
		return true, 0
	}
	e.health.want(connection)
	if v.admit != nil && time.Now().Before(v.leaseEnd) && v.admit.Add(-1) >= 0 {
		return true, 0
	}
	return false, max(time.Second, time.Until(v.retryAt))
}
