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
)

// books are the service's own, read past the proxy and the SDK.
type books struct {
	base, key string
}

// payment is what the books say about a payment or payout.
type payment struct {
	ID             string
	Status         string
	Reference      string
	IdempotencyKey string `json:"idempotency_key"`
	Amount         struct{ Value, Currency string }
	LateSuccessAt  *string `json:"late_success_at"`
	ReversedAt     *string `json:"reversed_at"`
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
	Data     struct{ Payment, Payout *payment }
	text     json.RawMessage
}

func (b *books) call(ctx context.Context, method, path string, body, into any) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, b.base+path, reader)
	if err != nil {
		return err
	}
	req.Header.Set("X-Api-Key", b.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s %s", method, path, res.Status, text)
	}
	if into == nil || len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, into)
}

// list reads all payments or payouts, newest first.
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
