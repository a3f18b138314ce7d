package driver

import (
	"context"
	"fmt"

	till "github.com/till-project/till/sdk/go"
)

// refund writes a wish to give a payment back; without a value, all that is left.
func (d *driver[T]) refund(ctx context.Context, c command) error {
	wish := till.GiveBack{Order: c.Order, Reason: c.Reason}
	if c.Value != "" {
		wish.Amount = till.Ptr(till.Minor(c.Value, c.Currency))
	}
	err := d.shop.Update(ctx, func(tx T) error { return d.teller.Refund(ctx, tx, wish) })
	if err == nil {
		d.crash("after_write")
	}
	return err
}

// sendRefund sends a refund; and books it already, as one should not.
func (d *driver[T]) sendRefund(ctx context.Context, order string) result {
	p, err := d.teller.SendRefund(ctx, order)
	if d.mutant == "refund_booked_on_202" && err == nil && p.Refund != nil {
		err = d.shop.Update(ctx, func(tx T) error { return d.shop.Act(ctx, tx, order, "refunded "+p.Refund.Amount.Value) })
	}
	return sent(p, err)
}

// refunded is what the shop notes of a refund: what went back, and what is left.
func refunded(c till.Change) string {
	left := "?"
	if c.Left != nil {
		left = c.Left.Value
	}
	return fmt.Sprintf("refunded %s left %s", c.Refund.Amount.Value, left)
}

// misbooked reports whether a mistake keeps the shop from booking a refund.
func (d *driver[T]) misbooked(c till.Change) bool {
	if d.mutant == "refund_booked_on_202" {
		return true
	}
	_, booked := d.booked.LoadOrStore(c.Order+" "+c.Refund.Amount.Value, true)
	return booked && d.mutant == "refund_booked_by_amount"
}
