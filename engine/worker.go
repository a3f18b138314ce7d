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
	"till/provider"
	"till/store"
)

// Instruction is what the engine must know of a subject to act on its step.
type Instruction struct {
	Ref         store.Ref
	Connection  string
	Fingerprint string
	Request     provider.Request
	ExpiresAt   till.Time
	Window      till.Time // a span: how far a re-send moves ExpiresAt
	Final       bool

	// Subject is the subject as it was when the job was made, and stays so; nil if
	// it is not kept. With it, most of what comes of the job can be recorded
	// without reading the subject again.
	Row any
}

// Answer is what came of acting on a step.
type Answer struct {
	Ref        store.Ref
	Action     Action
	Connection string
	Reference  till.ID

	LeaseVersion int64 // the lease under which it was done
	WakeSeq      int64 // the wakes that were seen before it began

	Started, Ended till.Time
	Result         provider.Result
	Err            error // non-nil: we do not know

	onlyFirstSend bool // when it was claimed, one send was all that was on record
	cachedRow     any  // the subject as it was then, nil if that is not known

	// By, Evidence and Digest are set on a person's resolution.
	By, Evidence string
	Digest       []byte // SHA-256 of the evidence

	// RecordErr is set by Apply if the answer could not be recorded.
	RecordErr error
	storeErr  error // what the database said then, nil if it was not asked

}

// subjects is what a Worker works for: a Processor.
type subjects interface {
	// load returns the jobs of the named rows that exist.
	load(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref]*Instruction, error)
	// extend moves the end of a row's window, because it is sent again.
	extend(ctx context.Context, tx *store.Tx, ref store.Ref, until till.Time) error
	// Apply records answers, all in one commit where that works.
	Apply(ctx context.Context, answers []*Answer)
}

// Worker works off the due steps of payments, or of payouts. It is safe for
// concurrent use.
type Worker struct {
	c        Config
	kind     string // store.KindPayment or store.KindPayout
	keys     Keys
	subjects subjects

	slots         slots
	createPermits chan struct{} // the share of slots that creations may take at once
	waker         *loop.Waker
	answers       *batch.Batcher[*Answer]
	tasks         sync.WaitGroup
	unrecorded    unrecorded
	recent        recentSends

	health     *health
	rates      map[store.Operation]provider.Rate
	prefetched map[string]*prefetchedTokens // of the connections that limit sends

	noReference map[string]bool // connections whose operators know no reference of ours

	// Only the loop of Run uses these.
	lanes             []string // the lanes of the connections that are configured here
	bounds            map[string]store.Bounds
	sharedLanes       map[string]time.Time // those in which steps of another account were met, and when
	strandedCheckedAt time.Time            // when it last looked for what nobody takes
	floors            floors
	clock             clock
	clockSetBack      bool // the clock was set back, and not all is mended that lies in the future
	waits             map[string]laneWait
	crowds            map[string]*crowd // lane
}

// The limits of the engine's own queues.
const (
	defaultSlots        = 512 // an operator that takes two seconds is then called 256 times a second
	maxBatch            = 256
	maxQueue            = 4096
	defaultPollInterval = 250 * time.Millisecond
)

// newWorker returns a Worker that does nothing until Run is called, or a Grant
// is started.
func newWorker(c Config, kind string, subjects subjects) *Worker {
	e := &Worker{
		c:             c,
		kind:          kind,
		keys:          NewKeys(kind, c.Secret),
		subjects:      subjects,
		slots:         slots{size: c.Slots, connections: len(c.Connections), by: map[string]int{}, most: map[string]int{}, back: map[string]int64{}},
		createPermits: make(chan struct{}, max(1, c.Slots/2)),
		waker:         loop.NewWaker(),
		health:        newHealth(c.Connections, kind),
		rates:         map[store.Operation]provider.Rate{},
		prefetched:    map[string]*prefetchedTokens{},
		waits:         map[string]laneWait{},
		crowds:        map[string]*crowd{},
		sharedLanes:   map[string]time.Time{},
		bounds:        map[string]store.Bounds{},

		noReference: map[string]bool{},
	}
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
	e.answers = batch.New(maxBatch, maxQueue, subjects.Apply)
	return e
}

// Reference returns what a client's payment or payout is submitted under.
func (w *Worker) Reference(client till.ID, idempotencyKey string) till.ID {
	return w.keys.Reference(client, idempotencyKey)
}

// ParseCallbackToken returns the payment or payout that a callback's token names, if
// the token is one of ours.
func (w *Worker) ParseCallbackToken(connection, token string) (store.Ref, bool) {
	return w.keys.ParseCallbackToken(connection, token)
}

// Has reports whether a connection is configured here.
func (w *Worker) Has(connection string) bool { return w.c.Connections[connection] != nil }

// forever is longer than anybody waits.
const forever = 100 * 365 * 24 * time.Hour

// traits returns the habits of a connection, and whether it is configured here.
// Of one that is not nothing is known: nothing may be scheduled, proven or ended
// by what is returned then.
func (w *Worker) traits(connection string) (provider.Traits, bool) {
	if p := w.c.Connections[connection]; p != nil {
		return p.Traits(), true
	}
	return provider.Traits{NotFoundDelay: forever}, false
}

// Task is a claimed step, ready to be acted on.
type Task struct {
	Step        store.Step
	Instruction *Instruction
	Action      Action
	seen        store.Step // as it was before the claim
	claimed     till.Time  // by the database's clock
	// leaseEnd is when the lease ends on this process's own monotonic clock;
	// it was read before the claim, so it is never too late.
	leaseEnd   time.Time
	fromCreate bool
	round      int64 // of probes that it belongs to; 0: none
}

// onlyFirstSend reports whether the first send is all that is on record: it is just
// being made, or one lease was ever given, and the one call that ended under it
// was the send.
func (t *Task) onlyFirstSend() bool {
	s := &t.seen
	return t.Step.Sends == 1 && s.Calls == s.Sends && s.LeaseVersion == int64(s.Calls)
}

// Run works off due steps until ctx ends. It returns at once then; Close
// waits for the calls under way. On an instance that only accepts it does nothing.
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

// drain waits until every call under way has been answered and recorded, or
// ctx ends: what a database that is away has not taken by then is logged, and
// lost. Call it after Run has returned and nothing calls Start any more.
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

// plan decides what to do about one step; nil if it cannot be acted on from
// here.
func (w *Worker) plan(s *store.Step, j *Instruction, now till.Time, h heldClients) *Task {
	if j == nil {
		return nil
	}
	p := w.c.Connections[j.Connection]
	if p == nil || p.Fingerprint() != j.Fingerprint {
		return nil // pinned to a connection that this instance does not have
	}
	t := &Task{Instruction: j, Action: w.replaceIfHeld(Next(s, j, p.Traits(), now), s, j, h), Step: *s, seen: *s, claimed: now}
	t.Step.LeaseVersion++
	t.Step.LeaseUntil = now.Add(Lease)
	if t.Action == Submit {
		if !unsent(s) {
			t.Step.Sends = max(t.Step.Sends, 1) // also one that was thought to have left nothing
		}
		t.Step.Sends++
		t.Step.SendStartedAt, t.Step.SendDeadline, t.Step.Absent = now, t.Step.LeaseUntil, 0
	}
	return t
}

// recordUnactionable records that nothing could be done about steps of ours. They are tried
// again later, out of the way of the others, and once their time is over a
// person is told.
func (w *Worker) recordUnactionable(ctx context.Context, steps []*store.Step, why error) {
	now := w.c.Store.Now()
	for _, s := range steps {
		w.c.Log.Warn("cannot act on a step", w.kind, s.SubjectID, "error", why)
		a := &Answer{Ref: store.Ref{Client: s.ClientID, ID: s.SubjectID}, Action: Check, LeaseVersion: s.LeaseVersion, WakeSeq: s.WakeSeq,
			Started: now, Ended: now, Err: why}
		err := w.answers.Do(ctx, a)
		if err == nil {
			err = a.RecordErr // with an error the batch may still be writing it
		}
		if err != nil {
			w.c.Log.Error("record that a step cannot be acted on", w.kind, s.SubjectID, "error", err)
		}
		if a.storeErr != nil && !isUnavailable(a.storeErr) {
			w.quarantine(ctx, a, a.storeErr)
		}
	}
	if len(steps) > 0 {
		w.waker.Wake() // to see when they are due again
	}
}

// claimSteps claims the steps of tasks and writes down which sends may begin; a
// re-send gets a window of its own. It returns the tasks that no other
// instance was faster at.
func (w *Worker) claimSteps(ctx context.Context, tx *store.Tx, tasks []*Task) ([]*Task, error) {
	claims := make([]*store.Claim, len(tasks))
	for i, t := range tasks {
		claims[i] = &store.Claim{Step: t.Step, Seen: t.seen}
	}
	won, err := tx.ClaimSteps(ctx, claims)
	if err != nil {
		return nil, err
	}
	var mine []*Task
	var sends []*store.Attempt
	for i, t := range tasks {
		if !won[i] {
			continue
		}
		mine = append(mine, t)
		if t.Action != Submit {
			continue
		}
		sends = append(sends, w.sendAttempt(&t.Step, t.Instruction.Connection, t.Instruction.Request.Reference, t.seen.SendStartedAt == 0))
		if j := t.Instruction; t.Step.Sends > 1 {
			j.ExpiresAt = tx.Now() + j.Window
			j.Request.ExpiresAt = j.ExpiresAt
			if err := w.subjects.extend(ctx, tx, j.Ref, j.ExpiresAt); err != nil {
				return nil, err
			}
		}
	}
	return mine, tx.BeginSubmits(ctx, sends)
}

// sendAttempt returns the attempt of a send that is about to begin. The first
// takes the reference for its subject; one that turned out not to have begun
// was the first nevertheless.
func (w *Worker) sendAttempt(s *store.Step, connection string, reference till.ID, first bool) *store.Attempt {
	a := &store.Attempt{ClientID: s.ClientID, SubjectID: s.SubjectID, Connection: connection,
		Reference: reference, StartedAt: s.SendStartedAt, First: first}
	// Where all callbacks come to one address, they must find what they are
	// about from the moment that the operator can know of it.
	if _, called := w.c.Connections[connection].(provider.CallbackReader); called {
		a.FindAs = s.Kind
	}
	return a
}

// errLeaseOver says that the right to send ran out before it was used: whoever
// waited longer than a lease for the database, or stood still, has sent nothing
// and sends nothing any more.
var errLeaseOver = fmt.Errorf("%w: the lease ended before the call began", provider.ErrNotSent)

// start acts on a claimed step in the background. A slot is held for it.
func (w *Worker) start(ctx context.Context, t *Task) {
	ctx = context.WithoutCancel(ctx) // a stop lets the calls under way finish
	if t.Action == Submit {
		w.recent.keep(t.Instruction)
	}
	w.tasks.Add(1)
	go func() {
		defer w.tasks.Done()
		defer w.release(t)
		defer func() {
			if v := recover(); v != nil {
				// The step's lease ends by itself and it is tried again.
				w.c.Log.Error("a step panicked", w.kind, t.Instruction.Ref.ID, "panic", v, "stack", string(debug.Stack()))
			}
		}()
		w.record(ctx, w.act(ctx, t))
	}()
}

// release gives back the slot of a task that has ended, and wakes the loop: its
// step may be due soon, or another may wait for the slot.
func (w *Worker) release(t *Task) {
	w.slots.put(t.Instruction.Connection)
	if t.fromCreate {
		<-w.createPermits
	}
	w.waker.Wake()
}

// act makes the call. If the lease was over before it could begin, nothing is
// done, and whoever holds the step now goes on.
func (w *Worker) act(ctx context.Context, t *Task) *Answer {
	j := t.Instruction
	a := &Answer{
		Ref: j.Ref, Action: t.Action, Connection: j.Connection, Reference: j.Request.Reference,
		LeaseVersion: t.Step.LeaseVersion, WakeSeq: t.Step.WakeSeq, Started: t.claimed, // never too late
		onlyFirstSend: t.onlyFirstSend(), cachedRow: j.Row,
	}
	if !t.Action.calls() {
		a.Ended = a.Started
		return a
	}
	p := w.c.Connections[j.Connection]
	timeout := p.Traits().CheckTimeout
	if t.Action == Submit {
		timeout = p.Traits().SubmitTimeout
		a.Started = t.Step.SendStartedAt // the row that was written before
	}
	ctx, cancel := context.WithDeadline(ctx, t.leaseEnd)
	defer cancel()
	if t.Action == Submit && w.kind == store.KindPayout {
		a.Err = w.checkHolds(ctx, j.Ref.Client)
	}
	if !w.leaseHolds(t) {
		a.Err = errLeaseOver
	}
	if a.Err != nil {
		a.Ended = w.c.Store.Now()
		w.c.Log.Warn("gave up a step", w.kind, j.Ref.ID, "error", a.Err)
		return a
	}
	began := time.Now() // what the database took is not the operator's time
	ctx, over := context.WithDeadline(ctx, began.Add(timeout))
	defer over()
	a.Result, a.Err = w.call(ctx, p, t)
	w.health.record(j.Connection, t.Action, a.Err, time.Since(began), t.round)
	a.Ended = w.c.Store.Now()
	w.c.Log.Debug("called an operator", w.kind, j.Ref.ID, "action", t.Action, "connection", j.Connection,
		"outcome", a.Result.Outcome, "error", a.Err, "took", a.Ended.Sub(a.Started))
	return a
}
