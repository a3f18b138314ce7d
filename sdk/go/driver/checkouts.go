package driver

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"time"

	till "github.com/till-project/till/sdk/go"
)

// checkout writes a wish to be paid on a page. With a phone, no other one may pay.
func (d *driver[T]) checkout(ctx context.Context, c command) error {
	wish := till.CheckoutWish{Order: c.Order, Amount: till.Minor(c.Value, c.Currency), ReturnURL: c.Return, Phone: c.Phone, PhoneFixed: c.Phone != ""}
	err := d.shop.Update(ctx, func(tx T) error { return d.teller.Checkout(ctx, tx, wish) })
	if err == nil {
		d.crash("after_write")
	}
	return err
}

// sendCheckout makes the page, and tells where it is.
func (d *driver[T]) sendCheckout(ctx context.Context, order string) result {
	p, err := d.teller.SendCheckout(ctx, order)
	r := sent(p, err)
	r["url"], r["page"] = p.URL, p.URL != "" && p.ReturnSecret != ""
	return r
}

// openCheckouts writes and makes pages for many orders, eight at a time, as customers do who
// go to the till.
func (d *driver[T]) openCheckouts(ctx context.Context, c command) result {
	return each(c, func(_ int, one command) error {
		err := d.checkout(ctx, one)
		var paid *till.AlreadyPaid
		if errors.As(err, &paid) {
			return nil
		} else if err == nil {
			_, err = d.teller.SendCheckout(ctx, one.Order)
		}
		return err
	})
}

// comeBack verifies the way back of a customer, with what is kept with the order.
func (d *driver[T]) comeBack(ctx context.Context, c command) result {
	p, err := d.teller.SendCheckout(ctx, c.Order)
	if err != nil {
		return told(err, nil)
	}
	query, err := url.ParseQuery(c.Query)
	if err != nil {
		return told(err, nil)
	}
	state, err := till.VerifyReturn(p.ReturnSecret, p.ID, query, time.Now())
	return told(err, result{"state": state})
}

func (d *driver[T]) cancelCheckout(ctx context.Context, order string) result {
	p, err := d.teller.SendCheckout(ctx, order)
	if err != nil {
		return told(err, nil)
	}
	o, err := d.client.Checkouts.Cancel(ctx, p.ID)
	if err != nil {
		return told(err, nil)
	}
	return result{"status": o.State}
}

// onPage is what the shop notes of a checkout.
func onPage(c till.Change) string {
	switch {
	case c.Paid() && c.Late:
		return "paid late"
	case c.Paid():
		return "paid"
	case c.Overpaid():
		return "paid twice"
	case c.OtherAmount():
		return "other amount"
	}
	return c.Kind[strings.Index(c.Kind, ".")+1:]
}

// asksAlone reports whether a shop hears of asks as of payments, as one should not.
func asksAlone(mutant string) bool { return mutant == "ask_shipped" || mutant == "failed_ask_ends" }

var ofCheckout = regexp.MustCompile(`"checkout":(\{"id":"[^"]*","link_id":(?:null|"[^"]*"),"n":)`)

// withoutCheckouts hides that payments are asks.
func withoutCheckouts(body []byte) []byte { return ofCheckout.ReplaceAll(body, []byte(`"hidden":$1`)) }

// misheard makes the mistakes about asks: it ships on each that succeeds and not on the
// checkout, takes one that fails for the end of the order, or forgets what was paid twice. It
// reports whether the change is not heard.
func (d *driver[T]) misheard(c *till.Change) bool {
	if d.mutant == "overpaid_forgotten" {
		return c.Overpaid()
	}
	if !asksAlone(d.mutant) {
		return false
	}
	if c.Checkout != nil {
		return c.Paid() && d.mutant == "ask_shipped"
	}
	if c.Order == "" {
		c.Order = c.Reference
	}
	return c.Paid() && d.mutant != "ask_shipped" || c.Failed() && d.mutant != "failed_ask_ends"
}
