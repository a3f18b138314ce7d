package conform

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"
)

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// create makes a payment past the proxy and the SDK.
func (p *play) create(ctx context.Context, phone, reference string) error {
	return p.books.call(ctx, "POST", "/payments", map[string]any{
		"method": "mtn_momo", "country": "CG", "amount": map[string]string{"value": "5000", "currency": "XAF"},
		"customer": map[string]string{"phone": phone}, "idempotency_key": uuid(), "reference": reference,
	}, nil)
}

// refundElsewhere gives back a part of an order's payment past the proxy and the SDK, as an
// accountant does.
func (p *play) refundElsewhere(ctx context.Context, s *Step) error {
	of, err := p.books.of(ctx, s.Order)
	if err != nil || of == nil {
		return fmt.Errorf("no payment of %s: %w", s.Order, err)
	}
	return p.books.call(ctx, "POST", "/refunds", map[string]any{
		"payment_id": of.ID, "amount": map[string]string{"value": s.Value, "currency": of.Amount.Currency}, "idempotency_key": uuid(), "reference": s.Order,
	}, nil)
}

// fill makes many payments.
func (p *play) fill(ctx context.Context, s *Step) error {
	const workers = 8
	phone, _ := s.raw["phone"].(string)
	var all sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := w; i < s.N && errs[w] == nil; i += workers {
				errs[w] = p.create(ctx, phone, fmt.Sprintf("fill-%d", i))
			}
		}()
	}
	all.Wait()
	return errors.Join(errs...)
}

// startChurn makes payments and lets others change, until the scenario ends.
func (p *play) startChurn(ctx context.Context, s *Step) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			_ = p.create(ctx, "242061234567", fmt.Sprintf("churn-%d", i))
			_ = pause(ctx, time.Duration(max(s.Ms, 1))*time.Millisecond)
		}
	}()
	p.churn = func() { cancel(); <-done }
	return nil
}
