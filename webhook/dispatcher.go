package webhook

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"till"
	"till/internal/batch"
	"till/internal/loop"
	"till/internal/quota"
	"till/internal/trace"
	"till/meter"
	"till/store"
	"till/store/webhooks"
)

// HTTPSender makes one attempt: a Sender, or a test's wrapper of one.
type HTTPSender interface {
	Post(ctx context.Context, url string, header http.Header, body []byte) Response
	Host(url string) string // the host whose limits a post to url counts in
}

// Config configures a Dispatcher. Store, Secrets and Sender are required.
type Config struct {
	Store   *store.Store
	Secrets *SecretSealer
	Sender  HTTPSender // ends an attempt within 15 s

	Posts       int           // attempts at once; 0 means 256
	PerEndpoint int           // attempts at once to one endpoint; 0 means 16
	ChunkSize   int           // events that are read, sent and recorded together; 0 means 1024
	ChunkTime   time.Duration // longest time to send a chunk; 0 means 2 s

	// SweepInterval is how long an event without a hint may wait to be noticed; 0 means a
	// second, and a quarter longer on a distributed database.
	SweepInterval time.Duration

	// NoHints turns the store's hints off. In virtual time, watching for them would be the
	// only thing that happens.
	NoHints bool

	Meter  *meter.Meter  // nil: nothing is counted
	Tracer *trace.Tracer // nil: nothing is traced
	Log    *slog.Logger  // nil: silence
}

// Lease is how long the right to send to an endpoint lasts unless it is
// renewed. An attempt that could outlive it is not begun.
const Lease = 20 * time.Second

// The limits of the dispatcher's own queues.
const (
	defaultPosts             = 256
	defaultPerEndpoint       = 16
	defaultChunkSize         = 1024
	defaultChunkTime         = 2 * time.Second
	defaultSweepInterval     = time.Second
	distributedSweepInterval = 1250 * time.Millisecond // a sweep asks each part of the table
	maxWorkers               = 4096                    // endpoints with a worker at once; the others wait for the next sweep
	maxChanges               = 256                     // in one commit
	maxChangeQueue           = 4 * maxWorkers
	sweepPage                = 1000
	clientEndpointsFor       = time.Second           // how long a client's list of endpoints is cached
	maxKnownClients          = 10_000                // clients whose list is cached
	remoteDelay              = 10 * time.Millisecond // the instance that wrote an event usually delivers it
	maxTimerDelay            = 30 * time.Second      // the sweep finds what is due later
	memoryDelay              = 20 * time.Millisecond // pause before the next try to reserve memory
)

// Dispatcher pushes event logs to endpoints. It is safe for concurrent use.
type Dispatcher struct {
	c         Config
	postSlots chan struct{}
	changes   *batch.Split[*change] // by node
	waker     *loop.Waker
	bodyCache bodyCache
	memory    *quota.Quota
	limiters  *limiterRegistry
	clock     clockWatch // of the sweep
	tasks     sync.WaitGroup

	mu             sync.Mutex
	workers        map[store.Ref]*endpointWorker
	knownEndpoints map[till.ID]clientEndpoints

	attempts *meter.Webhook

	fault func(step string) error // a test's way to fail a step
}

// clientEndpoints is a client's enabled endpoints, as read at a moment.
type clientEndpoints struct {
	refs []store.Ref
	at   time.Time
}

// New returns a Dispatcher that sends nothing until Run is called.
func New(c Config) *Dispatcher {
	c.Posts, c.PerEndpoint, c.ChunkSize = orDefault(c.Posts, defaultPosts), orDefault(c.PerEndpoint, defaultPerEndpoint), orDefault(c.ChunkSize, defaultChunkSize)
	sweep := defaultSweepInterval
	if c.Store.Distributed() {
		sweep = distributedSweepInterval
	}
	c.ChunkTime, c.SweepInterval = orDefault(c.ChunkTime, defaultChunkTime), orDefault(c.SweepInterval, sweep)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	d := &Dispatcher{c: c, postSlots: make(chan struct{}, c.Posts), waker: loop.NewWaker(), workers: make(map[store.Ref]*endpointWorker), knownEndpoints: make(map[till.ID]clientEndpoints)}
	d.memory, d.limiters = quota.New(maxMemory, maxClientMemory), newLimiterRegistry(c.Posts, c.PerEndpoint)
	d.changes = batch.NewSplit(maxChanges, maxChangeQueue, func(ctx context.Context, ch *change) int {
		return c.Store.Node(ctx, ch.ref.Client)
	}, func(ctx context.Context, _ *batch.Batcher[*change], changes []*change) { d.commit(ctx, changes) })
	d.changes.Observe(c.Meter.NewBatch("delivery", d.changes.Len))
	d.attempts = c.Meter.NewWebhook()
	return d
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Run delivers until ctx ends. Attempts under way go on; Close waits for them.
func (d *Dispatcher) Run(ctx context.Context) {
	var subscriptions sync.WaitGroup
	defer subscriptions.Wait()
	if !d.c.NoHints {
		subscriptions.Go(func() { d.watchHints(ctx) })
	}
	loop.Run(ctx, loop.Options{
		Step: d.sweep, Wake: d.waker.C(), Interval: d.c.SweepInterval, Jitter: jitterShare,
		OnPanic: func(v any) {
			d.c.Log.Error("endpoint sweep panicked", "panic", v, "stack", string(debug.Stack()))
		},
	})
}

// Close waits until all attempts under way have ended and are recorded, or ctx ends. Call
// it after Run has returned.
func (d *Dispatcher) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		d.tasks.Wait()
		d.changes.Close()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wake says that a client's endpoints have changed. It forgets the cached list and starts a
// sweep.
func (d *Dispatcher) Wake(ctx context.Context, client till.ID) {
	d.mu.Lock()
	delete(d.knownEndpoints, client)
	d.mu.Unlock()
	d.flagMoreWork(&client)
	d.waker.Wake()
}

// flagMoreWork flags the running workers of a client, or of all clients for nil: there may
// be more to send. A sweep skips endpoints under a lease, also under one of this instance.
func (d *Dispatcher) flagMoreWork(client *till.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ref, r := range d.workers {
		if r.busy && (client == nil || ref.Client == *client) {
			r.moreWork = true
		}
	}
}

// watchHints starts workers for hinted clients: at once for events of this process, a
// moment later for those of another instance, which usually delivers its own.
func (d *Dispatcher) watchHints(ctx context.Context) {
	all, others := d.c.Store.SubscribeAll(), d.c.Store.SubscribeRemote()
	defer all.Close()
	defer others.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-all.C():
		}
		foreign, anybody := others.Drain()
		clients, everybody := all.Drain()
		if everybody || anybody {
			d.flagMoreWork(nil)
			d.waker.Wake()
		}
		if len(foreign) > 0 {
			clients = slices.DeleteFunc(clients, func(c till.ID) bool { return slices.Contains(foreign, c) })
			time.AfterFunc(remoteDelay+rand.N(remoteDelay), func() { d.dispatchClients(ctx, foreign) })
		}
		d.dispatchClients(ctx, clients)
	}
}

// dispatchClients starts workers for the endpoints of clients whose logs have grown. It
// only flags a worker that is running here.
func (d *Dispatcher) dispatchClients(ctx context.Context, clients []till.ID) {
	stale := map[till.ID]bool{}
	ours := map[store.Ref]bool{} // endpoints with a running worker when the hint came
	now := time.Now()
	d.mu.Lock()
	for _, c := range clients {
		k, found := d.knownEndpoints[c]
		all := found && now.Sub(k.at) < clientEndpointsFor
		for _, ref := range k.refs {
			if r := d.workers[ref]; r != nil && r.busy {
				r.moreWork = true
			} else {
				all = false
			}
		}
		if !all {
			stale[c] = true
		}
	}
	for ref, r := range d.workers {
		if r.busy && stale[ref.Client] {
			r.moreWork, ours[ref] = true, true
		}
	}
	d.mu.Unlock()
	if len(stale) == 0 {
		return
	}
	due, err := d.dueOf(ctx, slices.Collect(maps.Keys(stale)), ours, now)
	if err != nil && d.c.Store.Distributed() { // an unreachable node must not hide the others' clients
		d.c.Store.NoteSilence(ctx) // so that those of a silent node are left out
		for c := range stale {
			some, err := d.dueOf(ctx, []till.ID{c}, ours, now)
			if err != nil {
				d.c.Log.Warn("endpoints not read", "client", c, "error", err)
			}
			due = append(due, some...)
		}
	} else if err != nil {
		d.c.Log.Warn("endpoints not read", "error", err) // the sweep will read them
	}
	for _, e := range due {
		d.startWorker(ctx, e.Ref())
	}
}

// dueOf returns the endpoints of clients that have something to send. Those of ours had a
// running worker when the hint came.
func (d *Dispatcher) dueOf(ctx context.Context, clients []till.ID, ours map[store.Ref]bool, now time.Time) (due []*webhooks.Endpoint, err error) {
	// On an unreachable node, the sweep finds what is due, when the node is back.
	clients = slices.DeleteFunc(clients, func(c till.ID) bool { return d.c.Store.CheckNode(ctx, c) != nil })
	err = d.c.Store.View(d.c.Store.Brief(ctx), func(tx *store.Tx) error {
		due = nil
		for _, c := range clients {
			endpoints, err := webhooks.Endpoints(ctx, tx, c, MaxEndpoints)
			if err != nil {
				return err
			}
			d.remember(c, endpoints, now)
			for _, e := range endpoints {
				// A worker of this instance may have ended by now, and no other instance
				// got this hint.
				if (e.Free(tx.Now()) || ours[e.Ref()]) && e.Due(tx.Now()) {
					due = append(due, e)
				}
			}
		}
		return nil
	})
	return due, err
}

func (d *Dispatcher) remember(client till.ID, endpoints []*webhooks.Endpoint, now time.Time) {
	k := clientEndpoints{at: now}
	for _, e := range endpoints {
		if e.Enabled {
			k.refs = append(k.refs, e.Ref())
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.knownEndpoints) >= maxKnownClients {
		clear(d.knownEndpoints)
	}
	d.knownEndpoints[client] = k
}

// sweep starts workers for all endpoints that have something due: events without a hint,
// retries, and the work of an instance that died.
func (d *Dispatcher) sweep(ctx context.Context) time.Duration {
	if d.clock.wentBack(d.c.Store.Now()) {
		if err := d.repairFutureTimes(ctx); err != nil {
			d.clock = clockWatch{} // repair again with the next sweep
			d.c.Log.Warn("future times not repaired", "error", err)
		}
	}
	var after store.Ref
	for {
		page, err := webhooks.FindDueEndpoints(ctx, d.c.Store, after, sweepPage)
		if err != nil {
			d.c.Log.Warn("due endpoints not read", "error", err)
			return -1
		}
		for _, e := range page {
			d.startWorker(ctx, e.Ref())
		}
		if len(page) < sweepPage || ctx.Err() != nil {
			return -1
		}
		after = page[len(page)-1].Ref()
	}
}
