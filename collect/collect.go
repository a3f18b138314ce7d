package collect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"till"
	"till/engine"
	"till/internal/batch"
	"till/provider"
	"till/store"
)

// Config is what a Collector is made of.
type Config struct {
	Store *store.Store
	// Secret is the installation's: references and callback tokens derive
	// from it, so it must never change.
	Secret []byte
	// Connections are the operators that payments can be sent to.
	Connections map[string]provider.Provider
	// Routes returns the connections that a client's payment may take, the
	// preferred one first; none if there is no way. A payment takes the first
	// one that is well when it is made, and keeps it.
	Routes func(client *till.Client, method, country, currency string) []string
	// Route is Routes where there is one way at most: "" if there is none.
	Route func(mode till.Mode, method, country, currency string) string
	// Limits are what the configuration says about connections; see
	// engine.Config.
	Limits map[string]engine.Limits
	// CallbackBase is where operators reach us, "" if they cannot. The
	// connection and a token are appended.
	CallbackBase string
	// Slots is how many calls to operators run at once; see engine.Config.
	Slots int
	// Look is how soon other processes' work is noticed; see engine.Config.
	Look time.Duration
	// Pulse is how soon instances agree on how operators stand; see
	// engine.Config.
	Pulse time.Duration
	// Work says that this instance sends and asks; without it, it only
	// accepts and leaves the work to others.
	Work bool
	// MaxBatch is how many creates share a commit at most; 0 means 512. A
	// benchmark sets 1, to show what sharing gives.
	MaxBatch int
	Log      *slog.Logger
}

// Collector accepts payments and records what becomes of them.
type Collector struct {
	c       Config
	keys    keys
	engine  *engine.Engine
	creates *batch.Batcher[*creation]
	wakes   *batch.Batcher[*wake]
}

// The limits of the queues in front of the database. A create that finds the
// queue full is answered 503, not kept waiting.
const (
	maxCreateBatch = 512
	maxCreateQueue = 4096
	maxWakeBatch   = 256
	maxWakeQueue   = 4096
)

// New returns a Collector. Close it when nothing calls it any more.
func New(c Config) *Collector {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.MaxBatch <= 0 {
		c.MaxBatch = maxCreateBatch
	}
	col := &Collector{c: c, keys: newKeys(c.Secret)}
	col.engine = engine.New(engine.Config{
		Store: c.Store, Connections: c.Connections, Subject: col, Slots: c.Slots, Look: c.Look,
		Pulse: c.Pulse, Limits: c.Limits, Idle: !c.Work, Log: c.Log,
	})
	col.creates = batch.New(c.MaxBatch, maxCreateQueue, col.runCreates)
	col.wakes = batch.New(maxWakeBatch, maxWakeQueue, col.runWakes)
	return col
}

// Run sends and asks until ctx ends; it returns at once if this instance
// leaves the work to others.
func (c *Collector) Run(ctx context.Context) {
	if c.c.Work {
		c.engine.Run(ctx)
	}
}

// Watch shares with the other instances how the operators stand, until ctx
// ends: also on an instance that leaves the work to others, because it must
// refuse what cannot be sent.
func (c *Collector) Watch(ctx context.Context) { c.engine.Watch(ctx) }

// Close finishes what was begun: queued creates are written, calls under way
// are answered and recorded, or ctx ends. Call it after Run has returned and
// nothing calls Create any more.
func (c *Collector) Close(ctx context.Context) error {
	c.creates.Close()
	c.wakes.Close()
	return c.engine.Drain(ctx)
}

// Client is who asks: the tenant and which methods it may use.
type Client struct {
	*till.Client
	Enabled func(method string) bool
}

// Created is the answer to Create: the payment as it was created, which is
// also what a repeated call is given.
type Created struct {
	Payment  *till.Payment
	Replayed bool
}

// creation is one create call on its way through the batch.
type creation struct {
	row   store.PaymentRow
	key   till.ID
	req   *Request
	grant *engine.Grant

	// Set by the batch.
	tries    []store.Step // one for each time it was written, whether or not that lasted
	step     store.Step
	existing *store.PaymentRow
	err      error
}

// Create records that a client wants a payment: one commit, nothing else. It
// returns CodeValidationFailed with every mistake of the body, CodeKeyReused
// if the key belongs to another body, CodeMethodUnavailable if no operator
// can be reached for it, CodeServiceUnavailable if the database is away or
// the queue is full.
func (c *Collector) Create(ctx context.Context, who Client, r *Request) (Created, error) {
	var ck checker
	o := r.check(&ck)
	lasting := len(ck.fields)
	checkCatalogue(&ck, who, o, r)
	refusal := &till.Error{Code: till.CodeValidationFailed, Detail: "the body has mistakes; see errors", Fields: ck.fields}
	if lasting > 0 {
		return Created{}, refusal
	}
	if len(ck.fields) > 0 {
		return c.replayOr(ctx, who.ID, o.key, r, refusal)
	}
	name, made, err := c.choose(ctx, who, o, r)
	if name == "" {
		return made, err
	}
	p := c.c.Connections[name]

	call := &creation{key: o.key, req: r}
	hash, ok := r.hash(bodyVersion)
	if !ok {
		return Created{}, fmt.Errorf("hash the body of a create call")
	}
	call.row = store.PaymentRow{
		Payment: till.Payment{
			ClientID: who.ID, IdempotencyKey: o.sentKey, Status: till.Pending,
			Method: o.method, Country: o.country, Amount: till.Money{Minor: o.amount, Currency: o.currency},
			Phone: o.phone, Reference: deref(r.Reference), Document: r.document(),
			ApprovalWindow: till.Time(p.Traits().ApprovalWindow.Microseconds()),
			Connection:     name, Fingerprint: p.Fingerprint(),
			Resolution: till.Resolution{State: till.Waiting},
		},
		BodyHash: hash, BodyVersion: bodyVersion,
	}
	if c.c.Work && p.Traits().ClientReference {
		call.grant = c.engine.Grant(name)
	}
	return c.create(ctx, call)
}

// create puts the call through the batch.
func (c *Collector) create(ctx context.Context, call *creation) (Created, error) {
	// The call belongs to the batch from here on: a client that hangs up must
	// not leave a slot behind.
	err := c.creates.Do(context.WithoutCancel(ctx), call)
	switch {
	case errors.Is(err, batch.ErrFull), errors.Is(err, batch.ErrClosed):
		if call.grant != nil {
			call.grant.Return()
		}
		return c.replayOr(ctx, call.row.ClientID, call.key, call.req, till.Errorf(till.CodeServiceUnavailable, "too many requests are waiting; try again with the same key"))
	case err != nil:
		return Created{}, err
	case call.err != nil:
		return Created{}, call.err
	case call.existing != nil:
		return c.replay(call.existing, call.req)
	}
	return Created{Payment: &call.row.Payment}, nil
}

// runCreates writes a batch of creates in one commit; if that fails, each
// alone, so that one bad element fails by itself. Whoever lost its caller is
// still served: the payment exists, so it is sent.
func (c *Collector) runCreates(ctx context.Context, calls []*creation) {
	defer func() { // also after a panic
		for _, call := range calls {
			if call.grant != nil {
				call.grant.Return()
			}
		}
	}()
	err := c.createBatch(ctx, &calls, true)
	if errors.Is(err, store.ErrUnknownCommit) {
		err = c.createBatch(ctx, &calls, false) // what is there already is adopted
	}
	away := errors.Is(err, store.ErrUnavailable)
	for _, call := range calls {
		if err != nil && !away && len(calls) > 1 {
			call.err = c.unavailable("create a payment", c.createBatch(ctx, &[]*creation{call}, false))
		} else if err != nil {
			call.err = c.unavailable("create payments", err)
		}
	}
	idle := false
	for _, call := range calls {
		made := call.err == nil && call.existing == nil
		switch {
		case call.grant == nil:
			idle = idle || made
		case made:
			call.grant.Start(ctx, &call.step, c.job(&call.row))
		}
	}
	if idle && c.c.Work {
		c.engine.Wake()
	}
}

// unavailable turns an error of the database into the refusal that a client
// sees. It is logged here, because the client is told nothing.
func (c *Collector) unavailable(doing string, err error) error {
	var e *till.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	}
	c.c.Log.Error(doing, "error", err)
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownCommit) {
		return till.Errorf(till.CodeServiceUnavailable, "the database is away; try again with the same key")
	}
	return err
}

// createBatch is the one commit of a batch of creates. If it may, it adds what
// has come for the same clients while it waited for their heads.
func (c *Collector) createBatch(ctx context.Context, batch *[]*creation, more bool) error {
	clients := make([]till.ID, len(*batch))
	for i, call := range *batch {
		clients[i] = call.row.ClientID
	}
	return c.c.Store.Update(ctx, func(tx *store.Tx) error {
		heads, err := tx.LockHeads(ctx, clients)
		if err != nil {
			return err
		}
		if more {
			*batch = append(slices.Clip(*batch), c.creates.Absorb(func(next []*creation) bool {
				return !slices.ContainsFunc(next, func(call *creation) bool { return heads[call.row.ClientID] == nil })
			})...)
		}
		calls := *batch
		rows, steps := make([]*store.PaymentRow, 0, len(calls)), make([]*store.Step, 0, len(calls))
		for _, call := range calls {
			head := heads[call.row.ClientID]
			if head == nil {
				return till.Errorf(till.CodeClientNotFound, "there is no such client")
			}
			call.err, call.existing = nil, nil
			call.stamp(head.Tick(), tx.Now())
			rows, steps = append(rows, &call.row), append(steps, &call.step)
		}
		inserted, err := tx.InsertPayments(ctx, heads, rows, steps)
		if err != nil {
			return err
		}
		return c.finishCreates(ctx, tx, heads, calls, inserted)
	})
}

// stamp gives a new payment its time, and with it its id and its first step.
// What is due, and how long a lease lasts, goes by the clock alone: a client's
// own time runs ahead of it when the clock was set back.
func (call *creation) stamp(at, now till.Time) {
	p := &call.row
	p.ID = till.NewID(at)
	p.CreatedAt, p.UpdatedAt, p.ExpiresAt = at, at, at+p.ApprovalWindow
	call.step = store.Step{ClientID: p.ClientID, SubjectID: p.ID, Kind: store.KindPayment, Lane: store.Lane(p.Connection, store.OpSubmit), DueAt: now}
	if call.grant != nil {
		call.grant.Lease(&call.step, now)
		call.step.Lane = store.Lane(p.Connection, store.OpCheck)
	}
	call.tries = append(call.tries, call.step)
}

// adopt takes a row for this call's own if an earlier try of it wrote it: the
// commit was answered by nobody.
func (call *creation) adopt(p *store.PaymentRow) {
	for _, s := range call.tries {
		if s.SubjectID == p.ID {
			call.row, call.step = *p, s
			call.row.Payment = *p.AsCreated()
			return
		}
	}
	call.existing = p
}

// finishCreates writes what follows from the rows that are really new, and
// reads back the others.
func (c *Collector) finishCreates(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, calls []*creation, inserted []bool) error {
	var counts store.Counts
	var sends []*store.Attempt
	for i, call := range calls {
		p := &call.row
		if !inserted[i] {
			found, err := tx.PaymentByKey(ctx, p.ClientID, call.key)
			if err != nil {
				return err
			}
			call.adopt(found)
			continue
		}
		counts.AddPayment(&p.Payment, till.Pending, 1)
		if call.grant != nil {
			sends = append(sends, call.grant.Submission(&call.step, c.job(p)))
		}
	}
	if err := tx.BeginSubmits(ctx, sends); err != nil {
		return err
	}
	if err := tx.Count(ctx, &counts); err != nil {
		return err
	}
	return tx.SaveHeads(ctx, heads)
}

// eventOf renders the event that tells a payment's state as it is now.
func eventOf(p *store.PaymentRow, kind till.EventKind, sequence int64) *till.Event {
	return &till.Event{
		ClientID: p.ClientID, Sequence: sequence, Kind: kind, PaymentID: p.ID, CreatedAt: p.UpdatedAt,
		Status: p.Status, ProviderReference: p.ProviderReference, FailureReason: p.FailureReason,
		FailureDetail: p.FailureDetail, ExpiresAt: p.ExpiresAt, Resolution: p.Resolution,
	}
}

// replayOr looks a key up before a refusal that could have come out otherwise
// when the payment was made: an existing payment always gets its replay.
func (c *Collector) replayOr(ctx context.Context, client, key till.ID, r *Request, refusal error) (Created, error) {
	var p *store.PaymentRow
	err := c.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		p, err = tx.PaymentByKey(ctx, client, key)
		return err
	})
	switch {
	case err != nil:
		return Created{}, c.unavailable("look up an idempotency key", err)
	case p == nil:
		return Created{}, refusal
	}
	return c.replay(p, r)
}

// replay answers a key that made a payment before: with the creation answer
// if the body is the same, with CodeKeyReused if not.
func (c *Collector) replay(p *store.PaymentRow, r *Request) (Created, error) {
	hash, ok := r.hash(p.BodyVersion)
	if !ok {
		return Created{}, fmt.Errorf("payment %s was made by a newer release", p.ID)
	}
	if hash != p.BodyHash {
		e := till.Errorf(till.CodeKeyReused, "this idempotency_key made payment %s with another body; a new payment needs a new key", p.ID)
		e.PaymentID = p.ID
		return Created{}, e
	}
	return Created{Payment: p.AsCreated(), Replayed: true}, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
