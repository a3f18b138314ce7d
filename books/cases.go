package books

import (
	"context"

	"till/store"
)

// MaxCases is how many cases a list shows at most.
const MaxCases = 1_000

// Cases returns up to limit cases of all clients: the open ones, longest open
// first, or with all set the closed ones too, newest first.
func Cases(ctx context.Context, s *store.Store, all bool, limit int) (out []*store.Case, err error) {
	if limit <= 0 || limit > MaxCases {
		limit = MaxCases
	}
	err = s.View(ctx, func(tx *store.Tx) error {
		out, err = tx.Cases(ctx, all, limit)
		return err
	})
	return out, err
}
