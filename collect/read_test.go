package collect_test

import (
	"context"
	"strings"
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

func readPayment(t *testing.T, s *store.Store, ref store.Ref) (p *store.PaymentRow) {
	t.Helper()
	storetest.View(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = tx.Payment(ctx, ref)
		return err
	})
	return p
}

func readStep(t *testing.T, s *store.Store, ref store.Ref) (step *store.Step) {
	t.Helper()
	storetest.View(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		step, err = tx.Step(ctx, ref)
		return err
	})
	return step
}

func readCases(t *testing.T, s *store.Store, id till.ID) (kinds string) {
	t.Helper()
	storetest.View(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
		kinds, err = openCases(ctx, tx, id)
		return err
	})
	return kinds
}

// openCases lists the kinds of the open cases about a payment.
func openCases(ctx context.Context, tx *store.Tx, id till.ID) (string, error) {
	var kinds []string
	all, err := tx.Cases(ctx, store.CaseFilter{Limit: 1000})
	for _, c := range all {
		if c.SubjectID == id {
			kinds = append(kinds, c.Kind)
		}
	}
	return strings.Join(kinds, " "), err
}
