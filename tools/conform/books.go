package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// books are the service's own, read past the proxy and the SDK.
type books struct {
	base, key string
}

// payment is what the books say about a payment, payout, refund or checkout.
type payment struct {
	ID             string
	Status         string
	Reference      string
	IdempotencyKey string `json:"idempotency_key"`
	Amount         struct{ Value, Currency string }
	LateSuccessAt  *string                              `json:"late_success_at"`
	ReversedAt     *string                              `json:"reversed_at"`
	Refunds        struct{ Refunded, Refunding string } // of a payment
	PaymentID      string                               `json:"payment_id"` // of a refund or checkout
	URL            string                               // of a checkout
	State          string
	Late, Overpaid bool
	Asks           []struct{ Status string }
	Resolution     struct{ State string }
	Charge         struct {
		Items []struct{ Quantity json.Number }
	}
}

// event is an event with its exact bytes.
type event struct {
	ID       string
	Type     string
	Sequence int64
	Data     struct{ Payment, Payout, Refund, Checkout *payment }
	text     json.RawMessage
}

// mostBusy is how often a read is made again, a second apart, while the service is busy: it
// shares this machine with the shops.
const mostBusy = 20

func (b *books) call(ctx context.Context, method, path string, body, into any) error {
	for n := 0; ; n++ {
		status, err := b.try(ctx, method, path, body, into)
		if status != http.StatusServiceUnavailable || method != http.MethodGet || n == mostBusy {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func (b *books) try(ctx context.Context, method, path string, body, into any) (status int, err error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, b.base+path, reader)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Api-Key", b.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	if res.StatusCode >= 300 {
		return res.StatusCode, fmt.Errorf("%s %s: %s %s", method, path, res.Status, text)
	}
	if into == nil || len(text) == 0 {
		return res.StatusCode, nil
	}
	return res.StatusCode, json.Unmarshal(text, into)
}

// list reads all payments, payouts, refunds or checkouts, newest first.
func (b *books) list(ctx context.Context, noun string) ([]payment, error) {
	var all []payment
	for {
		var page struct {
			Items []payment
			Total int
		}
		if err := b.call(ctx, "GET", fmt.Sprintf("/%s?limit=200&offset=%d", noun, len(all)), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if len(all) >= page.Total || len(page.Items) == 0 {
			return all, nil
		}
	}
}

// of returns the newest payment, or payout, of an order; nil if there is none.
func (b *books) of(ctx context.Context, order string) (*payment, error) {
	for _, noun := range []string{"payments", "payouts"} {
		var page struct{ Items []payment }
		if err := b.call(ctx, "GET", "/"+noun+"?limit=1&reference="+url.QueryEscape(order), nil, &page); err != nil {
			if noun == "payouts" {
				return nil, nil // the key may not read them, so there are none
			}
			return nil, err
		}
		if len(page.Items) > 0 {
			return &page.Items[0], nil
		}
	}
	return nil, nil
}

// refundOf returns the newest refund of an order; nil if there is none.
func (b *books) refundOf(ctx context.Context, order string) (*payment, error) {
	return b.newest(ctx, "refunds", order)
}

// newest returns the newest of an order's refunds or checkouts; nil if there is none.
func (b *books) newest(ctx context.Context, noun, order string) (*payment, error) {
	var page struct{ Items []payment }
	if err := b.call(ctx, "GET", "/"+noun+"?limit=1&reference="+url.QueryEscape(order), nil, &page); err != nil || len(page.Items) == 0 {
		return nil, err
	}
	return &page.Items[0], nil
}

// events reads the whole log.
func (b *books) events(ctx context.Context) ([]event, error) {
	var all []event
	for after := int64(0); ; {
		var page struct {
			Items     []json.RawMessage
			NextAfter int64 `json:"next_after"`
		}
		if err := b.call(ctx, "GET", "/events?limit=200&after="+strconv.FormatInt(after, 10), nil, &page); err != nil {
			return nil, err
		}
		for _, text := range page.Items {
			e := event{text: text}
			if err := json.Unmarshal(text, &e); err != nil {
				return nil, err
			}
			all = append(all, e)
		}
		if page.NextAfter == after {
			return all, nil
		}
		after = page.NextAfter
	}
}

func (b *books) balances(ctx context.Context) (map[string]string, error) {
	var list struct {
		Items []struct{ Currency, Balance string }
	}
	if err := b.call(ctx, "GET", "/wallets", nil, &list); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, w := range list.Items {
		out[w.Currency] = w.Balance
	}
	return out, nil
}
