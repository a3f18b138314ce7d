package collect

import (
	"context"
	"errors"

	"till"
	"till/engine"
	"till/internal/request"
	"till/store"
	"till/store/lookup"
)

// CreateAtCounter is Create for a person who asks a customer at the counter. It
// first writes down who asks: a crash before the create leaves a row without a
// payment, never a payment without its person. It returns what Create returns,
// and CodeKeyReused if the key belongs to a payment that this person did not
// ask for.
func (c *Collector) CreateAtCounter(ctx context.Context, who engine.Client, person till.ID, r *Request) (Created, error) {
	key, err := till.ParseID(request.TextOf(r.IdempotencyKey))
	if err != nil {
		return c.Create(ctx, who, r) // which says what is wrong with it
	}
	write := func(tx *store.Tx) error { return writeCollector(ctx, tx, who.ID, key, person) }
	if err = c.c.Store.Update(ctx, write); errors.Is(err, store.ErrUnknownCommit) {
		err = c.c.Store.Update(ctx, write)
	}
	if err != nil {
		return Created{}, c.Unavailable("payment at the counter not created", err)
	}
	return c.Create(ctx, who, r)
}

func writeCollector(ctx context.Context, tx *store.Tx, client, key, person till.ID) error {
	asked, err := lookup.CollectorOf(ctx, tx, client, key)
	if err != nil || asked == person {
		return err
	}
	made, err := tx.PaymentByKey(ctx, client, key)
	if err != nil {
		return err
	}
	if made == nil && asked.IsZero() {
		return lookup.SetCollector(ctx, tx, client, key, person, tx.Now())
	}
	return till.Errorf(till.CodeKeyReused, "the key belongs to a payment that somebody else asked for")
}
