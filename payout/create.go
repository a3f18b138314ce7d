package payout

import (
	"context"
	"fmt"

	"till"
	"till/engine"
	"till/internal/request"
	"till/ledger"
	"till/provider"
	"till/store"
	"till/store/refunds"
)

// Disburser accepts payouts and records what becomes of them.
type Disburser struct {
	*engine.Processor[*store.PayoutRow]
	c engine.Config
}

// New returns a Disburser. Close it when nothing calls it any more.
func New(c engine.Config) *Disburser {
	m := &Disburser{c: c}
	m.Processor = engine.New(c, &engine.PayoutTable, newRules, m.insert)
	return m
}

// ReferenceOf returns the reference under which a payout is submitted.
func (d *Disburser) ReferenceOf(p *till.Payout) till.ID {
	return d.Reference(p.ClientID, p.IdempotencyKey)
}

// Created is the result of Create: the payout as it was created, which a replay also gets.
type Created struct {
	Payout   *till.Payout
	Replayed bool
}

// Create records that a client wants a payout and reserves its money, in one commit with an
// audit row. It returns CodeValidationFailed with all mistakes of the body, a missing route
// included, and CodeKeyReused if the key belongs to another body. It returns
// CodeInsufficientBalance if the wallet has less than the amount and the fee, and
// CodeMethodUnavailable if the method's operators do not answer now. It returns
// CodePayoutsHeld while new payouts are held, and CodeServiceUnavailable if the database is
// unavailable or the queue is full.
func (d *Disburser) Create(ctx context.Context, who engine.Client, r *Request) (Created, error) {
	var v request.Validator
	call := &createCall{Client: who, Parsed: r.check(&v), Party: r.party(), Hash: r.hash}
	name, row, replayed, err := d.Admit(ctx, call, &v)
	if name == "" {
		return createdFrom(row, replayed, err)
	}
	sum, ok := r.hash(bodyVersion)
	if !ok {
		return Created{}, fmt.Errorf("hash the body of a create call")
	}
	amount := till.Money{Minor: call.Amount, Currency: call.Currency}
	call.Row = &store.PayoutRow{
		Payout: till.Payout{
			ClientID: who.ID, IdempotencyKey: call.SentKey, Status: till.PayoutPending,
			Method: call.Method, Country: call.Country, Amount: amount, Fee: till.FeeFor(who.Fees, till.PayoutFee, call.Method, amount),
			Phone: call.Phone, Reference: request.TextOf(r.Reference), Document: r.document(),
			Connection: name, Fingerprint: d.c.Connections[name].Fingerprint(),
			Resolution: till.Resolution{State: till.Waiting},
		},
		BodyHash: sum, BodyVersion: bodyVersion,
	}
	call.Audit = &store.AuditRow{Actor: who.Actor, Cause: store.CauseOf(ctx)}
	return createdFrom(d.Accept(ctx, call))
}

// createdFrom returns what a client sees of a row.
func createdFrom(row *store.PayoutRow, replayed bool, err error) (Created, error) {
	if err != nil {
		return Created{}, err
	}
	return Created{Payout: &row.Payout, Replayed: replayed}, nil
}

type createCall = engine.CreateCall[*store.PayoutRow]

type walletKey struct {
	client   till.ID
	currency string
}

// insert is the one commit of a batch of creates. The clients' heads are locked, so no
// other transaction creates their payouts or changes their wallets. It reads the keys and
// the wallets, and decides one call after the other with what the earlier calls have left.
func (d *Disburser) insert(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, calls []*createCall) error {
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
	wallets := make(map[walletKey]*ledger.Wallet, len(all))
	for _, w := range all {
		wallets[walletKey{w.ClientID, w.Currency}] = w
	}
	held, err := tx.HoldsOf(ctx, clients)
	if err != nil {
		return err
	}
	originals, err := readOriginals(ctx, tx, calls)
	if err != nil {
		return err
	}
	batch := &createBatch{heads: heads, used: map[*ledger.Wallet]bool{}, originals: originals}
	for i, call := range calls {
		if row := taken[keys[i]]; row != nil {
			call.AdoptExisting(row, engine.PayoutTable.AsCreated)
			continue
		}
		p := call.Row
		if p.IsRefund() {
			if err := d.admitRefund(call, &batch.originals, tx.Now()); err != nil {
				call.Reject(err)
				continue
			}
		}
		w := wallets[walletKey{p.ClientID, p.Amount.Currency}]
		if err := mayReserve(p, w, len(held[p.ClientID]) > 0); err != nil {
			call.Reject(err)
			continue
		}
		d.stamp(call, heads[p.ClientID].NextTime(), tx.Now())
		if w == nil || w.Reserve(p.Reserve(), p.CreatedAt) != nil {
			call.Reject(till.Errorf(till.CodeInsufficientBalance, "the wallet has less available than the payout and its fee"))
			continue
		}
		call.RecordTry()
		taken[keys[i]] = p
		batch.add(call, w)
	}
	if len(batch.rows) == 0 {
		return nil
	}
	return batch.save(ctx, tx)
}

// mayReserve returns nil unless new payouts are held. A refund is told first that the wallet
// lacks its money.
func mayReserve(p *store.PayoutRow, w *ledger.Wallet, held bool) error {
	switch {
	case w != nil && w.Broken:
		return till.Errorf(till.CodePayoutsHeld, "new payouts are held until a person has repaired the wallet")
	case p.IsRefund() && (w == nil || w.Available() < p.Reserve()):
		return till.Errorf(till.CodeInsufficientBalance, "the wallet has less available than the refund and its fee")
	case held:
		return till.Errorf(till.CodePayoutsHeld, "new payouts are held until a person releases them")
	}
	return nil
}

// createBatch is the rows of a batch of creates.
type createBatch struct {
	heads     map[till.ID]*store.Head
	rows      []*store.PayoutRow
	steps     []*store.Step
	audit     []*store.AuditRow
	used      map[*ledger.Wallet]bool
	counts    store.CounterDelta
	originals originals
}

// add collects a payout whose money is reserved in a wallet.
func (b *createBatch) add(call *createCall, w *ledger.Wallet) {
	p := call.Row
	a := *call.Audit // a copy: the call may be written again
	a.ClientID, a.Sequence, a.At, a.SubjectID = p.ClientID, b.heads[p.ClientID].NextAudit(), p.CreatedAt, p.ID
	a.Action, a.Detail = act(p, actionCreate, actionCreateRefund), fmt.Sprintf("%s reserved for %s by %s", reserved(p), till.MaskPhone(p.Phone), p.Method)
	b.used[w] = true
	b.originals.add(p)
	b.rows, b.steps, b.audit = append(b.rows, p), append(b.steps, &call.Step), append(b.audit, &a)
	b.counts.AddPayout(&p.Payout, till.PayoutPending, 1)
	b.counts.AddStored(p.ClientID, p.CreatedAt, call.Stored)
}

// The acts for the audit log, of payouts and of refunds.
const (
	actionCreate        = "payout.create"
	actionCreateRefund  = "refund.create"
	actionCancel        = "payout.cancel"
	actionCancelRefund  = "refund.cancel"
	actionRelease       = "payout.release"
	actionReleaseRefund = "refund.release"
)

// act returns the one of two acts that is about a payout, or about a refund.
func act(p *store.PayoutRow, payout, refund string) string {
	if p.IsRefund() {
		return refund
	}
	return payout
}

// reserved describes a payout's reserve for the audit log.
func reserved(p *store.PayoutRow) string {
	return till.Money{Minor: p.Reserve(), Currency: p.Amount.Currency}.Value() + " " + p.Amount.Currency
}

// save writes the batch in the lock order.
func (b *createBatch) save(ctx context.Context, tx *store.Tx) error {
	if err := tx.InsertPayouts(ctx, b.heads, b.rows, b.steps); err != nil {
		return err
	}
	if err := refunds.Open(tx, b.rows, b.originals.amounts()); err != nil {
		return err
	}
	wallets := make([]*ledger.Wallet, 0, len(b.used))
	for w := range b.used {
		wallets = append(wallets, w)
	}
	if err := tx.SaveWallets(ctx, wallets); err != nil {
		return err
	}
	if err := tx.InsertAudit(ctx, b.audit); err != nil {
		return err
	}
	if err := tx.AddCounts(ctx, &b.counts); err != nil {
		return err
	}
	return tx.SaveHeads(ctx, b.heads)
}

// stamp sets a new payout's time, its id and its first step, without a lease. A provider
// may delay the step.
func (d *Disburser) stamp(call *createCall, at, now till.Time) {
	p := call.Row
	c := d.c.Connections[p.Connection]
	p.ID = till.NewID(at)
	p.CreatedAt, p.UpdatedAt = at, at
	window := c.Traits().ApprovalWindow
	due := now
	if h, ok := c.(provider.Delayer); ok {
		held := h.SendDelay(d.Instruction(p).Request)
		due, window = due.Add(held), window+held
	}
	p.SendWindow = window
	p.ExpiresAt = engine.WindowFrom(at, now).Add(window)
	call.Step = store.Step{ClientID: p.ClientID, SubjectID: p.ID, Kind: till.SubjectPayout, Lane: store.Lane(p.Connection, store.OpPayoutSubmit), DueAt: due}
}
