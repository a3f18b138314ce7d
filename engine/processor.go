package engine

import (
	"context"
	"log/slog"
	"time"

	"till"
	"till/internal/batch"
	"till/internal/request"
	"till/internal/seal"
	"till/internal/trace"
	"till/meter"
	"till/provider"
	"till/store"
)

// Config configures a Processor.
type Config struct {
	Store *store.Store
	// Secret is the root of the installation's secret. References derive from it, so it must
	// never change.
	Secret []byte
	// Ring has the generations that callback tokens derive from; nil means one, which is
	// Secret.
	Ring *seal.Ring
	// Connections are the configured operators, by name.
	Connections map[string]provider.Provider
	// Routes says which of them a new payment or payout may take.
	Routes Routes
	// Markets returns what the operator of a connection says that its account may do, nil if it
	// has said nothing; nil: none does. It reads memory only.
	Markets func(connection string) provider.Markets
	// Limits are what the configuration says about single connections.
	Limits map[string]Limits
	// CallbackBase is the address where operators reach us, "" if they cannot. The
	// connection and a token are appended.
	CallbackBase string
	// Hosts are the names of this service: clients do not send customers back to them.
	Hosts []string
	// AcceptOnly says that this instance only accepts, and leaves sending and checking to
	// others.
	AcceptOnly bool
	// Slots is how many calls to operators run at once; 0 means 512.
	Slots int
	// PollInterval is how long another instance's new step, or an expired lease, may wait
	// to be noticed; 0 means 250 ms, and 1250 ms on a distributed database.
	PollInterval time.Duration
	// Lease is how long a claimed step belongs to its holder; 0 means Lease, and so does more.
	// A test that kills instances sets less, to wait less.
	Lease time.Duration
	// HealthInterval is how often instances share operators' health; 0 means a second.
	HealthInterval time.Duration
	// MaxBatch is how many creates share a commit; 0 means 512. A benchmark sets 1, to show
	// what sharing gains.
	MaxBatch int
	// LogEnded is how many payments and payouts that end as planned share one line of the
	// log; 0 means that each has one. Troubled ones always have one.
	LogEnded int
	Refunds  Refunds       // where refunds go; of payouts
	Journal  Journal       // nil: creates are in the database only
	Meter    *meter.Meter  // nil: nothing is counted
	Tracer   *trace.Tracer // nil: nothing is traced
	Log      *slog.Logger  // nil: nothing is logged
}

// Refunds says what refunds depend on besides connections and routes.
type Refunds struct {
	// Origins are the connections that collect, on this instance. A refund goes back the way
	// its payment came, so an instance without that connection makes none.
	Origins map[string]Origin
	// Retired are connections that collected and are gone for good: a refund of their payments
	// takes the route of payouts.
	Retired map[string]bool
	// MaxAge is how old a payment may be; 0 means 90 days. Numbers are given to other people
	// after some months without use.
	MaxAge time.Duration
}

// Origin is the side of a connection that collects.
type Origin struct {
	Fingerprint  string
	PayerUnknown bool // Traits.PayerUnknown
	Refunds      RefundBy
}

// RefundBy says by which way the payments of a connection are given back.
type RefundBy string

// The ways. Without one, it is the operator's own call where that never moves more than the
// payment, and a payout elsewhere.
const (
	RefundByOperator RefundBy = "operator" // by the operator's own call, where it has one
	RefundByPayout   RefundBy = "payout"   // by a transfer
	RefundNever      RefundBy = "off"
)

// OriginsOf returns the connections that collect. refunds is what the configuration says of
// some of them.
func OriginsOf(payments, payouts map[string]provider.Provider, refunds map[string]RefundBy) map[string]Origin {
	out := make(map[string]Origin, len(payments))
	for name, p := range payments {
		out[name] = Origin{p.Fingerprint(), p.Traits().PayerUnknown, refundBy(refunds[name], payouts[name])}
	}
	return out
}

// refundBy returns what a connection does, given what the configuration says and its side that
// pays out.
func refundBy(configured RefundBy, payouts provider.Provider) RefundBy {
	if configured != "" {
		return configured
	}
	if _, ok := payouts.(provider.Refunder); ok && payouts.Traits().RefundsBounded {
		return RefundByOperator
	}
	return RefundByPayout
}

// Limits bounds the calls to one connection. A zero field means what the operator's Traits
// say.
type Limits struct {
	Calls         int           // under way at once, of this instance
	Submit, Check provider.Rate // of all instances together
}

func (c *Config) setDefaults() {
	if c.Slots <= 0 {
		c.Slots = defaultSlots
	}
	if c.PollInterval <= 0 {
		c.PollInterval = defaultPollInterval
		if c.Store.Distributed() {
			c.PollInterval = distributedPollInterval
		}
	}
	if c.Lease <= 0 || c.Lease > Lease {
		c.Lease = Lease
	}
	if c.HealthInterval <= 0 {
		c.HealthInterval = defaultHealthInterval
	}
	if c.MaxBatch <= 0 {
		c.MaxBatch = maxCreateBatch
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// Processor carries payments, or payouts, from the create call to the end. Its Worker
// claims due steps, sends and checks. The Processor itself accepts create calls and
// callbacks, and records answers. It is safe for concurrent use.
type Processor[R Subject] struct {
	*Worker
	table  *Table[R]
	rules  func(b *Recording[R]) Rules[R]
	insert Insert[R]

	creates       *batch.Split[*CreateCall[R]] // by node
	callbacks     *batch.Split[*callback]      // by node
	keptCallbacks keptCallbacks
}

// Insert writes new rows while their clients' heads are locked. For a call whose
// idempotency key is taken, it calls AdoptExisting instead.
type Insert[R Subject] func(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, calls []*CreateCall[R]) error

// New returns a Processor for the rows of a table. Close it when nothing calls it any more.
func New[R Subject](c Config, table *Table[R], rules func(b *Recording[R]) Rules[R], insert Insert[R]) *Processor[R] {
	c.setDefaults()
	p := &Processor[R]{table: table, rules: rules, insert: insert}
	p.Worker = newWorker(c, table.Kind, p)
	p.creates = batch.NewSplit(c.MaxBatch, maxCreateQueue, func(ctx context.Context, call *CreateCall[R]) int {
		return c.Store.Node(ctx, call.Row.Subject().Ref.Client)
	}, p.runCreates)
	p.callbacks = batch.NewSplit(maxCallbackBatch, maxCallbackQueue, func(ctx context.Context, w *callback) int {
		return c.Store.Node(ctx, w.ref.Client)
	}, func(ctx context.Context, _ *batch.Batcher[*callback], wakes []*callback) { p.runCallbacks(ctx, wakes) })
	p.creates.Observe(c.Meter.NewBatch(createBatchName(table.Kind), p.creates.Len))
	p.callbacks.Observe(c.Meter.NewBatch("wake", p.callbacks.Len))
	return p
}

// Close finishes what was begun, or until ctx ends: it writes queued creates and callbacks,
// and records the answers of calls under way. Call it after Run has returned and nothing
// calls Create any more.
func (p *Processor[R]) Close(ctx context.Context) error {
	p.creates.Close()
	p.callbacks.Close()
	return p.drain(ctx)
}

// load returns the instructions of the named rows that exist.
func (p *Processor[R]) load(ctx context.Context, tx *store.Tx, refs []store.Ref) (map[store.Ref]*Instruction, error) {
	rows, err := p.table.Read(ctx, tx, refs)
	if err != nil {
		return nil, err
	}
	jobs := make(map[store.Ref]*Instruction, len(rows))
	for ref, row := range rows {
		jobs[ref] = p.Instruction(row)
	}
	if err := p.loadFlows(ctx, tx, jobs); err != nil {
		return nil, err
	}
	return jobs, p.loadOriginals(ctx, tx, jobs)
}

// loadOriginals reads the payments of refunds that name them to the operator.
func (p *Processor[R]) loadOriginals(ctx context.Context, tx *store.Tx, jobs map[store.Ref]*Instruction) error {
	var refs []store.Ref
	for ref, j := range jobs {
		if j.Road == till.RoadRefund {
			refs = append(refs, store.Ref{Client: ref.Client, ID: j.Request.PaymentID})
		}
	}
	if len(refs) == 0 {
		return nil
	}
	payments, err := tx.Payments(ctx, refs)
	if err != nil {
		return err
	}
	for ref, j := range jobs {
		if of := payments[store.Ref{Client: ref.Client, ID: j.Request.PaymentID}]; of != nil && j.Road == till.RoadRefund {
			j.Request.Refund = new(p.Original(&of.Payment))
		}
	}
	return nil
}

// Original returns a payment as its operator knows it, to name it in a refund.
func (w *Worker) Original(p *till.Payment) provider.Original {
	return provider.Original{Reference: w.paymentKeys.Reference(p.ClientID, p.IdempotencyKey), Method: p.Method, Country: p.Country, Phone: knownPhone(p.Phone), Amount: p.Amount}
}

// extend moves the end of a row's window, because it is sent again.
func (p *Processor[R]) extend(ctx context.Context, tx *store.Tx, ref store.Ref, until till.Time) error {
	return p.table.Extend(ctx, tx, ref, until)
}

// Instruction returns what a Worker must know to act on a row.
func (p *Processor[R]) Instruction(row R) *Instruction {
	s := row.Subject()
	j := &Instruction{
		Ref: s.Ref, Noun: s.Noun, Connection: s.Connection, Fingerprint: s.Fingerprint, ExpiresAt: s.ExpiresAt, Window: s.Window, Final: s.Final, Road: s.Road,
		Request: provider.Request{
			Client: s.Ref.Client, ID: s.Ref.ID, Reference: p.Reference(s.Ref.Client, s.IdempotencyKey),
			Method: s.Method, Country: s.Country, Phone: s.Phone, Amount: s.Amount,
			Description: request.Description(s.Document), ExpiresAt: s.ExpiresAt, PaymentID: s.PaymentID,
		},
	}
	if flowOf(s) == till.FlowRedirect {
		j.Request.ReturnURL = request.MemberText(s.Document, "return_url")
	}
	if p.table.Lean != nil {
		j.Row = p.table.Lean(row)
	}
	if p.c.CallbackBase != "" {
		j.Request.CallbackURL = p.c.CallbackBase + "/" + s.Connection + "/" + p.keys.CallbackToken(s.Connection, s.Ref)
	}
	return j
}
