package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"till"
	"till/internal/batch"
	"till/internal/loop"
	"till/internal/seal"
	"till/provider"
	"till/store"
	"till/store/admin"
)

// subjects is what a Worker works for: a Processor.
type subjects interface {
	// load returns the instructions of the named rows that exist.
	load(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref]*Instruction, error)
	// extend moves the end of a row's window, because it is sent again.
	extend(ctx context.Context, tx *store.Tx, ref store.Ref, until till.Time) error
	// Apply records answers, in one commit if possible.
	Apply(ctx context.Context, answers []*Answer)
}

// Worker processes the due steps of payments, or of payouts. It is safe for concurrent use.
type Worker struct {
	toldMarkets
	c        Config
	kind     till.SubjectKind
	keys     Keys
	subjects subjects

	paymentKeys Keys         // of the payments that refunds name
	codes       *seal.Sealer // of one-time codes

	slots         slots
	createPermits chan struct{} // the share of slots that creates may take at once
	waker         *loop.Waker
	answers       *batch.Split[*Answer] // by node
	tasks         sync.WaitGroup
	unrecorded    unrecorded
	unsure        unsure
	recent        recentSends

	health     *health
	rates      map[admin.Operation]provider.Rate
	prefetched map[string]*prefetchedTokens // of connections with a rate limit for sends

	counts *counts

	noReference map[string]bool // connections whose operators do not know our references

	// Only the loop of Run uses these.
	lanes             []string // of the connections that are configured here
	bounds            map[string]store.Bounds
	sharedLanes       map[string]time.Time // lanes with steps of another account, and when one was last read
	strandedCheckedAt time.Time            // when it last looked for stranded steps
	floors            floors
	clock             clock
	clockSetBack      bool // the clock was set back, and not all future times are repaired
	waits             map[string]laneWait
	crowds            map[string]*crowd // by lane
	readsBeside       bool              // a read behind crowds is under way, or its result not taken
	spread            spread

	update     func(ctx context.Context, f func(tx *store.Tx) error) error // the commits of claims
	besideDone chan *besideRead                                            // has room for the one read
	readBeside func(ctx context.Context, r *besideRead) ([]*store.Step, error)
}

// The limits of the engine's own queues.
const (
	defaultSlots        = 512 // with an operator that takes two seconds: 256 calls per second
	maxBatch            = 256
	maxQueue            = 4096
	defaultPollInterval = 250 * time.Millisecond
)

// newWorker returns a Worker that does nothing until Run is called or a SendPermit is
// started.
func newWorker(c Config, kind till.SubjectKind, subjects subjects) *Worker {
	e := &Worker{
		c:             c,
		kind:          kind,
		toldMarkets:   toldMarkets{kind, c.Markets},
		keys:          newKeys(kind, c.Secret, c.Ring),
		paymentKeys:   newKeys(till.SubjectPayment, c.Secret, c.Ring),
		subjects:      subjects,
		slots:         slots{size: c.Slots, connections: len(c.Connections), by: map[string]int{}, most: map[string]int{}, back: map[string]int64{}},
		createPermits: make(chan struct{}, max(1, c.Slots/2)),
		waker:         loop.NewWaker(),
		health:        newHealth(c.Connections, kind),
		rates:         map[admin.Operation]provider.Rate{},
		prefetched:    map[string]*prefetchedTokens{},
		waits:         map[string]laneWait{},
		crowds:        map[string]*crowd{},
		sharedLanes:   map[string]time.Time{},
		spread:        spread{known: map[string]till.Time{}, claims: map[int]int{}},
		bounds:        map[string]store.Bounds{},

		noReference: map[string]bool{},
		besideDone:  make(chan *besideRead, 1),
	}
	var err error
	if e.codes, err = seal.New(c.Secret, codeLabel); err != nil {
		e.codes = nil // a secret of a test: no code is taken
	}
	e.update, e.readBeside = c.Store.UpdateBackground, e.dueStepsBeside
	for name, p := range c.Connections {
		e.noReference[name] = !p.Traits().ClientReference
		limits := c.Limits[name]
		e.slots.most[name] = limits.Calls
		for _, action := range []Action{Check, Submit} {
			o := e.operation(name, action)
			e.lanes = append(e.lanes, store.Lane(name, o.Name))
			e.bounds[store.Lane(name, o.Name)] = boundsOf(p.Traits())
			if r := rateOf(p.Traits(), limits, action); r.PerSecond > 0 {
				e.rates[o] = r
			}
		}
		if rateOf(p.Traits(), limits, Submit).PerSecond > 0 && !c.AcceptOnly {
			e.prefetched[name] = &prefetchedTokens{}
		}
	}
	slices.Sort(e.lanes)
	e.unrecorded.stopped = make(chan struct{})
	e.answers = batch.NewSplit(maxBatch, maxQueue, func(ctx context.Context, a *Answer) int {
		return c.Store.Node(ctx, a.Ref.Client)
	}, func(ctx context.Context, _ *batch.Batcher[*Answer], answers []*Answer) { subjects.Apply(ctx, answers) })
	e.answers.Observe(c.Meter.NewBatch("answer", e.answers.Len))
	e.counts = newCounts(e)
	return e
}

// SubmitRate returns how many sends a second a connection takes from all
// instances together, 0 if there is no limit.
func (w *Worker) SubmitRate(connection string) int {
	return w.rates[w.operation(connection, Submit)].PerSecond
}

// Reference returns the reference under which a client's payment or payout is submitted.
func (w *Worker) Reference(client till.ID, idempotencyKey string) till.ID {
	return w.keys.Reference(client, idempotencyKey)
}

// ParseCallbackToken returns the payment or payout that a callback's token names, if the
// token is ours.
func (w *Worker) ParseCallbackToken(connection, token string) (store.Ref, bool) {
	return w.keys.parseCallbackToken(connection, token)
}

// has reports whether a connection is configured here.
func (w *Worker) has(connection string) bool { return w.c.Connections[connection] != nil }

// forever is longer than any real duration.
const forever = 100 * 365 * 24 * time.Hour

// traits returns a connection's traits, and whether it is configured here. If not, nothing
// may be scheduled, proven or ended by the returned traits.
func (w *Worker) traits(connection string) (provider.Traits, bool) {
	if p := w.c.Connections[connection]; p != nil {
		return p.Traits(), true
	}
	return provider.Traits{NotFoundDelay: forever}, false
}

// Run processes due steps until ctx ends. Calls under way go on; Close waits for them. On
// an instance that only accepts, Run does nothing.
func (w *Worker) Run(ctx context.Context) {
	if w.c.AcceptOnly {
		return
	}
	if w.c.Store.Shared() {
		var heeding sync.WaitGroup
		defer heeding.Wait()
		heeding.Go(func() { w.followHints(ctx) })
	}
	loop.Run(ctx, loop.Options{
		Step: w.poll, Wake: w.waker.C(), Interval: w.c.PollInterval,
		OnPanic: func(v any) { w.c.Log.Error("engine step panicked", "panic", v, "stack", string(debug.Stack())) },
	})
}

// drain waits until all calls under way are answered and recorded, or ctx ends. Answers
// that an unavailable database has not recorded by then are logged and lost. Call it after
// Run has returned and nothing calls Start any more.
func (w *Worker) drain(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		w.tasks.Wait()
		w.answers.Close()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		w.unrecorded.stop()
		return fmt.Errorf("calls to operators are still under way: %w", ctx.Err())
	}
}

// hintInterval is the least time between two polls because of hints. A busy instance must
// not keep all others polling.
const hintInterval = 20 * time.Millisecond

// followHints wakes the loop when another instance has committed. A step of an instance
// that only accepts is due at once. Without a hint, the next poll finds it.
func (w *Worker) followHints(ctx context.Context) {
	remote := w.c.Store.SubscribeRemote()
	defer remote.Close()
	for {
		select {
		case <-remote.C():
			w.waker.Wake()
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(hintInterval):
		case <-ctx.Done():
			return
		}
	}
}
