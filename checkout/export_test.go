package checkout

import (
	"context"

	"till"
	"till/store"
)

// Admit is what the commit that makes an ask's payment asks first.
func (s *Checkouts) Admit(ctx context.Context, tx *store.Tx, a *till.Ask) error {
	return s.admit(ctx, tx, a)
}
