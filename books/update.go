package books

import (
	"context"
	"errors"

	"till/store"
)

// retryUnknown runs f in a write transaction, by Store.Update or its like. If
// the outcome of the commit is unknown, it runs f once more, with again set: f
// must then adopt what the first run may have left. It reports whether there was
// a second run.
func retryUnknown(ctx context.Context, update func(context.Context, func(tx *store.Tx) error) error, f func(tx *store.Tx, again bool) error) (again bool, err error) {
	err = update(ctx, func(tx *store.Tx) error { return f(tx, false) })
	if !errors.Is(err, store.ErrUnknownCommit) {
		return false, err
	}
	return true, update(ctx, func(tx *store.Tx) error { return f(tx, true) })
}
