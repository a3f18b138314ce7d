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

// callback is one callback in the batch.
type callback struct {
	ref        store.Ref
	connection string
	body       []byte    // nil if it is not kept
	handle     string    // the handle in the body, if such callbacks have one
	via        string    // the connection that it came for, if it is not configured here
	at         till.Time // when it came, if it could not be recorded then
	err        error

	unknown bool // there is no such row
}

// ErrNotHere says that a callback is about a row that does not exist: it was lost with a
// restored backup.
var ErrNotHere = errors.New("there is nothing here that it is about")

// MaxCallbackBody is the longest callback body, in bytes, that is kept for an adapter. A
// longer one is not kept at all.
const MaxCallbackBody = 16 << 10

// RecordCallback records that a callback came for a row, which makes its check due. The
// callback's content is not trusted; the check decides. The body is kept for the adapter if
// the connection's Traits say so. Without an error, the callback is committed and can be
// acknowledged. With an error, the operator should call again. Not every operator does, so
// the callback is also kept in memory while the database is unavailable. It returns
// ErrNotHere if there is no such row.
func (p *Processor[R]) RecordCallback(ctx context.Context, connection string, ref store.Ref, body []byte) error {
	w := &callback{ref: ref, connection: connection}
	// An instance that does not know the connection keeps the body for those that do.
	if t, known := p.traits(connection); len(body) > 0 && len(body) <= MaxCallbackBody && (t.NeedsCallbackBody || !known) {
		reads := false
		if w.handle, reads = p.handleIn(connection, body); w.handle != "" || !reads {
			w.body = body
		}
		if !known {
			w.via = connection
		}
	}
	var came till.Time
	if p.c.Tracer != nil {
		came = p.c.Store.Now()
	}
	err := p.callbacks.Do(ctx, w)
	p.traceCallback(w, came, err)
	if err != nil {
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
	// In key order, as all locks are taken.
	slices.SortStableFunc(wakes, func(a, b *callback) int {
		return cmp.Or(bytes.Compare(a.ref.Client[:], b.ref.Client[:]), bytes.Compare(a.ref.ID[:], b.ref.ID[:]))
	})
	err := p.recordCallbacks(ctx, wakes)
	for _, w := range wakes {
		switch w.err = err; {
		case err == nil:
		case isUnavailable(err):
			p.keepCallback(w)
		case len(wakes) > 1: // one of them may be at fault
			if w.err = p.recordCallbacks(ctx, []*callback{w}); w.err != nil && isUnavailable(w.err) {
				p.keepCallback(w)
			}
		}
		w.err = p.Unavailable("callbacks not recorded", w.err)
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

// How many callbacks are kept while the database is unavailable, for each kind of subject.
// Those without a body only cause a check, so they may take half of the places.
const (
	maxKeptCallbacks = 1024
	maxKeptBytes     = 4 << 20
)

// keptCallbacks holds the callbacks that wait to be recorded: the last one of each subject.
type keptCallbacks struct {
	mu    sync.Mutex
	byRef map[store.Ref]*callback
	bytes int
}

// put keeps a callback and replaces an earlier one of its subject. kept is false if there
// is no room; first says that the subject had none.
func (k *keptCallbacks) put(w *callback) (kept, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byRef == nil {
		k.byRef = make(map[store.Ref]*callback)
	}
	old := k.byRef[w.ref]
	bytes := k.bytes + len(w.body)
	if old != nil {
		if w.body == nil {
			return true, false
		}
		bytes -= len(old.body)
	}
	most := maxKeptCallbacks
	if w.body == nil {
		most /= 2
	}
	if bytes > maxKeptBytes || old == nil && len(k.byRef) >= most {
		return false, false
	}
	k.byRef[w.ref], k.bytes = w, bytes
	return true, old == nil
}

// get returns a subject's callback.
func (k *keptCallbacks) get(ref store.Ref) *callback {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byRef[ref]
}

// drop removes a callback. It reports whether no later one has replaced it.
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

// keepCallback keeps a callback in memory until the database is available. It is not
// committed, and the caller gets an error.
func (p *Processor[R]) keepCallback(w *callback) {
	if w.at != 0 {
		return // it is kept already
	}
	c := &callback{ref: w.ref, connection: w.connection, body: w.body, handle: w.handle, via: w.via, at: p.c.Store.Now()}
	kept, first := p.keptCallbacks.put(c)
	if !kept {
		p.c.Log.Error("callback not kept, too many wait for the database", p.table.Name(), w.ref.ID, "client", w.ref.Client, "bytes", len(w.body))
	}
	if first {
		p.tasks.Go(func() { p.recordKept(c.ref) })
	}
}

// recordKept records a subject's callback as soon as the database is available, or until
// Close gives up.
func (p *Processor[R]) recordKept(ref store.Ref) {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		select {
		case <-time.After(pause + rand.N(pause/4)):
		case <-p.unrecorded.stopped:
			p.c.Log.Error("callback lost, not recorded before shutdown", p.table.Name(), ref.ID, "client", ref.Client)
			return
		}
		w := p.keptCallbacks.get(ref)
		err := p.recordCallbacks(context.Background(), []*callback{w})
		if err != nil && isUnavailable(err) {
			continue
		}
		if err != nil {
			p.Unavailable("kept callback not recorded", err)
		}
		if p.keptCallbacks.drop(w) {
			break
		}
	}
	p.waker.Wake()
}

// checkedRecently reports whether the operator was checked just before now. A callback
// right after a success was read is about that success, or a copy. To check after each
// would double the reads.
func checkedRecently(read, now till.Time) bool {
	return read <= now && now < read.Add(store.MinCallbackInterval)
}

// recordCallback makes a row's step due. A row that has ended is read once more: money may
// have moved late, or been taken back. A row that cannot change any more is not read.
func (p *Processor[R]) recordCallback(ctx context.Context, tx *store.Tx, w *callback) error {
	ref, came := w.ref, cmp.Or(w.at, tx.Now())
	w.unknown = false
	if (w.at != 0 || w.via != "") && w.body != nil {
		s, err := tx.Step(ctx, ref)
		if err != nil {
			return err
		}
		// A later callback may have been recorded first. And its body belongs only to the
		// connection that it came for.
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
			p.c.Log.Warn("callback about another request ignored", p.table.Name(), ref.ID, "connection", w.connection)
			return nil
		}
	}
	woken, err := tx.WakeStep(ctx, ref, w.body, w.handle, came)
	if err != nil || woken {
		return err
	}
	rows, err := p.table.Read(ctx, tx, []store.Ref{ref})
	if err != nil {
		return err
	}
	row, found := rows[ref]
	if !found {
		if w.unknown = true; w.at != 0 { // its caller got an error and calls again
			p.c.Log.Warn("kept callback for unknown row", p.table.Name(), ref.ID)
		}
		return nil
	}
	subject := row.Subject()
	t, _ := p.traits(subject.Connection)
	// The receipt may still come, as soon as a callback may cause another read.
	untold := w.body != nil && *subject.ProviderReference == ""
	read := subject.Resolution.LastCheckedAt
	if subject.Settled && (!subject.Reversible || checkedRecently(read, tx.Now()) && !untold) {
		return tx.AddCallback(ctx, p.table.Kind, ref, came)
	}
	s := &store.Step{
		ClientID: ref.Client, SubjectID: ref.ID, Kind: p.table.Kind, Lane: store.Lane(subject.Connection, operation(p.table.Kind, Check)), DueAt: tx.Now(),
		Calls: subject.Resolution.Attempts, CheckedAt: subject.Resolution.LastCheckedAt,
		Sends: 1, Acked: true, LateFrom: *subject.UpdatedAt, LateReads: len(t.LateReads),
		FirstCallback: came, LastCallback: came,
		CallbackBody: w.body, // the handle went with the step: the body alone may say what to check
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
