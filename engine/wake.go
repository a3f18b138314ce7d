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
type wake struct {
	ref        store.Ref
	connection string
	mail       []byte    // nil where it is not kept
	handle     string    // that the mail names, where such callbacks do
	via        string    // the connection whose mail it is, if that is not known here
	at         till.Time // when it came, if it could not be recorded then
	err        error

	absent bool // there is no such row
}

// ErrNotHere says that a callback is about something that is not here: it was
// lost with a restored backup.
var ErrNotHere = errors.New("there is nothing here that it is about")

// MaxMail is how much of a callback's body is kept, where an operator's adapter
// asks for it; a longer one is not kept at all.
const MaxMail = 16 << 10

// RecordCallback records that a callback came for a row: its operator is asked at once.
// What the callback said is not looked at; the read is the truth. Its body is
// kept for the adapter where the connection's Traits ask for it. The wake is
// committed when it returns, so the callback can be answered. With an error
// it is not: the operator should call again; but not every operator does, so
// while the database is away the callback is kept in memory, too. It returns
// ErrNotHere if there is no such row.
func (p *Processor[R]) RecordCallback(ctx context.Context, connection string, ref store.Ref, body []byte) error {
	w := &wake{ref: ref, connection: connection}
	// Whoever does not know the connection keeps it for those who do.
	if t, known := p.traits(connection); len(body) > 0 && len(body) <= MaxMail && (t.NeedsCallbackBody || !known) {
		mailed := false
		if w.handle, mailed = p.handleIn(connection, body); w.handle != "" || !mailed {
			w.mail = body
		}
		if !known {
			w.via = connection
		}
	}
	if err := p.wakes.Do(ctx, w); err != nil {
		if errors.Is(err, batch.ErrFull) || errors.Is(err, batch.ErrClosed) {
			return till.Errorf(till.CodeServiceUnavailable, "too many callbacks are waiting")
		}
		return err
	}
	if w.err == nil && w.absent {
		return ErrNotHere
	}
	return w.err
}

func (p *Processor[R]) runWakes(ctx context.Context, wakes []*wake) {
	// In one order, as all locks are taken.
	slices.SortStableFunc(wakes, func(a, b *wake) int {
		return cmp.Or(bytes.Compare(a.ref.Client[:], b.ref.Client[:]), bytes.Compare(a.ref.ID[:], b.ref.ID[:]))
	})
	err := p.recordWakes(ctx, wakes)
	for _, w := range wakes {
		switch w.err = err; {
		case err == nil:
		case isAway(err):
			p.keepWake(w)
		case len(wakes) > 1: // one of them may be what is at fault
			if w.err = p.recordWakes(ctx, []*wake{w}); w.err != nil && isAway(w.err) {
				p.keepWake(w)
			}
		}
		w.err = p.Unavailable("record callbacks", w.err)
	}
	p.waker.Wake()
}

// recordWakes is the one commit of a batch of callbacks.
func (p *Processor[R]) recordWakes(ctx context.Context, wakes []*wake) error {
	return p.c.Store.Update(ctx, func(tx *store.Tx) (err error) {
		defer caught(&err)
		for _, w := range wakes {
			if err := p.wakeOne(ctx, tx, w); err != nil {
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
	maxKeptWakes = 1024
	maxKeptMail  = 4 << 20 // bytes
)

// keptWakes are the callbacks that wait to be recorded, one for each subject:
// of several the last.
type keptWakes struct {
	mu    sync.Mutex
	byRef map[store.Ref]*wake
	mail  int
}

// put keeps a callback, in the place of an earlier one about its subject. It
// reports whether there was room, and whether its subject had none before.
func (k *keptWakes) put(w *wake) (kept, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byRef == nil {
		k.byRef = make(map[store.Ref]*wake)
	}
	old := k.byRef[w.ref]
	mail := k.mail + len(w.mail)
	if old != nil {
		if w.mail == nil {
			return true, false
		}
		mail -= len(old.mail)
	}
	most := maxKeptWakes
	if w.mail == nil {
		most /= 2
	}
	if mail > maxKeptMail || old == nil && len(k.byRef) >= most {
		return false, false
	}
	k.byRef[w.ref], k.mail = w, mail
	return true, old == nil
}

// get returns what is kept about a subject.
func (k *keptWakes) get(ref store.Ref) *wake {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.byRef[ref]
}

// drop forgets a callback, and reports whether none came after it.
func (k *keptWakes) drop(w *wake) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byRef[w.ref] != w {
		return false
	}
	delete(k.byRef, w.ref)
	k.mail -= len(w.mail)
	return true
}

// keepWake keeps a callback in memory until the database is back. It is not
// committed, and its caller is told so.
func (p *Processor[R]) keepWake(w *wake) {
	if w.at != 0 {
		return // it is kept
	}
	c := &wake{ref: w.ref, connection: w.connection, mail: w.mail, handle: w.handle, via: w.via, at: p.c.Store.Now()}
	kept, first := p.kept.put(c)
	if !kept {
		p.c.Log.Error("a callback is not kept: too many wait for the database", p.table.Name, w.ref.ID, "client", w.ref.Client, "bytes", len(w.mail))
	}
	if first {
		p.tasks.Go(func() { p.recordKept(c.ref) })
	}
}

// recordKept records what is kept about a subject as soon as the database is
// back, or until the engine's Drain gives up.
func (p *Processor[R]) recordKept(ref store.Ref) {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		select {
		case <-time.After(pause + rand.N(pause/4)):
		case <-p.held.over:
			p.c.Log.Error("a callback is lost: it could not be recorded before the end", p.table.Name, ref.ID, "client", ref.Client)
			return
		}
		w := p.kept.get(ref)
		err := p.recordWakes(context.Background(), []*wake{w})
		if err != nil && isAway(err) {
			continue
		}
		if err != nil {
			p.Unavailable("record a callback that was kept", err)
		}
		if p.kept.drop(w) {
			break
		}
	}
	p.waker.Wake()
}
