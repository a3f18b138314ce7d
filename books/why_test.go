package books_test

import (
	"slices"
	"testing"
	"time"

	"till"
	"till/books"
	"till/engine"
	"till/store"
)

// The table of sentences: every code, from the situation that it is for.
func TestExplain(t *testing.T) {
	t.Parallel()
	const now = till.Time(1_794_661_330_000_000)
	at := func(seconds int) till.Time { return now.Add(time.Duration(seconds) * time.Second) }
	xaf := func(n int64) till.Money { return till.Money{Minor: n, Currency: "XAF"} }
	payment := func(status till.Status, change func(p *store.PaymentRow)) *store.PaymentRow {
		p := &store.PaymentRow{Payment: till.Payment{Status: status, Amount: xaf(5000), Fee: 75, Connection: "mtn-congo", CreatedAt: at(-60), UpdatedAt: at(-30), ExpiresAt: at(240)}}
		if change != nil {
			change(p)
		}
		return p
	}
	sent := &store.Step{Sends: 1, SendStartedAt: at(-59), DueAt: at(15)}
	unsent := &store.Step{DueAt: at(1)}
	overdue := []*store.Case{{Kind: engine.CaseOverdue, OpenedAt: at(-10)}}
	for name, c := range map[string]struct {
		in   books.Situation
		want books.Why
	}{
		"stopped": {books.Situation{Subject: payment(till.Pending, nil).Subject(), Step: unsent, Breaker: &store.Breaker{State: store.Stopped, ChangedAt: at(-20), RetryAt: at(40)}},
			books.Why{Code: books.WhyUnsentStopped, Next: books.Operator, At: at(-20), Then: at(40), Until: at(240), NextAsk: at(1)}},
		"its turn": {books.Situation{Subject: payment(till.Pending, nil).Subject(), Step: unsent, Rate: 5},
			books.Why{Code: books.WhyUnsentTurn, Next: books.Us, Rate: 5, Until: at(240), NextAsk: at(1)}},
		"not yet": {books.Situation{Subject: payment(till.Pending, nil).Subject(), Step: unsent, Breaker: &store.Breaker{State: store.Passing}},
			books.Why{Code: books.WhyUnsent, Next: books.Us, Until: at(240), NextAsk: at(1)}},
		"held": {books.Situation{Subject: payment(till.Pending, nil).Subject(), Step: &store.Step{HeldAt: at(-5), DueAt: at(1)}},
			books.Why{Code: books.WhyHeld, Next: books.Us, At: at(-5), Until: at(240), NextAsk: at(1)}},
		"unsure": {books.Situation{Subject: payment(till.Pending, nil).Subject(), Step: sent, Last: &store.Attempt{Kind: store.AttemptCheck, LastAt: at(-3)}},
			books.Why{Code: books.WhyUnsure, Next: books.Operator, At: at(-59), NextAsk: at(15), AskedAt: at(-3)}},
		"waiting": {books.Situation{Subject: payment(till.Processing, nil).Subject(), Step: sent, HeldSince: at(-58)},
			books.Why{Code: books.WhyWaiting, Next: books.Customer, At: at(-58), Until: at(240), NextAsk: at(15)}},
		"over": {books.Situation{Subject: payment(till.Processing, func(p *store.PaymentRow) { p.ExpiresAt = at(-1) }).Subject(), Step: sent, HeldSince: at(-58)},
			books.Why{Code: books.WhyOver, Next: books.Operator, NextAsk: at(15)}},
		"attention": {books.Situation{Subject: payment(till.Processing, func(p *store.PaymentRow) { p.Attention = true; p.ExpiresAt = at(-1) }).Subject(), Step: sent, Cases: overdue},
			books.Why{Code: books.WhyAttention, Next: books.Us, At: at(-10), Then: at(15), Span: time.Minute, NextAsk: at(15)}},
		"mismatch": {books.Situation{Subject: payment(till.Processing, func(p *store.PaymentRow) { p.Attention = true }).Subject(), Cases: []*store.Case{{Kind: engine.CaseMismatch}}, Suspended: xaf(10_000)},
			books.Why{Code: books.WhyMismatch, Next: books.Us, Amount: xaf(10_000), Other: xaf(5000)}},
		"paid":      {books.Situation{Subject: payment(till.Success, nil).Subject()}, books.Why{Code: books.WhyPaid, At: at(-30), Amount: xaf(4925), Other: xaf(75)}},
		"paid free": {books.Situation{Subject: payment(till.Success, func(p *store.PaymentRow) { p.Fee = 0 }).Subject()}, books.Why{Code: books.WhyPaidFree, At: at(-30), Amount: xaf(5000)}},
		"failed": {books.Situation{Subject: payment(till.Failed, func(p *store.PaymentRow) { p.FailureReason = till.WrongPIN }).Subject()},
			books.Why{Code: books.WhyFailed, At: at(-30), Reason: till.WrongPIN}},
		"failed unsent": {books.Situation{Subject: payment(till.Failed, func(p *store.PaymentRow) { p.FailureReason = till.ProviderUnavailable }).Subject()},
			books.Why{Code: books.WhyFailedUnsent, At: at(-30), Reason: till.ProviderUnavailable}},
		"expired":  {books.Situation{Subject: payment(till.Expired, nil).Subject()}, books.Why{Code: books.WhyExpired, At: at(-30)}},
		"late":     {books.Situation{Subject: payment(till.Expired, func(p *store.PaymentRow) { p.LateEvent = 9 }).Subject(), LateAt: at(-2)}, books.Why{Code: books.WhyLate, At: at(-2)}},
		"reversed": {books.Situation{Subject: payment(till.Success, func(p *store.PaymentRow) { p.ReversedEvent = 9 }).Subject(), ReversedAt: at(-2), Debited: xaf(3000), Owed: xaf(2000)}, books.Why{Code: books.WhyReversed, At: at(-2), Amount: xaf(3000), Other: xaf(2000)}},
	} {
		c.in.Kind, c.in.Now = till.SubjectPayment, now
		c.want.Operator, c.want.Status = "mtn-congo", c.in.Subject.Status
		if c.want.Next == "" {
			c.want.Next = books.Nobody
		}
		if got := books.Explain(&c.in); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
		}
	}
}

// The same for payouts.
func TestExplainPayouts(t *testing.T) {
	t.Parallel()
	const now = till.Time(1_794_661_330_000_000)
	reserved := till.Money{Minor: 5200, Currency: "XAF"}
	row := func(status till.PayoutStatus) store.Subject {
		p := &store.PayoutRow{Payout: till.Payout{Status: status, Amount: till.Money{Minor: 5000, Currency: "XAF"}, Fee: 200, Connection: "mtn-congo", UpdatedAt: now - 5, ExpiresAt: now + 100}}
		return p.Subject()
	}
	sent := &store.Step{Sends: 1, SendStartedAt: now - 50, DueAt: now + 10}
	for name, c := range map[string]struct {
		in   books.Situation
		code books.WhyCode
		next books.Party
	}{
		"unsent":        {books.Situation{Subject: row(till.PayoutPending), Step: &store.Step{DueAt: now}}, books.WhyPayoutUnsent, books.Us},
		"unsent budget": {books.Situation{Subject: row(till.PayoutPending), Step: &store.Step{DueAt: now}, Rate: 3}, books.WhyPayoutUnsent, books.Us},
		"held":          {books.Situation{Subject: row(till.PayoutPending), Step: &store.Step{DueAt: now, HeldAt: now - 9}}, books.WhyHeld, books.Us},
		"stopped":       {books.Situation{Subject: row(till.PayoutPending), Step: &store.Step{}, Breaker: &store.Breaker{State: store.Stopped}}, books.WhyUnsentStopped, books.Operator},
		"unknown":       {books.Situation{Subject: row(till.PayoutPending), Step: sent}, books.WhyPayoutUnknown, books.Operator},
		"processing":    {books.Situation{Subject: row(till.PayoutProcessing), Step: sent}, books.WhyPayoutUnknown, books.Operator},
		"case":          {books.Situation{Subject: row(till.PayoutProcessing), Step: sent, Cases: []*store.Case{{Kind: engine.CaseOverdue}}}, books.WhyPayoutUnknown, books.Us},
		"paid":          {books.Situation{Subject: row(till.PayoutSuccess)}, books.WhyPayoutPaid, books.Nobody},
		"failed":        {books.Situation{Subject: row(till.PayoutFailed)}, books.WhyPayoutFailed, books.Nobody},
		"cancelled":     {books.Situation{Subject: row(till.PayoutCancelled)}, books.WhyPayoutCancelled, books.Nobody},
		"late":          {books.Situation{Subject: row(till.PayoutFailed), LateAt: now - 1}, books.WhyPayoutLate, books.Nobody},
	} {
		c.in.Kind, c.in.Now = till.SubjectPayout, now
		got := books.Explain(&c.in)
		if got.Code != c.code || got.Next != c.next || got.Amount != reserved {
			t.Errorf("%s: %s, next %s, %v; want %s, next %s, %v", name, got.Code, got.Next, got.Amount, c.code, c.next, reserved)
		}
	}
}

// What shares a time stands in the order of cause and effect, and what is to
// come is last.
func TestTimelineOrder(t *testing.T) {
	t.Parallel()
	event := func(kind till.EventKind, at till.Time) *store.EventRow {
		return &store.EventRow{Event: till.Event{Kind: kind, CreatedAt: at}}
	}
	s := &books.Story{Kind: till.SubjectPayment, Now: 50,
		Events:   []*store.EventRow{event(till.PaymentPending, 10), event(till.PaymentProcessing, 20)},
		Attempts: []*store.Attempt{{Kind: store.AttemptSubmit, StartedAt: 10}, {Kind: store.AttemptCheck, StartedAt: 20}},
		Step:     &store.Step{Sends: 1, DueAt: 60},
		Calls:    store.Callbacks{Count: 2, First: 15, Last: 18},
		Subject:  (&store.PaymentRow{Payment: till.Payment{Status: till.Processing, ExpiresAt: 90}}).Subject(),
	}
	var got []books.MomentKind
	for _, m := range s.Timeline() {
		got = append(got, m.Kind)
	}
	want := []books.MomentKind{books.MomentEvent, books.MomentSent, books.MomentCallback, books.MomentAsked, books.MomentEvent, books.MomentNextAsk, books.MomentEnd}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
