package account

import (
	"context"
	"sync"
	"time"

	"till"
	"till/store"
	"till/store/access"
)

// lastUse collects when keys were last used; Run writes it in the background.
type lastUse struct {
	mu   sync.Mutex
	keys map[string]till.Key // by id; only the owner, the id and the time count
}

// maxLastUses limits what waits to be written. A use beyond it is not recorded; the next
// one is.
const maxLastUses = 100_000

const minute = till.Time(time.Minute / time.Microsecond)

func (u *lastUse) init() { u.keys = make(map[string]till.Key) }

// noteUse records that the entry's key was used. The time is kept to the minute, so most
// calls have nothing to do.
func (a *Accounts) noteUse(e *entry, now till.Time) {
	m := now - now%minute
	old := e.lastUseMinute.Load()
	if int64(m) <= old || !e.lastUseMinute.CompareAndSwap(old, int64(m)) {
		return
	}
	k := e.session.Key
	a.lastUse.mu.Lock()
	defer a.lastUse.mu.Unlock()
	if len(a.lastUse.keys) < maxLastUses {
		a.lastUse.keys[k.ID] = till.Key{ID: k.ID, ClientID: k.ClientID, LastUsedAt: m}
	}
}

// take returns what has been collected and clears it.
func (u *lastUse) take() map[string]till.Key {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.keys) == 0 {
		return nil
	}
	taken := u.keys
	u.keys = make(map[string]till.Key)
	return taken
}

// flushInterval is how long a use waits to be written.
const flushInterval = 5 * time.Second

// Run writes when keys were last used, until ctx ends, and what is left then.
func (a *Accounts) Run(ctx context.Context) {
	tick := time.NewTicker(flushInterval)
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

// flush writes what was collected. If that fails, it is dropped: this is no fact about
// money, and the key's next minute is recorded again.
func (a *Accounts) flush(ctx context.Context) {
	keys := a.lastUse.take()
	if keys == nil {
		return
	}
	err := a.store.UpdateBackground(ctx, func(tx *store.Tx) error { return access.TouchKeys(ctx, tx, keys) })
	if err != nil {
		a.log.WarnContext(ctx, "key uses not recorded", "keys", len(keys), "error", err)
	}
}
