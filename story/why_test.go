package story_test

import (
	"slices"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/store"
	"till/store/admin"
	"till/story"
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
	sums := func(refunding, refunded, late int64) till.RefundSums {
		return till.RefundSums{Amount: 5000, Refunding: refunding, Refunded: refunded, Late: late}
	}
	refund := func(status till.PayoutStatus, state till.ResolutionState, attention bool) *story.Refund {
		return &story.Refund{PayoutRow: &store.PayoutRow{Attention: attention, Payout: till.Payout{PaymentID: till.ID{1}, Status: status, Amount: xaf(3000), CreatedAt: at(-20), Resolution: till.Resolution{State: state}}}}
	}
	sent := &store.Step{Sends: 1, SendStartedAt: at(-59), DueAt: at(15)}
	unsent := &store.Step{DueAt: at(1)}
	overdue := []*store.Case{{Kind: engine.CaseOverdue, OpenedAt: at(-10)}}
	for name, c := range map[string]struct {
		in   story.Situation
		want story.Why
	}{
		"stopped": {story.Situation{Subject: payment(till.Pending, nil).Subject(), Step: unsent, Breaker: &admin.Breaker{State: admin.Stopped, ChangedAt: at(-20), RetryAt: at(40)}},
			story.Why{Code: story.WhyUnsentStopped, Next: story.Operator, At: at(-20), Then: at(40), Until: at(240), NextAsk: at(1)}},
		"its turn": {story.Situation{Subject: payment(till.Pending, nil).Subject(), Step: unsent, Rate: 5},
			story.Why{Code: story.WhyUnsentTurn, Next: story.Us, Rate: 5, Until: at(240), NextAsk: at(1)}},
		"not yet": {story.Situation{Subject: payment(till.Pending, nil).Subject(), Step: unsent, Breaker: &admin.Breaker{State: admin.Passing}},
			story.Why{Code: story.WhyUnsent, Next: story.Us, Until: at(240), NextAsk: at(1)}},
		"held": {story.Situation{Subject: payment(till.Pending, nil).Subject(), Step: &store.Step{HeldAt: at(-5), DueAt: at(1)}},
			story.Why{Code: story.WhyHeld, Next: story.Us, At: at(-5), Until: at(240), NextAsk: at(1)}},
		"unsure": {story.Situation{Subject: payment(till.Pending, nil).Subject(), Step: sent, Last: &store.Attempt{Kind: store.AttemptCheck, LastAt: at(-3)}},
			story.Why{Code: story.WhyUnsure, Next: story.Operator, At: at(-59), NextAsk: at(15), AskedAt: at(-3)}},
		"waiting": {story.Situation{Subject: payment(till.Processing, nil).Subject(), Step: sent, HeldSince: at(-58)},
			story.Why{Code: story.WhyWaiting, Next: story.Customer, At: at(-58), Until: at(240), NextAsk: at(15)}},
		"over": {story.Situation{Subject: payment(till.Processing, func(p *store.PaymentRow) { p.ExpiresAt = at(-1) }).Subject(), Step: sent, HeldSince: at(-58)},
			story.Why{Code: story.WhyOver, Next: story.Operator, NextAsk: at(15)}},
		"attention": {story.Situation{Subject: payment(till.Processing, func(p *store.PaymentRow) { p.Attention = true; p.ExpiresAt = at(-1) }).Subject(), Step: sent, Cases: overdue},
			story.Why{Code: story.WhyAttention, Next: story.Us, At: at(-10), Then: at(15), Span: time.Minute, NextAsk: at(15)}},
		"mismatch": {story.Situation{Subject: payment(till.Processing, func(p *store.PaymentRow) { p.Attention = true }).Subject(), Cases: []*store.Case{{Kind: engine.CaseMismatch}}, Suspended: xaf(10_000)},
			story.Why{Code: story.WhyMismatch, Next: story.Us, Amount: xaf(10_000), Other: xaf(5000)}},
		"paid":      {story.Situation{Subject: payment(till.Success, nil).Subject()}, story.Why{Code: story.WhyPaid, At: at(-30), Amount: xaf(4925), Other: xaf(75)}},
		"paid free": {story.Situation{Subject: payment(till.Success, func(p *store.PaymentRow) { p.Fee = 0 }).Subject()}, story.Why{Code: story.WhyPaidFree, At: at(-30), Amount: xaf(5000)}},
		"failed": {story.Situation{Subject: payment(till.Failed, func(p *store.PaymentRow) { p.FailureReason = till.WrongPIN }).Subject()},
			story.Why{Code: story.WhyFailed, At: at(-30), Reason: till.WrongPIN}},
		"failed unsent": {story.Situation{Subject: payment(till.Failed, func(p *store.PaymentRow) { p.FailureReason = till.ProviderUnavailable }).Subject()},
			story.Why{Code: story.WhyFailedUnsent, At: at(-30), Reason: till.ProviderUnavailable}},
		"expired":  {story.Situation{Subject: payment(till.Expired, nil).Subject()}, story.Why{Code: story.WhyExpired, At: at(-30)}},
		"late":     {story.Situation{Subject: payment(till.Expired, func(p *store.PaymentRow) { p.LateEvent = 9 }).Subject(), LateAt: at(-2)}, story.Why{Code: story.WhyLate, At: at(-2)}},
		"reversed": {story.Situation{Subject: payment(till.Success, func(p *store.PaymentRow) { p.ReversedEvent = 9 }).Subject(), ReversedAt: at(-2), Debited: xaf(3000), Owed: xaf(2000)}, story.Why{Code: story.WhyReversed, At: at(-2), Amount: xaf(3000), Other: xaf(2000)}},
		"refunding": {story.Situation{Subject: payment(till.Success, nil).Subject(), Sums: sums(3000, 0, 0), Refund: refund(till.PayoutProcessing, till.Waiting, false)},
			story.Why{Code: story.WhyRefunding, Next: story.Operator, At: at(-20), Amount: xaf(3000)}},
		"refund unknown": {story.Situation{Subject: payment(till.Success, nil).Subject(), Sums: sums(3000, 0, 0), Refund: refund(till.PayoutProcessing, till.Querying, false)},
			story.Why{Code: story.WhyRefundUnknown, Next: story.Operator, At: at(-20), Amount: xaf(3000)}},
		"refund to examine": {story.Situation{Subject: payment(till.Success, nil).Subject(), Sums: sums(3000, 1000, 0), Refund: refund(till.PayoutProcessing, till.NeedsAttention, true)},
			story.Why{Code: story.WhyRefundUnknown, Next: story.Us, At: at(-20), Amount: xaf(3000)}},
		"refunded in part": {story.Situation{Subject: payment(till.Success, nil).Subject(), Sums: sums(0, 1000, 500), Refund: refund(till.PayoutSuccess, till.Waiting, false), BackAt: at(-4)},
			story.Why{Code: story.WhyRefundedPart, At: at(-4), Amount: xaf(1500), Other: xaf(3500)}},
		"refunded": {story.Situation{Subject: payment(till.Success, nil).Subject(), Sums: sums(0, 5000, 0), Refund: refund(till.PayoutSuccess, till.Waiting, false), BackAt: at(-4)},
			story.Why{Code: story.WhyRefunded, At: at(-4), Amount: xaf(5000)}},
		"a refund that failed": {story.Situation{Subject: payment(till.Success, nil).Subject(), Sums: sums(0, 0, 0), Refund: refund(till.PayoutFailed, till.Waiting, false)},
			story.Why{Code: story.WhyPaid, At: at(-30), Amount: xaf(4925), Other: xaf(75)}},
		"refunded and reversed": {story.Situation{Subject: payment(till.Success, func(p *store.PaymentRow) { p.ReversedEvent = 9 }).Subject(), ReversedAt: at(-2), Sums: sums(1000, 2000, 0), Refund: refund(till.PayoutProcessing, till.Waiting, false)},
			story.Why{Code: story.WhyRefundReversed, Next: story.Us, At: at(-2), Amount: xaf(3000)}},
	} {
		c.in.Kind, c.in.Now = till.SubjectPayment, now
		c.want.Operator, c.want.Status = "mtn-congo", c.in.Subject.Status
		if c.want.Next == "" {
			c.want.Next = story.Nobody
		}
		if got := story.Explain(&c.in); got != c.want {
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
		in   story.Situation
		code story.WhyCode
		next story.Party
	}{
		"unsent":        {story.Situation{Subject: row(till.PayoutPending), Step: &store.Step{DueAt: now}}, story.WhyPayoutUnsent, story.Us},
		"unsent budget": {story.Situation{Subject: row(till.PayoutPending), Step: &store.Step{DueAt: now}, Rate: 3}, story.WhyPayoutUnsent, story.Us},
		"held":          {story.Situation{Subject: row(till.PayoutPending), Step: &store.Step{DueAt: now, HeldAt: now - 9}}, story.WhyHeld, story.Us},
		"stopped":       {story.Situation{Subject: row(till.PayoutPending), Step: &store.Step{}, Breaker: &admin.Breaker{State: admin.Stopped}}, story.WhyUnsentStopped, story.Operator},
		"unknown":       {story.Situation{Subject: row(till.PayoutPending), Step: sent}, story.WhyPayoutUnknown, story.Operator},
		"processing":    {story.Situation{Subject: row(till.PayoutProcessing), Step: sent}, story.WhyPayoutUnknown, story.Operator},
		"case":          {story.Situation{Subject: row(till.PayoutProcessing), Step: sent, Cases: []*store.Case{{Kind: engine.CaseOverdue}}}, story.WhyPayoutUnknown, story.Us},
		"paid":          {story.Situation{Subject: row(till.PayoutSuccess)}, story.WhyPayoutPaid, story.Nobody},
		"failed":        {story.Situation{Subject: row(till.PayoutFailed)}, story.WhyPayoutFailed, story.Nobody},
		"cancelled":     {story.Situation{Subject: row(till.PayoutCancelled)}, story.WhyPayoutCancelled, story.Nobody},
		"late":          {story.Situation{Subject: row(till.PayoutFailed), LateAt: now - 1}, story.WhyPayoutLate, story.Nobody},
	} {
		c.in.Kind, c.in.Now = till.SubjectPayout, now
		got := story.Explain(&c.in)
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
	s := &story.Story{Kind: till.SubjectPayment, Now: 50,
		Events:   []*store.EventRow{event(till.PaymentPending, 10), event(till.PaymentProcessing, 20)},
		Attempts: []*store.Attempt{{Kind: store.AttemptSubmit, StartedAt: 10}, {Kind: store.AttemptCheck, StartedAt: 20}},
		Step:     &store.Step{Sends: 1, DueAt: 60},
		Calls:    store.Callbacks{Count: 2, First: 15, Last: 18},
		Subject:  (&store.PaymentRow{Payment: till.Payment{Status: till.Processing, ExpiresAt: 90}}).Subject(),
	}
	var got []story.MomentKind
	for _, m := range s.Timeline() {
		got = append(got, m.Kind)
	}
	want := []story.MomentKind{story.MomentEvent, story.MomentSent, story.MomentCallback, story.MomentAsked, story.MomentEvent, story.MomentNextAsk, story.MomentEnd}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
