package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"till"
	"till/internal/batch"
	"till/internal/request"
	"till/internal/trace"
	"till/provider"
	"till/store"
)

// The limits of the queues in front of the database. A create that finds the queue full
// gets 503 and does not wait.
const (
	maxCreateBatch   = 512
	maxCreateQueue   = 4096
	maxCallbackBatch = 256
	maxCallbackQueue = 4096
)

// Client is the maker of a create call: the tenant, the methods it may use, and their fees.
type Client struct {
	*till.Client
	Enabled func(method string) bool
	Fees    []till.Fee
	Actor   string // its name in the audit log
	Full    error  // the error for each new row if the client may store no more; nil if it may
	Caller  trace.Caller
}

// CreateCall is one create call, from the checks to the commit.
type CreateCall[R Subject] struct {
	Client Client
	*request.Parsed
	Party request.Party
	// Hash returns the body's hash under a version of the list of members, false if this
	// program does not know the version.
	Hash func(version int) ([32]byte, bool)

	Row  R
	Body any // what insert completes the row from; nil: it is complete
	// CheckFlow checks what a market's flow needs; nil: nothing.
	CheckFlow func(v *request.Validator, k *till.Market)
	Code      provider.OneTimeCode // in FlowCode
	Permit    *SendPermit          // nil: the row waits for a claim
	Step      store.Step
	Audit     *store.AuditRow // who requested it and why, for the audit log; insert fills in the rest

	came till.Time // for the trace; zero: there is none

	// Stored is how many bytes it stores, if they are counted. Accept sets it.
	Stored int64

	// Set by the batch.
	tries    []try[R] // one for each time it was written, committed or not
	existing R
	err      error
}

// try is a row and its step as they were written once.
type try[R Subject] struct {
	id   till.ID
	step store.Step
}

// RecordTry notes that the call is about to be written with its row and step.
func (call *CreateCall[R]) RecordTry() {
	call.tries = append(call.tries, try[R]{call.Row.Subject().Ref.ID, call.Step})
}

// AdoptExisting says that the call's key has made a row before. The row is the call's own
// if an earlier try wrote it and the outcome of that commit was unknown.
func (call *CreateCall[R]) AdoptExisting(row R, fresh func(R) R) {
	for _, t := range call.tries {
		if t.id == row.Subject().Ref.ID {
			call.Row, call.Step = fresh(row), t.step
			return
		}
	}
	call.existing = row
}

// Reject says that the call cannot be served. Nothing is written for it.
func (call *CreateCall[R]) Reject(err error) { call.err = err }

// begin clears the decision of an earlier run of the transaction.
func (call *CreateCall[R]) begin() {
	var none R
	call.err, call.existing = nil, none
}

// made reports whether the call has made a row.
func (call *CreateCall[R]) made() bool {
	var none R
	return call.err == nil && call.existing == none
}

// Admit decides whether a call is written, and for which connection. It applies the rules
// that may change over time, after those that may not, whose mistakes are in v. If
// connection is "", the other results are the answer: a rejection, or a replay.
func (p *Processor[R]) Admit(ctx context.Context, call *CreateCall[R], v *request.Validator) (connection string, row R, replayed bool, err error) {
	lasting := len(v.Fields)
	names := p.Routed(call.Client.Client, call.Method, call.Country, call.Currency)
	call.CheckMarket(v, request.Market{
		Enabled: call.Client.Enabled, Routed: len(names) > 0,
		Leads: func(method, country, currency string) bool {
			return len(p.Routed(call.Client.Client, method, country, currency)) > 0
		},
		Flow: call.CheckFlow,
	}, call.Party)
	switch {
	case lasting > 0:
		err = v.Refusal()
	case len(v.Fields) > 0:
		row, replayed, err = p.replayOrReject(ctx, call, v.Refusal())
	case call.Client.Full != nil:
		row, replayed, err = p.replayOrReject(ctx, call, call.Client.Full)
	default:
		return p.chooseConnection(ctx, call, names)
	}
	return "", row, replayed, err
}

// Accept writes the call with the batch's one commit. It returns the row as it was created,
// and whether an earlier call made it.
func (p *Processor[R]) Accept(ctx context.Context, call *CreateCall[R]) (row R, replayed bool, err error) {
	// The call belongs to the batch from here on. A client that hangs up must not leave a
	// slot taken.
	var none R
	call.Stored = storedBytes(call.Client.Client, call.Row.Subject().Document)
	if p.c.Tracer != nil {
		call.came = p.c.Store.Now()
	}
	err = p.creates.Do(context.WithoutCancel(ctx), call)
	switch {
	case errors.Is(err, batch.ErrFull), errors.Is(err, batch.ErrClosed):
		if call.Permit != nil {
			call.Permit.Return()
		}
		return p.replayOrReject(ctx, call,
			till.Errorf(till.CodeServiceUnavailable, "too many requests are waiting; try again with the same key"))
	case err != nil:
		return none, false, err
	case call.err != nil:
		return none, false, call.err
	case call.existing != none:
		return p.replay(call.existing, call.Hash)
	}
	return call.Row, false, nil
}

// runCreates writes a batch of creates in one commit. If that fails, it writes each alone,
// so that one bad call fails by itself. A call whose caller has gone is still served: the
// row exists, so it is sent.
func (p *Processor[R]) runCreates(ctx context.Context, own *batch.Batcher[*CreateCall[R]], calls []*CreateCall[R]) {
	defer func() { // also after a panic
		for _, call := range calls {
			if call.Permit != nil {
				call.Permit.Return()
			}
		}
	}()
	began := p.c.Store.Now()
	err := p.createBatch(ctx, own, &calls)
	if errors.Is(err, store.ErrUnknownCommit) {
		err = p.createBatch(ctx, nil, &calls) // rows that exist are adopted
	}
	away := errors.Is(err, store.ErrUnavailable) || errors.Is(err, errJournal)
	for _, call := range calls {
		if err != nil && !away && len(calls) > 1 {
			if alone := p.createBatch(ctx, nil, &[]*CreateCall[R]{call}); alone != nil {
				call.err = p.Unavailable(p.table.Name()+" not created", alone)
			}
		} else if err != nil {
			call.err = p.Unavailable(p.table.Name()+"s not created", err)
		}
	}
	p.journalCommitted(calls)
	p.created(calls, began)
	unclaimed := false
	for _, call := range calls {
		switch {
		case call.Permit == nil:
			unclaimed = unclaimed || call.made()
		case call.made():
			j := p.Instruction(call.Row)
			j.Request.Code = call.Code
			call.Permit.Start(ctx, &call.Step, j)
		}
	}
	if unclaimed {
		p.waker.Wake()
	}
}

// createBatch is the one commit of a batch of creates. With the batch's own Batcher, it adds
// calls of the same clients that arrived while it waited for their heads.
func (p *Processor[R]) createBatch(ctx context.Context, own *batch.Batcher[*CreateCall[R]], batch *[]*CreateCall[R]) error {
	clients := make([]till.ID, len(*batch))
	for i, call := range *batch {
		clients[i] = call.Row.Subject().Ref.Client
	}
	return p.c.Store.Update(ctx, func(tx *store.Tx) (err error) {
		defer recoverToError(&err) // a call that panics must not fail the others
		heads, suspended, err := tx.LockMakers(ctx, clients)
		if err != nil {
			return err
		}
		if own != nil {
			*batch = append(slices.Clip(*batch), own.TakeQueued(func(next []*CreateCall[R]) bool {
				return !slices.ContainsFunc(next, func(call *CreateCall[R]) bool { return heads[call.Row.Subject().Ref.Client] == nil })
			})...)
		}
		for _, call := range *batch {
			if heads[call.Row.Subject().Ref.Client] == nil {
				return till.Errorf(till.CodeClientNotFound, "there is no such client")
			}
			call.begin()
		}
		calls, err := p.rejectSuspended(ctx, tx, suspended, *batch)
		if err != nil || len(calls) == 0 {
			return err
		}
		if err := p.insert(ctx, tx, heads, calls); err != nil {
			return err
		}
		return p.journalCommitting(ctx, tx, *batch)
	})
}

// rejectSuspended returns the calls of clients that are not suspended. The others make
// nothing, however they were admitted; a key that made a row before still gets its replay.
func (p *Processor[R]) rejectSuspended(ctx context.Context, tx *store.Tx, suspended map[till.ID]bool, calls []*CreateCall[R]) ([]*CreateCall[R], error) {
	if len(suspended) == 0 {
		return calls, nil
	}
	var none R
	var active []*CreateCall[R]
	for _, call := range calls {
		if !suspended[call.Client.ID] {
			active = append(active, call)
			continue
		}
		row, err := p.table.ByKey(ctx, tx, call.Client.ID, call.Key)
		if err != nil {
			return nil, err
		}
		if row == none {
			call.Reject(&till.Error{Code: till.CodeClientSuspended})
			continue
		}
		call.AdoptExisting(row, p.table.AsCreated)
	}
	return active, nil
}

// Unavailable turns a database error into the error that a client sees. It logs the cause,
// which stays in the error and which the client is not shown.
func (p *Processor[R]) Unavailable(doing string, err error) error {
	var e *till.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	}
	p.c.Log.Error(doing, "error", err)
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownCommit) {
		return fmt.Errorf("%w: %w", till.Errorf(till.CodeServiceUnavailable, "the database is away; try again with the same key"), err)
	}
	return err
}

// replayOrReject looks up the key before a rejection whose rule may have changed since the
// row was made. An existing row always gets its replay.
func (p *Processor[R]) replayOrReject(ctx context.Context, call *CreateCall[R], refusal error) (R, bool, error) {
	var row, none R
	err := p.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		row, err = p.table.ByKey(ctx, tx, call.Client.ID, call.Key)
		return err
	})
	switch {
	case err != nil:
		return none, false, p.Unavailable("idempotency key not looked up", err)
	case row == none:
		return none, false, refusal
	}
	return p.replay(row, call.Hash)
}

// chooseConnection picks the connection of a new row: the first healthy one, in order, whose
// operator takes the amount. It skips one whose operator has closed the market, and one that
// does not answer now, before a byte is sent to it. From time to time such a
// connection gets a row as a probe, or its recovery would never be noticed. If name is "",
// the other results are the answer: a rejection, or a replay.
func (p *Processor[R]) chooseConnection(ctx context.Context, call *CreateCall[R], names []string) (name string, row R, replayed bool, err error) {
	var none R
	names, outside := p.fitting(call, names)
	if outside != nil {
		row, replayed, err = p.replayOrReject(ctx, call, outside)
		return "", row, replayed, err
	}
	refusal := till.Errorf(till.CodeMethodUnavailable, "the method cannot be reached just now")
	looked := false
	for _, name := range names {
		if p.closedHere(call, name) {
			if refusal.RetryAfter == 0 {
				refusal.Detail, refusal.RetryAfter = closedDetail, closedRetry
			}
			continue
		}
		if p.passing(name) {
			return name, none, false, nil
		}
		if wait := p.retryAfter(name); refusal.RetryAfter == 0 || wait < refusal.RetryAfter {
			refusal.RetryAfter = wait
		}
		refusal.Detail = "the operator does not answer just now"
		if !p.canProbe(name) {
			continue
		}
		// A key that made a row before is no new row, and must not use up a probe.
		if !looked {
			if row, replayed, err := p.replayOrReject(ctx, call, refusal); err != error(refusal) {
				return "", row, replayed, err
			}
			looked = true
		}
		if ok, _ := p.takeProbe(name); ok {
			return name, none, false, nil
		}
	}
	if looked {
		return "", none, false, refusal
	}
	row, replayed, err = p.replayOrReject(ctx, call, refusal)
	return "", row, replayed, err
}

// replay answers a key that made a row before: with the creation answer if the body is the
// same, otherwise with CodeKeyReused.
func (p *Processor[R]) replay(row R, hash func(version int) ([32]byte, bool)) (R, bool, error) {
	var none R
	s := row.Subject()
	sum, ok := p.keys.BodyHash(hash, s.BodyVersion)
	if !ok {
		// This instance is about to stop; a newer one knows the version.
		p.c.Log.Warn("row of a newer release not replayed", p.table.Name(), s.Ref.ID)
		return none, false, till.Errorf(till.CodeServiceUnavailable, "another instance has to answer this; try again with the same key")
	}
	if sum != s.BodyHash {
		e := till.Errorf(till.CodeKeyReused, "this idempotency_key made %s %s with another body; another body needs another key", s.Noun, s.Ref.ID)
		switch s.Noun {
		case till.NounRefund:
			e.RefundID = s.Ref.ID
		case till.NounPayout:
			e.PayoutID = s.Ref.ID
		default:
			e.PaymentID = s.Ref.ID
		}
		return none, false, e
	}
	return p.table.AsCreated(row), true, nil
}

// storedRows is about how many bytes a payment or payout takes besides its document: its
// rows in all tables over its life, as measured (docs/guide/growing.md).
const storedRows = 2 << 10

// storedBytes returns how many bytes a new payment or payout of a client stores. Only those
// of test clients are counted and limited.
func storedBytes(c *till.Client, document []byte) int64 {
	if c.Mode != till.Test {
		return 0
	}
	return storedRows + int64(len(document))
}
