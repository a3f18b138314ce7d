package recovery

import (
	"context"
	"fmt"

	"till"
	"till/store"
	"till/store/refunds"
)

// rebuildRefundSums gives each payment of a client the sums that its refunds add up to, by the
// reads with which verify compares them. In a sound backup nothing differs.
func rebuildRefundSums(ctx context.Context, s *store.Store, client till.ID, by string) error {
	for after := (till.ID{}); ; {
		var slice []refunds.VerifySums
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			slice, err = refunds.EachSums(ctx, tx, client, after, restoredSteps)
			return err
		})
		if err != nil || len(slice) == 0 {
			return err
		}
		if differs(slice) {
			err := s.UpdateBackground(ctx, func(tx *store.Tx) error { return rewriteSums(ctx, tx, client, after, by) })
			if err != nil {
				return err
			}
		}
		after = slice[len(slice)-1].PaymentID
	}
}

func differs(slice []refunds.VerifySums) bool {
	for _, v := range slice {
		if v.Have != v.Want {
			return true
		}
	}
	return false
}

// rewriteSums rewrites what differs of the next sums beyond a payment's id. They are read again
// under the lock of the client's head.
func rewriteSums(ctx context.Context, tx *store.Tx, client, after till.ID, by string) error {
	if _, err := tx.LockHeads(ctx, []till.ID{client}); err != nil {
		return err
	}
	slice, err := refunds.EachSums(ctx, tx, client, after, restoredSteps)
	if err != nil {
		return err
	}
	n := 0
	for _, v := range slice {
		if v.Have == v.Want {
			continue
		}
		n++
		if err := refunds.Rewrite(ctx, tx, client, v); err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	return store.AuditClients(ctx, tx, []till.ID{client}, by, "refund.rebuild", fmt.Sprintf("the sums of refunds of %d payments", n))
}
