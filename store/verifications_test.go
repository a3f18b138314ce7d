package store_test

import (
	"context"
	"testing"

	"till/store"
	"till/store/admin"
	"till/store/storetest"
)

// TestTheLastVerificationIsRead: whatever was written down is read again, on each
// engine: every status begins with it.
func TestTheLastVerificationIsRead(t *testing.T) {
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		for _, want := range []admin.Verification{{BeganAt: 1, Problems: 3, KeyChecked: true}, {BeganAt: 2}} {
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				want.At = tx.Now()
				return admin.InsertVerification(t.Context(), tx, want)
			})
			if err != nil {
				t.Fatal(err)
			}
			storetest.View(t, s, func(ctx context.Context, tx *store.Tx) error {
				got, err := admin.LastVerification(ctx, tx)
				if err == nil && *got != want {
					t.Errorf("the last verification is %+v, want %+v", got, want)
				}
				return err
			})
		}
	})
}
