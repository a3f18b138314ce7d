package collect

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"till"
	"till/engine"
	"till/internal/order"
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
	// Routes says which of them a new payment may take.
	Routes engine.Routes
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
	c      Config
	engine *engine.Worker
	desk   *engine.Intake[*store.PaymentRow]
}

// New returns a Collector. Close it when nothing calls it any more.
func New(c Config) *Collector {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Routes == nil {
		c.Routes = engine.ByMode(c.Route)
	}
	col := &Collector{c: c}
	col.engine = engine.New(engine.Config{
		Kind: store.KindPayment, Secret: c.Secret, Store: c.Store, Connections: c.Connections, Subject: col, Slots: c.Slots, Look: c.Look,
		Pulse: c.Pulse, Limits: c.Limits, Idle: !c.Work, Log: c.Log,
	})
	col.desk = engine.NewDesk(col.engine, &engine.PaymentTable, engine.DeskConfig[*store.PaymentRow]{
		Write: col.write, Job: col.job, Work: c.Work, MaxBatch: c.MaxBatch, Log: c.Log,
	})
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
	c.desk.Close()
	return c.engine.Drain(ctx)
}

// Client is who asks: the tenant, which methods it may use and what is taken
// for them.
type Client struct {
	*till.Client
	Enabled func(method string) bool
	Fees    []till.Fee
	Full    error // what each new payment is refused with, because the client may store no more; nil: it may
}

// Created is the answer to Create: the payment as it was created, which is
// also what a repeated call is given.
type Created struct {
	Payment  *till.Payment
	Replayed bool
}

// Create records that a client wants a payment: one commit, nothing else. It
// returns CodeValidationFailed with every mistake of the body, one without a
// route included, CodeKeyReused if the key belongs to another body,
// CodeMethodUnavailable if its operators do not answer just now,
// CodeServiceUnavailable if the database is away or the queue is full.
func (c *Collector) Create(ctx context.Context, who Client, r *Request) (Created, error) {
	var ck checker
	o := r.check(&ck)
	lasting := len(ck.Fields)
	names := c.routed(who.Client, o.Method, o.Country, o.Currency)
	o.CheckCatalogue(&ck, order.Catalogue{
		Enabled: who.Enabled, Routed: len(names) > 0,
		Leads: func(method, country, currency string) bool {
			return len(c.routed(who.Client, method, country, currency)) > 0
		},
	}, r.party())
	refusal := ck.Refusal()
	if lasting > 0 {
		return Created{}, refusal
	}
	if len(ck.Fields) > 0 {
		return answer(c.desk.ReplayOr(ctx, who.ID, o.Key, r.hash, refusal))
	}
	if who.Full != nil {
		return answer(c.desk.ReplayOr(ctx, who.ID, o.Key, r.hash, who.Full))
	}
	name, row, replayed, err := c.desk.Choose(ctx, who.ID, o.Key, r.hash, names)
	if name == "" {
		return answer(row, replayed, err)
	}
	p := c.c.Connections[name]

	sum, ok := r.hash(bodyVersion)
	if !ok {
		return Created{}, fmt.Errorf("hash the body of a create call")
	}
	amount := till.Money{Minor: o.Amount, Currency: o.Currency}
	call := &creation{Key: o.Key, Hash: r.hash, Row: &store.PaymentRow{
		Payment: till.Payment{
			ClientID: who.ID, IdempotencyKey: o.SentKey, Status: till.Pending,
			Method: o.Method, Country: o.Country, Amount: amount, Fee: till.FeeFor(who.Fees, till.PaymentFee, o.Method, amount),
			Phone: o.Phone, Reference: order.Deref(r.Reference), Document: r.document(),
			ApprovalWindow: till.Time(p.Traits().ApprovalWindow.Microseconds()),
			Connection:     name, Fingerprint: p.Fingerprint(),
			Resolution: till.Resolution{State: till.Waiting},
		},
		BodyHash: sum, BodyVersion: bodyVersion,
	}}
	call.Stored = engine.StoredBytes(who.Client, call.Row.Document)
	if c.c.Work && p.Traits().ClientReference {
		call.Grant = c.engine.Grant(name)
	}
	return answer(c.desk.Create(ctx, call))
}

// answer is what a client is told of a row.
func answer(row *store.PaymentRow, replayed bool, err error) (Created, error) {
	if err != nil {
		return Created{}, err
	}
	if row.ExpiresAt != row.CreatedAt+row.ApprovalWindow {
		row = row.Fresh() // the clock was set back; what a repeated call is told goes by its own time
	}
	return Created{Payment: &row.Payment, Replayed: replayed}, nil
}

// creation is one create call on its way through the batch.
type creation = engine.CreateCall[*store.PaymentRow]

// write is the one commit of a batch of creates. It reads nothing first: the
// index of idempotency keys decides what is new.
func (c *Collector) write(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, calls []*creation) error {
	rows, steps := make([]*store.PaymentRow, 0, len(calls)), make([]*store.Step, 0, len(calls))
	for _, call := range calls {
		stamp(call, heads[call.Row.ClientID].Tick(), tx.Now())
		rows, steps = append(rows, call.Row), append(steps, &call.Step)
	}
	inserted, err := tx.InsertPayments(ctx, heads, rows, steps)
	if err != nil {
		return err
	}
	return c.finishCreates(ctx, tx, heads, calls, inserted)
}

// stamp gives a new payment its time, and with it its id and its first step.
// What is due, how long a lease lasts and when the window ends goes by the clock
// alone: a client's own time runs ahead of it when the clock was set back.
func stamp(call *creation, at, now till.Time) {
	p := call.Row
	p.ID = till.NewID(at)
	p.CreatedAt, p.UpdatedAt, p.ExpiresAt = at, at, engine.WindowFrom(at, now)+p.ApprovalWindow
	call.Step = store.Step{ClientID: p.ClientID, SubjectID: p.ID, Kind: store.KindPayment, Lane: store.Lane(p.Connection, store.OpSubmit), DueAt: now}
	if call.Grant != nil {
		call.Grant.Lease(&call.Step, now)
		call.Step.Lane = store.Lane(p.Connection, store.OpCheck)
	}
	call.Tried()
}

// finishCreates writes what follows from the rows that are really new, and
// reads back the others.
func (c *Collector) finishCreates(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, calls []*creation, inserted []bool) error {
	var counts store.Counts
	var sends []*store.Attempt
	for i, call := range calls {
		p := call.Row
		if !inserted[i] {
			found, err := tx.PaymentByKey(ctx, p.ClientID, call.Key)
			if err != nil {
				return err
			}
			call.Found(found, engine.PaymentTable.Fresh)
			continue
		}
		counts.AddPayment(&p.Payment, till.Pending, 1)
		counts.AddStored(p.ClientID, p.CreatedAt, call.Stored)
		if call.Grant != nil {
			sends = append(sends, call.Grant.Submission(&call.Step, c.ReferenceOf(&p.Payment)))
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
