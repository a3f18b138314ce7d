package collect

import (
	"context"

	"till"
	"till/engine"
	"till/store"
	"till/store/admin"
)

// Remake writes payments again that were lost with a database, as they were created, while
// their clients' heads are locked. The caller has looked up that neither their ids nor their
// keys are there. Each counts as possibly sent: it is checked and never sent. Its event is
// made now, at the end of its client's log, and its audit row says so. The caller saves the
// heads.
func Remake(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, keys engine.Keys, rows []*store.PaymentRow, by string) error {
	steps, sends, audit := make([]*store.Step, len(rows)), make([]*store.Attempt, len(rows)), make([]*store.AuditRow, len(rows))
	var counts store.CounterDelta
	for i, p := range rows {
		head := heads[p.ClientID]
		p.UpdatedAt = head.NextTime()
		steps[i], sends[i] = engine.LostStep(till.SubjectPayment, p.Subject(), keys, tx.Now())
		audit[i] = engine.LostAudit(till.SubjectPayment, p.Subject(), head.NextAudit(), by)
		counts.AddPayment(&p.Payment, till.Pending, 1)
	}
	if _, err := tx.InsertPayments(ctx, heads, rows, steps); err != nil {
		return err
	}
	if err := admin.MarkRestored(ctx, tx, steps); err != nil {
		return err
	}
	if err := tx.InsertSends(ctx, sends); err != nil {
		return err
	}
	if err := tx.AddCounts(ctx, &counts); err != nil {
		return err
	}
	return tx.InsertAudit(ctx, audit)
}
