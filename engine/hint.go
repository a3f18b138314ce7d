package engine

import (
	"context"
	"time"
)

// heedPause is the least time between two looks that hints ask for: a busy
// instance must not keep all the others looking.
const heedPause = 20 * time.Millisecond

// heed wakes the engine when another instance has committed: what an instance
// that only accepts has written is due now. Without hints it is found by the
// next look.
func (e *Worker) heed(ctx context.Context) {
	ear := e.c.Store.ListenOthers()
	defer ear.Close()
	for {
		select {
		case <-ear.C():
			e.waker.Wake()
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(heedPause):
		case <-ctx.Done():
			return
		}
	}
}
