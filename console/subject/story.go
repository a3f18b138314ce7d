package subject

import (
	"context"
	"encoding/json"

	"till"
	"till/console/look"
	"till/console/shell"
	"till/people"
	"till/store"
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
	at := func(t till.Time) string { return v.Clock.Moment(t, v.Now) }
	operator := OperatorName(v, s)
	args := []any{"op", operator, "t", at(w.At), "t2", at(w.Then), "t3", at(w.Until), "until", at(w.Until),
		"n", w.Rate, "a", w.Amount, "b", w.Other, "d", look.Span(v.Words.Lang(), w.Span),
		"reason", Reason(v, w.Reason), "s", v.Words.T("state." + StateWord(listOf(s.Kind), w.Status))}
	g.Say = v.Words.T("why."+string(w.Code), args...)
	switch {
	case w.NextAsk.IsZero():
	case !w.AskedAt.IsZero():
		g.More = v.Words.T("going.asked", "op", operator, "t", at(w.AskedAt), "t2", at(max(w.NextAsk, v.Now)))
	case s.Step != nil && s.Step.Sends > 0:
		g.More = v.Words.T("going.asks", "op", operator, "t", at(max(w.NextAsk, v.Now)))
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

// ReadStory reads what happened to a payment or a payout and, for those who may
// see webhooks, the deliveries of its events with their endpoints.
func ReadStory(v *shell.Visit, kind till.SubjectKind, ref store.Ref) (s *story.Story, views []*webhook.DeliveryView, endpoints map[till.ID]*store.Endpoint, err error) {
	err = v.View(func(ctx context.Context, tx *store.Tx) (err error) {
		if s, err = story.ReadStory(ctx, tx, kind, ref); err != nil || !v.May(people.WebhooksSee) {
			return err
		}
		events := make([]*till.Event, len(s.Events))
		for i, e := range s.Events {
			events[i] = &e.Event
		}
		views, endpoints, err = webhook.DeliveriesOf(ctx, tx, v.Client.ID, events)
		return err
	})
	return s, views, endpoints, err
}

// OperatorName returns what people call whom the money was asked from.
func OperatorName(v *shell.Visit, s *story.Story) string {
	if m, ok := till.MethodOf(s.Subject.Method); ok {
		return m.Name
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

func listOf(kind till.SubjectKind) string { return string(kind) + "s" }

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
