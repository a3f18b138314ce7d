package account

import (
	"context"
	"sync"
	"time"

	"till"
	"till/store"
)

// used collects when keys were last used, to be written behind the requests.
type used struct {
	mu   sync.Mutex
	keys map[string]till.Key // by id; only the owner, the id and the time count
}

// maxUsed bounds what waits to be written. A use that finds it full is not
// noted; the next one is.
const maxUsed = 100_000

const minute = 60 * till.Second

func (u *used) init() { u.keys = make(map[string]till.Key) }

// touch notes that the entry's key was used. It is kept to the minute, so
// most calls find nothing to do.
func (a *Accounts) touch(e *entry, now till.Time) {
	m := now - now%minute
	old := e.minute.Load()
	if int64(m) <= old || !e.minute.CompareAndSwap(old, int64(m)) {
		return
	}
	k := e.session.Key
	a.used.mu.Lock()
	defer a.used.mu.Unlock()
	if len(a.used.keys) < maxUsed {
		a.used.keys[k.ID] = till.Key{ID: k.ID, ClientID: k.ClientID, LastUsedAt: m}
	}
}

// take returns what has been collected and starts anew.
func (u *used) take() map[string]till.Key {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.keys) == 0 {
		return nil
	}
	taken := u.keys
	u.keys = make(map[string]till.Key)
	return taken
}

// flushEvery is how long a use waits to be written.
const flushEvery = 5 * time.Second

// Run writes down when keys were last used until ctx ends, and what is left
// then.
func (a *Accounts) Run(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			a.flush(ctx)
		case <-ctx.Done():
		}
	}
	a.flush(context.WithoutCancel(ctx))
}

// flush writes what was collected. It is a convenience, not a fact about
// money: what cannot be written now is let go, and noted again with the
// key's next minute.
func (a *Accounts) flush(ctx context.Context) {
	keys := a.used.take()
	if keys == nil {
		return
	}
	err := a.store.UpdateBehind(ctx, func(tx *store.Tx) error { return tx.TouchKeys(ctx, keys) })
	if err != nil {
		a.log.WarnContext(ctx, "the last use of keys was not written", "keys", len(keys), "error", err)
	}
}
