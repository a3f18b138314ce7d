package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"till"
	"till/internal/batch"
	"till/store"
)

// wake is one callback on its way through the batch.
type callback struct {
	ref        store.Ref
	connection string
	body       []byte    // nil where it is not kept
	handle     string    // that the mail names, where such callbacks do
	via        string    // the connection whose mail it is, if that is not known here
	at         till.Time // when it came, if it could not be recorded then
	err        error

	unknown bool // there is no such row
}

// ErrNotHere says that a callback is about something that is not here: it was
// lost with a restored backup.
var ErrNotHere = errors.New("there is nothing here that it is about")

// MaxCallbackBody is how much of a callback's body is kept, where an operator's adapter
// asks for it; a longer one is not kept at all.
const MaxCallbackBody = 16 << 10

// RecordCallback records that a callback came for a row: its operator is asked at once.
// What the callback said is not looked at; the read is the truth. Its body is
// kept for the adapter where the connection's Traits ask for it. The wake is
// committed when it returns, so the callback can be answered. With an error
// it is not: the operator should call again; but not every operator does, so
// while the database is away the callback is kept in memory, too. It returns
// ErrNotHere if there is no such row.
func (p *Processor[R]) RecordCallback(ctx context.Context, connection string, ref store.Ref, body []byte) error {
	w := &callback{ref: ref, connection: connection}
	// Whoever does not know the connection keeps it for those who do.
	if t, known := p.traits(connection); len(body) > 0 && len(body) <= MaxCallbackBody && (t.NeedsCallbackBody || !known) {
		mailed := false
		if w.handle, mailed = p.handleIn(connection, body); w.handle != "" || !mailed {
			w.body = body
		}
		if !known {
			w.via = connection
		}
	}
	if err := p.callbacks.Do(ctx, w); err != nil {
		if errors.Is(err, batch.ErrFull) || errors.Is(err, batch.ErrClosed) {
			return till.Errorf(till.CodeServiceUnavailable, "too many callbacks are waiting")
		}
		return err
	}
	if w.err == nil && w.unknown {
		return ErrNotHere
	}
	return w.err
}

func (p *Processor[R]) runCallbacks(ctx context.Context, wakes []*callback) {
	// In one order, as all locks are taken.
	slices.SortStableFunc(wakes, func(a, b *callback) int {
		return cmp.Or(bytes.Compare(a.ref.Client[:], b.ref.Client[:]), bytes.Compare(a.ref.ID[:], b.ref.ID[:]))
	})
	err := p.recordCallbacks(ctx, wakes)
	for _, w := range wakes {
		switch w.err = err; {
		case err == nil:
		case isUnavailable(err):
			p.keepCallback(w)
		case len(wakes) > 1: // one of them may be what is at fault
			if w.err = p.recordCallbacks(ctx, []*callback{w}); w.err != nil && isUnavailable(w.err) {
				p.keepCallback(w)
			}
		}
		w.err = p.Unavailable("record callbacks", w.err)
	}
	p.waker.Wake()
}

// recordCallbacks is the one commit of a batch of callbacks.
func (p *Processor[R]) recordCallbacks(ctx context.Context, wakes []*callback) error {
	return p.c.Store.Update(ctx, func(tx *store.Tx) (err error) {
		defer recoverToError(&err)
		for _, w := range wakes {
			if err := p.recordCallback(ctx, tx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

// What is kept of callbacks while the database is away, for each kind of
// subject. Of those without a body, which tell no more than that it is time to
// ask, only half as many: they must not take the places of the others.
const (
	maxKeptCallbacks = 1024
	maxKeptBytes     = 4 << 20 // bytes
)

// keptCallbacks are the callbacks that wait to be recorded, one for each subject:
// of several the last.
type keptCallbacks struct {
	mu    sync.Mutex
	byRef map[store.Ref]*callback
	bytes int
}

// put keeps a callback, in the place of an earlier one about its subject. It
// reports whether there was room, and whether its subject had none before.
func (k *keptCallbacks) put(w *callback) (kept, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byRef == nil {
		k.byRef = make(map[store.Ref]*callback)
	}
	old := k.byRef[w.ref]
	mail := k.bytes + len(w.body)
	if old != nil {
		if w.body == nil {
			return true, false
		}
		mail -= len(old.body)
	}
	most := maxKeptCallbacks
	if w.body == nil {
		most /= 2
	}
	if mail > maxKeptBytes || old == nil && len(k.byRef) >= most {
		return false, false
	}
	k.byRef[w.ref], k.bytes = w, mail
	return true, old == nil
}

// get returns what is kept about a subject.
func (k *keptCallbacks) get(ref store.Ref) *callback {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byRef[ref]
}

// drop forgets a callback, and reports whether none came after it.
func (k *keptCallbacks) drop(w *callback) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byRef[w.ref] != w {
		return false
	}
	delete(k.byRef, w.ref)
	k.bytes -= len(w.body)
	return true
}

// keepCallback keeps a callback in memory until the database is back. It is not
// committed, and its caller is told so.
func (p *Processor[R]) keepCallback(w *callback) {
	if w.at != 0 {
		return // it is kept
	}
	c := &callback{ref: w.ref, connection: w.connection, body: w.body, handle: w.handle, via: w.via, at: p.c.Store.Now()}
	kept, first := p.keptCallbacks.put(c)
	if !kept {
		p.c.Log.Error("a callback is not kept: too many wait for the database", p.table.Name(), w.ref.ID, "client", w.ref.Client, "bytes", len(w.body))
	}
	if first {
		p.tasks.Go(func() { p.recordKept(c.ref) })
	}
}

// recordKept records what is kept about a subject as soon as the database is
// back, or until Close gives up.
func (p *Processor[R]) recordKept(ref store.Ref) {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		select {
		case <-time.After(pause + rand.N(pause/4)):
		case <-p.unrecorded.stopped:
			p.c.Log.Error("a callback is lost: it could not be recorded before the end", p.table.Name(), ref.ID, "client", ref.Client)
			return
		}
		w := p.keptCallbacks.get(ref)
		err := p.recordCallbacks(context.Background(), []*callback{w})
		if err != nil && isUnavailable(err) {
			continue
		}
		if err != nil {
			p.Unavailable("record a callback that was kept", err)
		}
		if p.keptCallbacks.drop(w) {
			break
		}
	}
	p.waker.Wake()
}

// checkedRecently reports whether the operator was asked less than a moment before
// now. A callback that comes so soon after a success was read is the one that
// told of it, or its copy: to ask again for each would double the reads.
func checkedRecently(read, now till.Time) bool {
	return read <= now && now < read.Add(store.MinCallbackInterval)
}

// recordCallback makes a row's step due. A row that has ended and is read no more is
// read once more: money may have moved late, or been taken back. What cannot
// change any more needs no reading.
func (p *Processor[R]) recordCallback(ctx context.Context, tx *store.Tx, w *callback) error {
	ref := w.ref
	w.unknown = false
	if (w.at != 0 || w.via != "") && w.body != nil {
		s, err := tx.Step(ctx, ref)
		if err != nil {
			return err
		}
		// One that came after it may have been recorded before it; and it is kept
		// only with what is pinned to the connection that it came for.
		if s != nil && (w.at != 0 && s.CallbackDueAt > w.at.Add(store.MinCallbackInterval) || w.via != "" && connectionOf(s.Lane) != w.via) {
			w = &callback{ref: ref}
		}
	}
	var owner *store.CallbackTarget
	if w.handle != "" {
		var err error
		if owner, err = tx.SubjectByHandle(ctx, w.connection, w.handle); err != nil {
			return err
		}
		if owner != nil && owner.Ref != ref {
			p.c.Log.Warn("a callback for a "+p.table.Name()+" is about another's request and is ignored", p.table.Name(), ref.ID, "connection", w.connection)
			return nil
		}
	}
	woken, err := tx.WakeStep(ctx, ref, w.body, w.handle)
	if err != nil || woken {
		return err
	}
	rows, err := p.table.Read(ctx, tx, []store.Ref{ref})
	if err != nil {
		return err
	}
	row, found := rows[ref]
	if !found {
		if w.unknown = true; w.at != 0 { // its caller is gone, and was told to call again
			p.c.Log.Warn("a callback that was kept is about a "+p.table.Name()+" that is not here", p.table.Name(), ref.ID)
		}
		return nil
	}
	subject := row.Subject()
	t, _ := p.traits(subject.Connection)
	// The receipt may still be told, as soon as callbacks may ask for another read.
	untold := w.body != nil && *subject.ProviderReference == ""
	read := subject.Resolution.LastCheckedAt
	if subject.Settled && (!subject.Reversible || checkedRecently(read, tx.Now()) && !untold) {
		return nil
	}
	s := &store.Step{
		ClientID: ref.Client, SubjectID: ref.ID, Kind: p.table.Kind, Lane: store.Lane(subject.Connection, operation(p.table.Kind, Check)), DueAt: tx.Now(),
		Calls: subject.Resolution.Attempts, CheckedAt: subject.Resolution.LastCheckedAt,
		Sends: 1, Acked: true, LateFrom: *subject.UpdatedAt, LateReads: len(t.LateReads),
		CallbackBody: w.body, // the handle went with the step: it may be all that tells what to ask about
	}
	if w.via != "" && w.via != subject.Connection {
		s.CallbackBody = nil
	}
	if owner != nil {
		s.Handle = w.handle
	}
	if subject.Settled {
		s.LateFrom, s.LateReads = 0, settledReads(t)
		if checkedRecently(read, tx.Now()) {
			s.DueAt = read.Add(store.MinCallbackInterval)
		}
	}
	return tx.InsertCallbackStep(ctx, s)
}
