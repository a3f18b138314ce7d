package trigger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"till"
	"till/internal/dev/remote"
)

// pollInterval is how often the events of a subject are read while a story is watched.
const pollInterval = 200 * time.Millisecond

// slack is how much longer than the customer's time a story may take.
const slack = 60 * time.Second

// Wish is what should happen.
type Wish struct {
	Name string         // a story or an event
	Body map[string]any // members of the body that are given; the others are chosen
	Key  string         // the idempotency key, unless the body has one
}

// Happened is what was made to happen.
type Happened struct {
	Story  Story
	Answer json.RawMessage // the payment, payout, refund or endpoint as the service wrote it
	First  bool            // a payment came before it, because the wallet had too little
	Paid   string          // the id of the payment that a refund gives back
	limit  time.Duration
}

// subject is what the command shows of an answer.
type subject struct {
	ID        string                 `json:"id"`
	Status    string                 `json:"status"`
	Reference string                 `json:"reference"`
	Customer  struct{ Phone string } `json:"customer"`
	Recipient struct{ Phone string } `json:"recipient"`
}

func (h *Happened) subject() (s subject) {
	_ = json.Unmarshal(h.Answer, &s) // what cannot be read is not shown
	return s
}

// ID returns the id of the payment, payout, refund or endpoint.
func (h *Happened) ID() string { return h.subject().ID }

// Status returns its status, as last read.
func (h *Happened) Status() string { return h.subject().Status }

// Reference returns its reference.
func (h *Happened) Reference() string { return h.subject().Reference }

// Do plays a story.
func Do(ctx context.Context, c *remote.Client, w Wish) (*Happened, error) {
	if w.Body == nil {
		w.Body = map[string]any{}
	}
	if w.Name == endpointDisabled {
		return disableEndpoint(ctx, c, w.Body)
	}
	stories, err := Stories(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := choose(stories, w.Name)
	if err != nil {
		return nil, err
	}
	at, err := chooseMarket(ctx, c, s.Subject, w.Body)
	if err != nil {
		return nil, err
	}
	if err := complete(w.Body, s, at, w.Key, "TRIGGER-"+strings.ToUpper(w.Key[:4])); err != nil {
		return nil, err
	}
	h := &Happened{Story: s, limit: time.Duration(at.window)*time.Second + slack}
	wanted := w.Body
	if s.Subject == "refund" { // the body is that of the payment
		if h.Paid, err = h.pay(ctx, c, w.Body); err != nil {
			return nil, err
		}
		wanted = map[string]any{"payment_id": h.Paid, "idempotency_key": w.Key, "reference": w.Body["reference"]}
	}
	h.Answer, err = create(ctx, c, s.Subject, wanted)
	if till.ErrorCode(err) == till.CodeInsufficientBalance {
		if err = collectFirst(ctx, c, w.Body, stories); err == nil {
			h.First = true
			h.Answer, err = create(ctx, c, s.Subject, wanted)
		}
	}
	if err == nil && s.cancel {
		err = c.Post(ctx, "/"+s.Subject+"s/"+h.ID()+"/cancel", []byte("{}"), &h.Answer)
	}
	return h, err
}

// pay makes the payment that a refund gives back, and waits until it is paid.
func (h *Happened) pay(ctx context.Context, c *remote.Client, body map[string]any) (id string, err error) {
	made, err := create(ctx, c, "payment", body)
	if err != nil {
		return "", err
	}
	first := &Happened{Story: Story{Subject: "payment", Events: []string{string(till.PaymentSuccess)}}, Answer: made, limit: h.limit}
	if err := first.Watch(ctx, c, func(Event) error { return nil }); err != nil {
		return "", fmt.Errorf("the payment that a refund gives back: %w", err)
	}
	return first.ID(), nil
}

// create posts a body, which has its idempotency key.
func create(ctx context.Context, c *remote.Client, subject string, body map[string]any) (out json.RawMessage, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	err = c.Post(ctx, "/"+subject+"s", text, &out)
	return out, err
}

// collectFirst brings the money into the wallet that a payout needs.
func collectFirst(ctx context.Context, c *remote.Client, payout map[string]any, stories []Story) error {
	s, err := choose(stories, string(till.PaymentSuccess))
	if err != nil {
		return err
	}
	body := map[string]any{"method": payout["method"], "country": payout["country"], "amount": payout["amount"]}
	at, err := chooseMarket(ctx, c, "payment", body)
	if err != nil {
		return err
	}
	key := till.NewID(till.TimeOf(time.Now())).String()
	if err := complete(body, s, at, key, "for a payout"); err != nil {
		return err
	}
	made, err := create(ctx, c, "payment", body)
	if err != nil {
		return fmt.Errorf("the wallet has too little, and a payment that fills it cannot be made: %w", err)
	}
	first := &Happened{Story: s, Answer: made, limit: time.Duration(at.window)*time.Second + slack}
	return first.Watch(ctx, c, func(Event) error { return nil })
}

// disableEndpoint disables a webhook endpoint, as days of failures would.
func disableEndpoint(ctx context.Context, c *remote.Client, body map[string]any) (*Happened, error) {
	id, _ := body["endpoint_id"].(string)
	if id == "" {
		var list struct {
			Items []struct {
				ID      string `json:"id"`
				URL     string `json:"url"`
				Enabled bool   `json:"enabled"`
			} `json:"items"`
		}
		if err := c.Get(ctx, "/webhook-endpoints", 0, &list); err != nil {
			return nil, err
		}
		var enabled []string
		for _, e := range list.Items {
			if e.Enabled {
				id = e.ID
				enabled = append(enabled, e.ID+" ("+e.URL+")")
			}
		}
		switch len(enabled) {
		case 0:
			return nil, errors.New("the client has no enabled webhook endpoint: register one with POST /webhook-endpoints")
		case 1:
		default:
			return nil, fmt.Errorf("say which webhook endpoint, as --set endpoint_id=%s; there are %s", id, strings.Join(enabled, ", "))
		}
	}
	h := &Happened{Story: Story{Subject: "webhook_endpoint", Name: "disabled", Description: "The endpoint is disabled, as after five days of failures.", Status: "disabled", Events: []string{endpointDisabled}}}
	err := c.Post(ctx, "/sandbox/webhook-endpoints/"+id+"/disable", []byte("{}"), &h.Answer)
	return h, err
}

// Event is one event of a story.
type Event struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	CreatedAt string `json:"created_at"`
	Sequence  int64  `json:"sequence"`
}

// Watch calls f with each event until the story has ended. A payment whose phone was given
// may play another story; it has ended when its status is final.
func (h *Happened) Watch(ctx context.Context, c *remote.Client, f func(Event) error) error {
	if h.Story.Subject == "webhook_endpoint" {
		return nil // its one event is there
	}
	path := "/" + h.Story.Subject + "s/" + h.ID()
	last := h.Story.Events[len(h.Story.Events)-1]
	seen, asPlanned := 0, strings.HasSuffix(h.phone(), h.Story.EndsIn)
	for deadline := time.Now().Add(h.limit); ; {
		var list struct {
			Items []Event `json:"items"`
		}
		if err := c.Get(ctx, path+"/events", 0, &list); err != nil {
			return err
		}
		for _, e := range list.Items[min(seen, len(list.Items)):] {
			if err := f(e); err != nil {
				return err
			}
			seen++
			if asPlanned && e.Type == last || !asPlanned && final(e.Type) {
				return c.Get(ctx, path, 0, &h.Answer)
			}
		}
		if time.Now().After(deadline) {
			return till.Errorf("story_not_ended", "%s did not come within %s", last, h.limit)
		}
		timer := time.NewTimer(pollInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// phone returns the phone number that plays the story.
func (h *Happened) phone() string {
	s := h.subject()
	return s.Customer.Phone + s.Recipient.Phone // it has one of them
}

func final(kind string) bool {
	_, status, _ := strings.Cut(kind, ".")
	switch status {
	case "success", "failed", "expired", "cancelled":
		return true
	}
	return false
}
