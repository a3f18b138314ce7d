package engine

import (
	"context"
	"time"
)

// hintInterval is the least time between two looks that hints ask for: a busy
// instance must not keep all the others looking.
const hintInterval = 20 * time.Millisecond

// followHints wakes the engine when another instance has committed: what an instance
// that only accepts has written is due now. Without hints it is found by the
// next look.
func (w *Worker) followHints(ctx context.Context) {
	remote := w.c.Store.SubscribeRemote()
	defer remote.Close()
	for {
		select {
		case <-remote.C():
			w.waker.Wake()
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(hintInterval):
		case <-ctx.Done():
			return
		}
	}
}
