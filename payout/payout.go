package payout

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"till"
	"till/engine"
	"till/internal/order"
	"till/ledger"
	"till/provider"
	"till/store"
)

// Config is what a Paymaster is made of.
type Config struct {
	Store *store.Store
	// Secret is the installation's: references and callback tokens derive
	// from it, so it must never change.
	Secret []byte
	// Connections are the operators that payouts can be sent to.
	Connections map[string]provider.Provider
	// Routes says which of them a new payout may take.
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
	Log  *slog.Logger
}

// Paymaster accepts payouts and records what becomes of them.
type Paymaster struct {
	c      Config
	engine *engine.Worker
	desk   *engine.Intake[*store.PayoutRow]
}

// New returns a Paymaster. Close it when nothing calls it any more.
func New(c Config) *Paymaster {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Routes == nil {
		c.Routes = engine.ByMode(c.Route)
	}
	m := &Paymaster{c: c}
	m.engine = engine.New(engine.Config{
		Kind: store.KindPayout, Secret: c.Secret, Store: c.Store, Connections: c.Connections, Subject: m,
		Slots: c.Slots, Look: c.Look, Pulse: c.Pulse, Limits: c.Limits, Idle: !c.Work, Log: c.Log,
	})
	m.desk = engine.NewDesk(m.engine, &engine.PayoutTable, engine.DeskConfig[*store.PayoutRow]{
		Write: m.write, Job: m.job, Work: c.Work, Log: c.Log,
	})
	return m
}

// Run sends and asks until ctx ends; it returns at once if this instance
// leaves the work to others.
func (m *Paymaster) Run(ctx context.Context) {
	if m.c.Work {
		m.engine.Run(ctx)
	}
}

// Watch shares with the other instances how the operators stand, until ctx
// ends.
func (m *Paymaster) Watch(ctx context.Context) { m.engine.Watch(ctx) }

// Close finishes what was begun: queued creates are written, calls under way
// are answered and recorded, or ctx ends. Call it after Run has returned and
// nothing calls Create any more.
func (m *Paymaster) Close(ctx context.Context) error {
	m.desk.Close()
	return m.engine.Drain(ctx)
}

// Client is who asks: the tenant, which methods it may use, and what it pays.
type Client struct {
	*till.Client
	Enabled func(method string) bool
	Fees    []till.Fee // its schedule
	Actor   string     // who it is in the audit log
	Full    error      // what each new payout is refused with, because the client may store no more; nil: it may
}

// Created is the answer to Create: the payout as it was created, which is
// also what a repeated call is given.
type Created struct {
	Payout   *till.Payout
	Replayed bool
}

// Create records that a client wants a payout and reserves its money: one
// commit, nothing else, with an audit row, because money will leave on that
// word. It returns CodeValidationFailed with every mistake of the body, one
// without a route included, CodeKeyReused if the key belongs to another body,
// CodeInsufficientBalance if the wallet has less than the amount and the fee,
// CodeMethodUnavailable if its operators do not answer just now,
// CodePayoutsHeld if no new ones are taken,
// CodeServiceUnavailable if the database is away or the queue is full.
func (m *Paymaster) Create(ctx context.Context, who Client, r *Request) (Created, error) {
	var ck order.Checker
	o := r.check(&ck)
	lasting := len(ck.Fields)
	names := m.routed(who.Client, o.Method, o.Country, o.Currency)
	o.CheckCatalogue(&ck, order.Catalogue{
		Enabled: who.Enabled, Routed: len(names) > 0,
		Leads: func(method, country, currency string) bool {
			return len(m.routed(who.Client, method, country, currency)) > 0
		},
	}, r.party())
	if lasting > 0 {
		return Created{}, ck.Refusal()
	}
	if len(ck.Fields) > 0 {
		return answer(m.desk.ReplayOr(ctx, who.ID, o.Key, r.hash, ck.Refusal()))
	}
	if who.Full != nil {
		return answer(m.desk.ReplayOr(ctx, who.ID, o.Key, r.hash, who.Full))
	}
	name, row, replayed, err := m.desk.Choose(ctx, who.ID, o.Key, r.hash, names)
	if name == "" {
		return answer(row, replayed, err)
	}
	p := m.c.Connections[name]
	sum, ok := r.hash(bodyVersion)
	if !ok {
		return Created{}, fmt.Errorf("hash the body of a create call")
	}
	amount := till.Money{Minor: o.Amount, Currency: o.Currency}
	call := &creation{Key: o.Key, Hash: r.hash, Audit: &store.AuditRow{Actor: who.Actor, Cause: store.CauseOf(ctx)}, Row: &store.PayoutRow{
		Payout: till.Payout{
			ClientID: who.ID, IdempotencyKey: o.SentKey, Status: till.PayoutPending,
			Method: o.Method, Country: o.Country, Amount: amount, Fee: till.FeeFor(who.Fees, till.PayoutFee, o.Method, amount),
			Phone: o.Phone, Reference: order.Deref(r.Reference), Document: r.document(),
			Connection: name, Fingerprint: p.Fingerprint(),
			Resolution: till.Resolution{State: till.Waiting},
		},
		BodyHash: sum, BodyVersion: bodyVersion,
	}}
	call.Stored = engine.StoredBytes(who.Client, call.Row.Document)
	return answer(m.desk.Create(ctx, call))
}

// answer is what a client is told of a row.
func answer(row *store.PayoutRow, replayed bool, err error) (Created, error) {
	if err != nil {
		return Created{}, err
	}
	if row.ExpiresAt != row.CreatedAt+row.SendWindow {
		row = row.Fresh() // the clock was set back; what a repeated call is told goes by its own time
	}
	return Created{Payout: &row.Payout, Replayed: replayed}, nil
}

// creation is one create call on its way through the batch.
type creation = engine.CreateCall[*store.PayoutRow]

type purse struct {
	client   till.ID
	currency string
}

// write is the one commit of a batch of creates. The clients' heads are
// locked, so nobody else makes payouts of theirs or touches their wallets: it
// reads the keys and the wallets, and decides one call after the other against
// what the calls before it have left.
func (m *Paymaster) write(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, calls []*creation) error {
	keys, clients := make([]store.Ref, len(calls)), make([]till.ID, len(calls))
	for i, call := range calls {
		keys[i], clients[i] = store.Ref{Client: call.Row.ClientID, ID: call.Key}, call.Row.ClientID
	}
	taken, err := tx.PayoutsByKey(ctx, keys)
	if err != nil {
		return err
	}
	all, err := tx.WalletsOf(ctx, clients)
	if err != nil {
		return err
	}
	wallets := make(map[purse]*ledger.Wallet, len(all))
	for _, w := range all {
		wallets[purse{w.ClientID, w.Currency}] = w
	}
	held, err := tx.HoldsOf(ctx, clients)
	if err != nil {
		return err
	}
	d := &decided{heads: heads, used: map[*ledger.Wallet]bool{}}
	for i, call := range calls {
		if row := taken[keys[i]]; row != nil {
			call.Found(row, engine.PayoutTable.Fresh)
			continue
		}
		p := call.Row
		if len(held[p.ClientID]) > 0 {
			call.Refuse(till.Errorf(till.CodePayoutsHeld, "new payouts are held until a person releases them"))
			continue
		}
		w := wallets[purse{p.ClientID, p.Amount.Currency}]
		m.stamp(call, heads[p.ClientID].Tick(), tx.Now())
		if w == nil || w.Reserve(p.Reserve(), p.CreatedAt) != nil {
			call.Refuse(till.Errorf(till.CodeInsufficientBalance, "the wallet has less available than the payout and its fee"))
			continue
		}
		call.Tried()
		taken[keys[i]] = p
		d.add(call, w)
	}
	if len(d.rows) == 0 {
		return nil
	}
	return d.save(ctx, tx)
}

// decided is a batch of creates on its way into the database.
type decided struct {
	heads  map[till.ID]*store.Head
	rows   []*store.PayoutRow
	steps  []*store.Step
	audit  []*store.AuditRow
	used   map[*ledger.Wallet]bool
	counts store.Counts
}

// add gathers a payout whose money is reserved in a wallet.
func (d *decided) add(call *creation, w *ledger.Wallet) {
	p := call.Row
	a := *call.Audit // the call may be written once more
	a.ClientID, a.Sequence, a.At, a.SubjectID = p.ClientID, d.heads[p.ClientID].NextAudit(), p.CreatedAt, p.ID
	a.Action, a.Detail = "payout.create", fmt.Sprintf("%s reserved for %s by %s", reserved(p), till.MaskPhone(p.Phone), p.Method)
	d.used[w] = true
	d.rows, d.steps, d.audit = append(d.rows, p), append(d.steps, &call.Step), append(d.audit, &a)
	d.counts.AddPayout(&p.Payout, till.PayoutPending, 1)
	d.counts.AddStored(p.ClientID, p.CreatedAt, call.Stored)
}

// reserved says for the audit log what a payout holds of its wallet.
func reserved(p *store.PayoutRow) string {
	return till.Money{Minor: p.Reserve(), Currency: p.Amount.Currency}.Value() + " " + p.Amount.Currency
}

// save writes what was decided, in the fixed order of locks.
func (d *decided) save(ctx context.Context, tx *store.Tx) error {
	if err := tx.InsertPayouts(ctx, d.heads, d.rows, d.steps); err != nil {
		return err
	}
	wallets := make([]*ledger.Wallet, 0, len(d.used))
	for w := range d.used {
		wallets = append(wallets, w)
	}
	if err := tx.SaveWallets(ctx, wallets); err != nil {
		return err
	}
	if err := tx.InsertAudit(ctx, d.audit); err != nil {
		return err
	}
	if err := tx.Count(ctx, &d.counts); err != nil {
		return err
	}
	return tx.SaveHeads(ctx, d.heads)
}

// stamp gives a new payout its time, and with it its id and its first step,
// which nobody holds. A provider that keeps it back has it wait so much longer.
func (m *Paymaster) stamp(call *creation, at, now till.Time) {
	p := call.Row
	c := m.c.Connections[p.Connection]
	p.ID = till.NewID(at)
	p.CreatedAt, p.UpdatedAt = at, at
	window := c.Traits().ApprovalWindow
	due := now
	if h, ok := c.(provider.Delayer); ok {
		held := h.SendDelay(m.job(p).Request)
		due, window = due.Add(held), window+held
	}
	p.SendWindow = till.Time(window.Microseconds())
	p.ExpiresAt = engine.WindowFrom(at, now) + p.SendWindow
	call.Step = store.Step{ClientID: p.ClientID, SubjectID: p.ID, Kind: store.KindPayout, Lane: store.Lane(p.Connection, store.OpPayoutSubmit), DueAt: due}
}

// Offer returns what a client's payouts can have of a method.
func (m *Paymaster) Offer(client *till.Client, method *till.Method) engine.Offer {
	return m.engine.Offer(m.c.Routes, client, method)
}

// routed returns the connections that a client's payout may take.
func (m *Paymaster) routed(client *till.Client, method, country, currency string) []string {
	return m.engine.Routed(m.c.Routes, client, method, country, currency)
}
