package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"till"
	"till/internal/batch"
	"till/store"
)

// Intake is where new payments, or new payouts, are taken in, and where
// callbacks for them arrive: many callers, one commit.
type Intake[R Subject] struct {
	engine  *Worker
	noun    *Table[R]
	c       DeskConfig[R]
	creates *batch.Batcher[*CreateCall[R]]
	wakes   *batch.Batcher[*wake]
	kept    keptWakes
}

// DeskConfig is what a Desk is made of.
type DeskConfig[R Subject] struct {
	// Write writes new rows under the locks of their clients' heads. For one
	// whose key is taken it calls Found instead.
	Write func(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, calls []*CreateCall[R]) error
	// Job is what the engine must know to act on a row.
	Job func(row R) *Job
	// Work says that this instance sends and asks.
	Work bool
	// MaxBatch is how many creates share a commit at most; 0 means 512.
	MaxBatch int
	Log      *slog.Logger
}

// The limits of the queues in front of the database. A create that finds the
// queue full is answered 503, not kept waiting.
const (
	maxCreateBatch = 512
	maxCreateQueue = 4096
	maxWakeBatch   = 256
	maxWakeQueue   = 4096
)

// NewDesk returns a desk in front of an engine. Close it when nothing calls
// it any more.
func NewDesk[R Subject](e *Worker, noun *Table[R], c DeskConfig[R]) *Intake[R] {
	if c.MaxBatch <= 0 {
		c.MaxBatch = maxCreateBatch
	}
	d := &Intake[R]{engine: e, noun: noun, c: c}
	d.creates = batch.New(c.MaxBatch, maxCreateQueue, d.runCreates)
	d.wakes = batch.New(maxWakeBatch, maxWakeQueue, d.runWakes)
	return d
}

// Close writes what is queued.
func (d *Intake[R]) Close() {
	d.creates.Close()
	d.wakes.Close()
}

// CreateCall is one create call on its way through the batch.
type CreateCall[R Subject] struct {
	Row R
	Key till.ID
	// Hash returns the hash of the body under a version of the list of
	// members, false if this program does not know the version.
	Hash  func(version int) ([32]byte, bool)
	Grant *Grant // nil: it waits to be claimed
	Step  store.Step
	// Stored is how many bytes it makes us keep, where that is counted.
	Stored int64
	Audit  *store.AuditRow // who asked and why, where the audit log is told; the rest of it is the batch's

	// Set by the batch.
	tries    []try[R] // one for each time it was written, whether or not that lasted
	existing R
	err      error
}

// try is a row as it was written once, by its id, with its step.
type try[R Subject] struct {
	id   till.ID
	step store.Step
}

// Tried notes that the call is about to be written as its row and step say.
func (call *CreateCall[R]) Tried() {
	call.tries = append(call.tries, try[R]{call.Row.Subject().Ref.ID, call.Step})
}

// Found tells that the call's key has made a row before. It is the call's own
// if an earlier try of it wrote it, whose commit was answered by nobody.
func (call *CreateCall[R]) Found(row R, fresh func(R) R) {
	for _, t := range call.tries {
		if t.id == row.Subject().Ref.ID {
			call.Row, call.Step = fresh(row), t.step
			return
		}
	}
	call.existing = row
}

// Refuse tells that the call cannot be served; nothing is written for it.
func (call *CreateCall[R]) Refuse(err error) { call.err = err }

// begin clears what a run before this one has decided.
func (call *CreateCall[R]) begin() {
	var none R
	call.err, call.existing = nil, none
}

// Made reports whether the call has made a row.
func (call *CreateCall[R]) made() bool {
	var none R
	return call.err == nil && call.existing == none
}

// Create puts the call through the batch: one commit, nothing else. It
// returns the row as it was created, and whether an earlier call has made it.
func (d *Intake[R]) Create(ctx context.Context, call *CreateCall[R]) (row R, replayed bool, err error) {
	// The call belongs to the batch from here on: a client that hangs up must
	// not leave a slot behind.
	var none R
	err = d.creates.Do(context.WithoutCancel(ctx), call)
	switch {
	case errors.Is(err, batch.ErrFull), errors.Is(err, batch.ErrClosed):
		if call.Grant != nil {
			call.Grant.Return()
		}
		return d.ReplayOr(ctx, call.Row.Subject().Ref.Client, call.Key, call.Hash,
			till.Errorf(till.CodeServiceUnavailable, "too many requests are waiting; try again with the same key"))
	case err != nil:
		return none, false, err
	case call.err != nil:
		return none, false, call.err
	case call.existing != none:
		return d.replay(call.existing, call.Hash)
	}
	return call.Row, false, nil
}

// runCreates writes a batch of creates in one commit; if that fails, each
// alone, so that one bad element fails by itself. Whoever lost its caller is
// still served: the row exists, so it is sent.
func (d *Intake[R]) runCreates(ctx context.Context, calls []*CreateCall[R]) {
	defer func() { // also after a panic
		for _, call := range calls {
			if call.Grant != nil {
				call.Grant.Return()
			}
		}
	}()
	err := d.createBatch(ctx, &calls, true)
	if errors.Is(err, store.ErrUnknownCommit) {
		err = d.createBatch(ctx, &calls, false) // what is there already is adopted
	}
	away := errors.Is(err, store.ErrUnavailable)
	for _, call := range calls {
		if err != nil && !away && len(calls) > 1 {
			if alone := d.createBatch(ctx, &[]*CreateCall[R]{call}, false); alone != nil {
				call.err = d.Unavailable("create a "+d.noun.Name, alone)
			}
		} else if err != nil {
			call.err = d.Unavailable("create "+d.noun.Name+"s", err)
		}
	}
	idle := false
	for _, call := range calls {
		switch {
		case call.Grant == nil:
			idle = idle || call.made()
		case call.made():
			call.Grant.Start(ctx, &call.Step, d.c.Job(call.Row))
		}
	}
	if idle && d.c.Work {
		d.engine.Wake()
	}
}

// createBatch is the one commit of a batch of creates. If it may, it adds what
// has come for the same clients while it waited for their heads.
func (d *Intake[R]) createBatch(ctx context.Context, batch *[]*CreateCall[R], more bool) error {
	clients := make([]till.ID, len(*batch))
	for i, call := range *batch {
		clients[i] = call.Row.Subject().Ref.Client
	}
	return d.engine.c.Store.Update(ctx, func(tx *store.Tx) (err error) {
		defer caught(&err) // one that makes us panic must not take the others along
		heads, err := tx.LockHeads(ctx, clients)
		if err != nil {
			return err
		}
		if more {
			*batch = append(slices.Clip(*batch), d.creates.Absorb(func(next []*CreateCall[R]) bool {
				return !slices.ContainsFunc(next, func(call *CreateCall[R]) bool { return heads[call.Row.Subject().Ref.Client] == nil })
			})...)
		}
		for _, call := range *batch {
			if heads[call.Row.Subject().Ref.Client] == nil {
				return till.Errorf(till.CodeClientNotFound, "there is no such client")
			}
			call.begin()
		}
		return d.c.Write(ctx, tx, heads, *batch)
	})
}

// Unavailable turns an error of the database into the refusal that a client
// sees. It is logged here, because the client is told nothing.
func (d *Intake[R]) Unavailable(doing string, err error) error {
	var e *till.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return e
	}
	d.c.Log.Error(doing, "error", err)
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownCommit) {
		return till.Errorf(till.CodeServiceUnavailable, "the database is away; try again with the same key")
	}
	return err
}

// ReplayOr looks a key up before a refusal that could have come out otherwise
// when the row was made: an existing one always gets its replay.
func (d *Intake[R]) ReplayOr(ctx context.Context, client, key till.ID, hash func(version int) ([32]byte, bool), refusal error) (R, bool, error) {
	var row, none R
	err := d.engine.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		row, err = d.noun.ByKey(ctx, tx, client, key)
		return err
	})
	switch {
	case err != nil:
		return none, false, d.Unavailable("look up an idempotency key", err)
	case row == none:
		return none, false, refusal
	}
	return d.replay(row, hash)
}

// Choose picks the connection of a new row among those that it may take, in
// order: the first one that is well. One that does not answer just now is
// passed over, before a byte is sent to it; but from time to time a row is given
// to it as a probe, or it would never be found to be back. If there is none,
// name is "", and the rest is the answer: a refusal, or the replay of a key that
// made a row before.
func (d *Intake[R]) Choose(ctx context.Context, client, key till.ID, hash func(version int) ([32]byte, bool), names []string) (name string, row R, replayed bool, err error) {
	var none R
	refusal := till.Errorf(till.CodeMethodUnavailable, "the method cannot be reached just now")
	looked := false
	for _, name := range names {
		if d.engine.Passing(name) {
			return name, none, false, nil
		}
		if wait := d.engine.RetryIn(name); refusal.RetryAfter == 0 || wait < refusal.RetryAfter {
			refusal.RetryAfter = wait
		}
		refusal.Detail = "the operator does not answer just now"
		if !d.engine.Offers(name) {
			continue
		}
		// A key that made a row before is no new one, and must not use a probe up.
		if !looked {
			if row, replayed, err := d.ReplayOr(ctx, client, key, hash, refusal); err != error(refusal) {
				return "", row, replayed, err
			}
			looked = true
		}
		if ok, _ := d.engine.Admit(name); ok {
			return name, none, false, nil
		}
	}
	if looked {
		return "", none, false, refusal
	}
	row, replayed, err = d.ReplayOr(ctx, client, key, hash, refusal)
	return "", row, replayed, err
}

// replay answers a key that made a row before: with the creation answer if
// the body is the same, with CodeKeyReused if not.
func (d *Intake[R]) replay(row R, hash func(version int) ([32]byte, bool)) (R, bool, error) {
	var none R
	p := row.Subject()
	sum, ok := hash(p.BodyVersion)
	if !ok {
		// This instance is about to stop; another will know.
		d.c.Log.Warn("a key's "+d.noun.Name+" was made by a newer release", d.noun.Name, p.Ref.ID)
		return none, false, till.Errorf(till.CodeServiceUnavailable, "another instance has to answer this; try again with the same key")
	}
	if sum != p.BodyHash {
		e := till.Errorf(till.CodeKeyReused, "this idempotency_key made %s %s with another body; a new %s needs a new key", d.noun.Name, p.Ref.ID, d.noun.Name)
		if d.noun.Name == store.KindPayout {
			e.PayoutID = p.Ref.ID
		} else {
			e.PaymentID = p.Ref.ID
		}
		return none, false, e
	}
	return d.noun.Fresh(row), true, nil
}

// justRead reports whether the operator was asked less than a moment before
// now. A callback that comes so soon after a success was read is the one that
// told of it, or its copy: to ask again for each would double the reads.
func justRead(read, now till.Time) bool { return read <= now && now < read.Add(store.WakePause) }

// wakeOne makes a row's step due. A row that has ended and is read no more is
// read once more: money may have moved late, or been taken back. What cannot
// change any more needs no reading.
func (d *Intake[R]) wakeOne(ctx context.Context, tx *store.Tx, w *wake) error {
	ref := w.ref
	w.absent = false
	if (w.at != 0 || w.via != "") && w.mail != nil {
		s, err := tx.Step(ctx, ref)
		if err != nil {
			return err
		}
		// One that came after it may have been recorded before it; and it is kept
		// only with what is pinned to the connection that it came for.
		if s != nil && (w.at != 0 && s.MailedAt > w.at.Add(store.WakePause) || w.via != "" && connectionOf(s.Lane) != w.via) {
			w = &wake{ref: ref}
		}
	}
	var owner *store.Found
	if w.handle != "" {
		var err error
		if owner, err = tx.FindByHandle(ctx, w.connection, w.handle); err != nil {
			return err
		}
		if owner != nil && owner.Ref != ref {
			d.c.Log.Warn("a callback for a "+d.noun.Name+" is about another's request and is ignored", d.noun.Name, ref.ID, "connection", w.connection)
			return nil
		}
	}
	woken, err := tx.WakeStep(ctx, ref, w.mail, w.handle)
	if err != nil || woken {
		return err
	}
	rows, err := d.noun.Read(ctx, tx, []store.Ref{ref})
	if err != nil {
		return err
	}
	row, found := rows[ref]
	if !found {
		if w.absent = true; w.at != 0 { // its caller is gone, and was told to call again
			d.c.Log.Warn("a callback that was kept is about a "+d.noun.Name+" that is not here", d.noun.Name, ref.ID)
		}
		return nil
	}
	p := row.Subject()
	t, _ := d.engine.traits(p.Connection)
	// The receipt may still be told, as soon as callbacks may ask for another read.
	untold := w.mail != nil && *p.ProviderReference == ""
	read := p.Resolution.LastCheckedAt
	if p.Settled && (!p.Reversible || justRead(read, tx.Now()) && !untold) {
		return nil
	}
	s := &store.Step{
		ClientID: ref.Client, SubjectID: ref.ID, Kind: d.noun.Name, Lane: store.Lane(p.Connection, operation(d.noun.Name, Check)), DueAt: tx.Now(),
		Calls: p.Resolution.Attempts, CheckedAt: p.Resolution.LastCheckedAt,
		Sends: 1, Acked: true, LateFrom: *p.UpdatedAt, LateReads: len(t.LateReads),
		Mail: w.mail, // the handle went with the step: it may be all that tells what to ask about
	}
	if w.via != "" && w.via != p.Connection {
		s.Mail = nil
	}
	if owner != nil {
		s.Handle = w.handle
	}
	if p.Settled {
		s.LateFrom, s.LateReads = 0, settledReads(t)
		if justRead(read, tx.Now()) {
			s.DueAt = read.Add(store.WakePause)
		}
	}
	return tx.InsertWokenStep(ctx, s)
}
