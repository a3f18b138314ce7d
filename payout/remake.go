package payout

import (
	"context"
	"slices"

	"till"
	"till/engine"
	"till/ledger"
	"till/store"
	"till/store/admin"
	"till/store/refunds"
)

// Remake writes payouts again that were lost with a database, as they were created, while
// their clients' heads are locked. The caller has looked up that neither their ids nor their
// keys are there. It returns those that it has not written, because their wallets do not have
// the money: that came in after the backup, and is not credited yet. A refund also waits while
// its payment is not credited, or has another refund open: that one ends first; and on a backup
// from before the level of refunds until that is raised again, because an older program would
// take it for a payout. The others count as possibly sent: they keep their reserve, are checked
// and never sent. The caller saves the heads.
func Remake(ctx context.Context, tx *store.Tx, heads map[till.ID]*store.Head, keys engine.Keys, rows []*store.PayoutRow, by string) (poor []*store.PayoutRow, err error) {
	clients := make([]till.ID, len(rows))
	for i, p := range rows {
		clients[i] = p.ClientID
	}
	all, err := tx.WalletsOf(ctx, clients)
	if err != nil {
		return nil, err
	}
	wallets := make(map[walletKey]*ledger.Wallet, len(all))
	for _, w := range all {
		wallets[walletKey{w.ClientID, w.Currency}] = w
	}
	var payments []store.Ref
	for _, p := range rows {
		if p.IsRefund() && !slices.Contains(payments, paymentOf(p)) {
			payments = append(payments, paymentOf(p))
		}
	}
	b := &createBatch{heads: heads, used: map[*ledger.Wallet]bool{}}
	if len(payments) > 0 {
		if b.originals.of, b.originals.level, err = refunds.OriginalsAndLevel(ctx, tx, payments); err != nil {
			return nil, err
		}
	}
	var sends []*store.Attempt
	for _, p := range rows {
		w, head := wallets[walletKey{p.ClientID, p.Amount.Currency}], heads[p.ClientID]
		at := head.NextTime()
		if p.IsRefund() && !b.originals.fit(p) || w == nil || w.Reserve(p.Reserve(), at) != nil {
			poor = append(poor, p)
			continue
		}
		p.UpdatedAt = at
		step, send := engine.LostStep(till.SubjectPayout, p.Subject(), keys, tx.Now())
		b.used[w] = true
		b.originals.add(p)
		b.rows, b.steps, sends = append(b.rows, p), append(b.steps, step), append(sends, send)
		b.audit = append(b.audit, engine.LostAudit(till.SubjectPayout, p.Subject(), head.NextAudit(), by))
		b.counts.AddPayout(&p.Payout, till.PayoutPending, 1)
	}
	if len(b.rows) == 0 {
		return poor, nil
	}
	if err := b.save(ctx, tx); err != nil {
		return nil, err
	}
	if err := admin.MarkRestored(ctx, tx, b.steps); err != nil {
		return nil, err
	}
	return poor, tx.InsertSends(ctx, sends)
}
