package hint

import (
	"context"
	"time"
)

// filePollInterval is how often a SQLite file is polled while there are subscriptions.
const filePollInterval = 20 * time.Millisecond

// UseFile makes the Hub notice other processes' commits to a SQLite file. version changes
// only with their commits. So subscribers get one hint for a commit of ours, which names
// its clients.
func (h *Hub) UseFile(version func(context.Context) (int64, error)) {
	h.watch = func(ctx context.Context) { h.watchDataVersion(ctx, version) }
}

func (h *Hub) watchDataVersion(ctx context.Context, version func(context.Context) (int64, error)) {
	tick := time.NewTicker(filePollInterval)
	defer tick.Stop()
	last := int64(-1)
	for !h.idle() {
		now, err := version(ctx)
		// The first read notifies too: it covers commits since the subscription began.
		if err == nil && now != last {
			last = now
			h.notify(nil, true)
			h.live.Store(true)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
