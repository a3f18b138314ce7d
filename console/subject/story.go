package subject

import (
	"context"
	"encoding/json"
	"strings"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
	"till/store/access"
	"till/store/webhooks"
	"till/story"
	"till/webhook"
)

// Going is the sentence that says what is going on, and who is next.
type Going struct {
	Tone      string
	Say, More string
	Next      string
	Until     till.Time // counts down; zero: nothing does
	LeftWord  string
	LeftSpan  string
}

// GoingOf puts the sentence into words.
func GoingOf(v *shell.Visit, s *story.Story, w story.Why, tone string) Going {
	g := Going{Tone: tone}
	switch w.Code { // the payment is paid, and that is not what matters now
	case story.WhyRefunding:
		g.Tone = "processing"
	case story.WhyRefundUnknown, story.WhyRefundReversed:
		g.Tone = "examine"
	}
	at := func(t till.Time) string { return v.Clock.Moment(t, v.Now) }
	operator := OperatorName(v, s)
	args := []any{"op", operator, "t", at(w.At), "t2", at(w.Then), "t3", at(w.Until), "until", at(w.Until),
		"n", w.Rate, "a", w.Amount, "b", w.Other, "d", look.Span(v.Words.Lang(), w.Span),
		"reason", Reason(v, w.Reason), "s", v.Words.T("state." + StateWord(string(s.Kind)+"s", w.Status))}
	g.Say = v.Words.T("why."+string(w.Code), args...)
	switch {
	case w.NextAsk.IsZero():
	case !w.AskedAt.IsZero():
		g.More = v.Words.T("going.asked", "op", operator, "t", at(w.AskedAt), "t2", at(max(w.NextAsk, v.Now)))
	case s.Step != nil && s.Step.Sends > 0:
		g.More = v.Words.T("going.asks", "op", operator, "t", at(max(w.NextAsk, v.Now)))
	}
	if s.Payment != nil && (w.Code == story.WhyPaid || w.Code == story.WhyPaidFree) {
		g.More = paidMore(v, s)
	}
	if w.Next != story.Nobody {
		g.Next = v.Words.T("next."+string(w.Next), "op", operator)
	}
	if w.Code == story.WhyWaiting {
		g.Until, g.LeftWord = w.Until, v.Words.T("going.left")
		g.LeftSpan = look.Span(v.Words.Lang(), w.Until.Sub(v.Now))
	}
	return g
}

// paidMore says under which receipt a payment was paid, and how long that took.
func paidMore(v *shell.Visit, s *story.Story) string {
	took := v.Words.T("going.took", "d", look.Span(v.Words.Lang(), PaidAt(s).Sub(s.Payment.CreatedAt)))
	if r := s.Payment.ProviderReference; r != "" {
		return v.Words.T("going.receipt", "receipt", r, "took", took)
	}
	return took
}

// Told is who was told about a payment or a payout, for those who may see webhooks.
type Told struct {
	Deliveries []*webhook.DeliveryView
	Endpoints  map[till.ID]*webhooks.Endpoint
	Troubles   map[store.Ref]*webhooks.Delivery // the last that went wrong at an endpoint that fails
	Keys       map[string]string                // the names of keys that acted, by id
}

// ReadStory reads what happened to a payment or a payout, and who was told.
func ReadStory(v *shell.Visit, kind till.SubjectKind, ref store.Ref) (s *story.Story, told *Told, err error) {
	told = &Told{Keys: map[string]string{}}
	err = v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		if s, err = story.ReadStory(ctx, tx, kind, ref); err != nil {
			return err
		}
		if err := told.nameKeys(ctx, tx, v.Client.ID, s); err != nil || !v.May(people.WebhooksSee) {
			return err
		}
		events := make([]*till.Event, 0, len(s.Events))
		for _, e := range s.Events {
			events = append(events, &e.Event)
		}
		for _, r := range s.Refunds {
			for _, e := range r.Events {
				events = append(events, &e.Event)
			}
		}
		if told.Deliveries, told.Endpoints, err = webhook.DeliveriesOf(ctx, tx, v.Client.ID, events); err != nil {
			return err
		}
		var failing []store.Ref
		for _, e := range told.Endpoints {
			if e.Enabled && !e.FailingSince.IsZero() {
				failing = append(failing, e.Ref())
			}
		}
		if len(failing) > 0 {
			told.Troubles, err = webhooks.Troubles(ctx, tx, failing)
		}
		return err
	})
	return s, told, err
}

// nameKeys reads the names of the keys that acted.
func (t *Told) nameKeys(ctx context.Context, tx *store.Tx, client till.ID, s *story.Story) error {
	for _, a := range s.Acts {
		id, key := strings.CutPrefix(a.Actor, "api:")
		if _, known := t.Keys[id]; !key || known {
			continue
		}
		k, err := access.Key(ctx, tx, client, id)
		if err != nil {
			return err
		}
		if t.Keys[id] = ""; k != nil {
			t.Keys[id] = k.Name
		}
	}
	return nil
}

// Who returns an actor as people call it.
func (t *Told) Who(v *shell.Visit, actor string) string {
	if id, key := strings.CutPrefix(actor, "api:"); key {
		if name := t.Keys[id]; name != "" {
			return v.Words.T("actor.key", "name", name)
		}
		return v.Words.T("actor.key", "name", id)
	}
	if user, command := strings.CutPrefix(actor, "cli:"); command {
		return v.Words.T("actor.command", "name", user)
	}
	return till.NameOfActor(actor)
}

// OperatorName returns what people call whom the money was asked from.
func OperatorName(v *shell.Visit, s *story.Story) string {
	if m, ok := till.MethodOf(s.Subject.Method); ok {
		return m.NameIn(s.Subject.Country)
	}
	return s.Subject.Connection
}

// ReadDocument returns the description of a document, and the document as
// people can read it, without the customer, whose phone it has.
func ReadDocument(document []byte) (description, text string) {
	var members map[string]json.RawMessage
	if len(document) == 0 || json.Unmarshal(append(append([]byte{'{'}, document...), '}'), &members) != nil {
		return "", ""
	}
	_ = json.Unmarshal(members["description"], &description) // what is no text is shown with the rest
	for _, name := range []string{"description", "customer", "recipient"} {
		delete(members, name)
	}
	for name, value := range members {
		if string(value) == "null" || string(value) == "{}" {
			delete(members, name)
		}
	}
	if len(members) == 0 {
		return description, ""
	}
	b, err := json.MarshalIndent(members, "", "  ")
	if err != nil {
		return description, ""
	}
	return description, string(b)
}

// listOf returns the list that has a payment, a payout or a refund, as addresses name it.
func listOf(noun till.Noun) string { return string(noun) + "s" }

// PaidAt returns when the money came in.
func PaidAt(s *story.Story) till.Time {
	for _, e := range s.Events {
		if e.Kind == till.PaymentSuccess {
			return e.CreatedAt
		}
	}
	if !s.LateAt.IsZero() {
		return s.LateAt
	}
	return s.Payment.UpdatedAt
}
