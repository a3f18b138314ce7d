package doctor

import (
	"context"

	"till/operators"
	"till/store"
	"till/store/admin"
)

// examineMarkets reports when operators last said what their accounts may do, of those that
// say it.
func (d *doctor) examineMarkets(ctx context.Context, db *store.Store, ops *operators.Operators) error {
	asks := operators.NewMarkets(db, ops.Payments, ops.Payouts, nil)
	return db.View(ctx, func(tx *store.Tx) error {
		rows, err := admin.MarketReads(ctx, tx)
		known := map[string]*admin.ConnectionMarkets{}
		for i := range rows {
			known[rows[i].Connection] = &rows[i]
		}
		for _, c := range ops.File.Connections {
			if !asks.Asks(c.Name) {
				continue
			}
			what := c.Name + " markets"
			switch m := known[c.Name]; {
			case m == nil:
				d.add(what, Fine, "the operator was not asked yet what the account may do; a server asks it within minutes")
			case m.Old(tx.Now()) && m.Problem == "":
				d.add(what, Risky, "what the account may do was last read at %s, though the operator says it: does a server run that works?", m.ReadAt)
			case m.Old(tx.Now()) && m.ReadAt.IsZero():
				d.add(what, Risky, "since %s nobody could read what the account may do, so everything is offered: %s", m.FailingSince, m.Problem)
			case m.Old(tx.Now()):
				d.add(what, Risky, "since %s nobody could read what the account may do; what the operator said at %s still holds: %s", m.FailingSince, m.ReadAt, m.Problem)
			case m.Problem != "":
				d.add(what, Fine, "what the account may do cannot be read since %s, which is tried again: %s", m.FailingSince, m.Problem)
			default:
				d.add(what, Fine, "what the account may do was read at %s", m.ReadAt)
			}
		}
		return err
	})
}
