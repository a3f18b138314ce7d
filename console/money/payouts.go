package money

import (
	"context"

	"till"
	"till/console/list"
	"till/console/subject"
	"till/store"
)

// payouts is GET /c/{client}/payouts.
func (v *visit) payouts() error {
	return v.list("payouts", v.payoutFilter(), v.listPayouts)
}

// payoutFilter reads the address of a list of payouts.
func (v *visit) payoutFilter() *list.Filter {
	return list.Read(v.Visit, v.ClientPath("/payouts"), list.Texts(till.PayoutStatuses))
}

// refunds is GET /c/{client}/refunds.
func (v *visit) refunds() error {
	return v.list("refunds", v.refundFilter(), v.listRefunds)
}

// refundFilter reads the address of a list of refunds.
func (v *visit) refundFilter() *list.Filter {
	return list.Read(v.Visit, v.ClientPath("/refunds"), list.Texts(till.PayoutStatuses))
}

// listRefunds reads refunds for a list.
func (v *visit) listRefunds(ctx context.Context, tx *store.Tx, f store.PaymentFilter, page store.Page) ([]*subject.Line, int64, error) {
	f.From = max(f.From, v.Earliest())
	rows, total, err := store.ListRefunds(ctx, tx, v.Client.ID, f, page)
	return subject.PayoutLines(v.Visit, rows), total, err
}

// listPayouts reads payouts for a list.
func (v *visit) listPayouts(ctx context.Context, tx *store.Tx, f store.PaymentFilter, page store.Page) ([]*subject.Line, int64, error) {
	rows, total, err := tx.ListPayouts(ctx, v.Client.ID, f, page)
	return subject.PayoutLines(v.Visit, rows), total, err
}
