package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	till "github.com/till-project/till/sdk/go"
)

// buy writes and sends many orders, eight at a time, as customers do.
func (d *driver[T]) buy(ctx context.Context, c command) result {
	return each(c, func(_ int, one command) error {
		one.Do = "collect"
		err := d.write(ctx, one)
		var paid *till.AlreadyPaid
		if errors.As(err, &paid) {
			return nil // a customer who clicks again
		} else if err == nil {
			_, err = d.teller.Send(ctx, one.Order)
		}
		return err
	})
}

// each does something for many orders, eight at a time.
func each(c command, do func(i int, one command) error) result {
	var all sync.WaitGroup
	places := make(chan struct{}, 8)
	errs := make([]error, c.N)
	for i := range c.N {
		places <- struct{}{}
		all.Add(1)
		go func() {
			defer func() { <-places; all.Done() }()
			one := c
			one.Order = fmt.Sprint("b-", c.From+i)
			errs[i] = do(c.From+i, one)
		}()
	}
	all.Wait()
	return told(errors.Join(errs...), nil)
}

// giveBack writes and sends refunds of every second order, eight at a time: all of
// it, or a part. A refund that was written before it was killed is not written again.
func (d *driver[T]) giveBack(ctx context.Context, c command) result {
	return each(c, func(i int, one command) error {
		if i%2 != 0 {
			return nil
		}
		row, err := d.shop.Store.Newest(ctx, till.KindRefund, one.Order)
		if err == nil && row == nil {
			if i%4 == 0 {
				one.Value = ""
			}
			err = d.refund(ctx, one)
		}
		if err == nil {
			_, err = d.teller.SendRefund(ctx, one.Order)
		}
		return err
	})
}
