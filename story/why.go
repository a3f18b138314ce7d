package story

import (
	"slices"
	"time"

	"till"
	"till/engine"
	"till/ledger"
	"till/store"
	"till/store/admin"
)

// WhyCode names what is going on with a payment or payout. The console has a
// sentence for each, in each language.
type WhyCode string

// The codes.
const (
	WhyUnsentStopped WhyCode = "unsent_stopped" // not sent: the operator does not answer
	WhyUnsentTurn    WhyCode = "unsent_turn"    // not sent: the operator takes so many a second
	WhyUnsent        WhyCode = "unsent"         // not sent yet
	WhyHeld          WhyCode = "held"           // not sent: a person, a restore or a suspension holds it
	WhyUnsure        WhyCode = "unsure"         // sent, and no answer came
	WhyWaiting       WhyCode = "waiting"        // on the customer's phone, in time
	WhyOver          WhyCode = "over"           // the customer's time is over, and the operator says nothing
	WhyAttention     WhyCode = "attention"      // a person checks it
	WhyMismatch      WhyCode = "mismatch"       // the operator reports another amount
	WhyPaid          WhyCode = "paid"
	WhyPaidFree      WhyCode = "paid_free" // paid, without a fee
	WhyFailed        WhyCode = "failed"
	WhyFailedUnsent  WhyCode = "failed_unsent" // it never left us
	WhyExpired       WhyCode = "expired"
	WhyLate          WhyCode = "late"     // the money came after the end
	WhyReversed      WhyCode = "reversed" // the operator took the money back

	WhyRefunding      WhyCode = "refunding"       // of a paid payment: money is on the way back
	WhyRefunded       WhyCode = "refunded"        // all of it went back
	WhyRefundedPart   WhyCode = "refunded_part"   // a part of it went back
	WhyRefundUnknown  WhyCode = "refund_unknown"  // it may have gone back
	WhyRefundReversed WhyCode = "refund_reversed" // the operator took the money back, and it went back, too

	WhyPayoutUnsent    WhyCode = "payout_unsent"    // reserved, not sent yet
	WhyPayoutUnknown   WhyCode = "payout_unknown"   // it may have been paid
	WhyPayoutPaid      WhyCode = "payout_paid"      // the recipient has it
	WhyPayoutFailed    WhyCode = "payout_failed"    // refused; the reserve is released
	WhyPayoutCancelled WhyCode = "payout_cancelled" // taken back before anything was sent
	WhyPayoutLate      WhyCode = "payout_late"      // paid after it had failed or was cancelled
)

// WhyCodes lists every code.
var WhyCodes = []WhyCode{WhyUnsentStopped, WhyUnsentTurn, WhyUnsent, WhyHeld, WhyUnsure, WhyWaiting, WhyOver, WhyAttention, WhyMismatch,
	WhyPaid, WhyPaidFree, WhyFailed, WhyFailedUnsent, WhyExpired, WhyLate, WhyReversed,
	WhyRefunding, WhyRefunded, WhyRefundedPart, WhyRefundUnknown, WhyRefundReversed,
	WhyPayoutUnsent, WhyPayoutUnknown, WhyPayoutPaid, WhyPayoutFailed, WhyPayoutCancelled, WhyPayoutLate}

// Party is who is next.
type Party string

// The parties. You is the merchant.
const (
	Nobody   Party = "nobody"
	Customer Party = "customer"
	Operator Party = "operator"
	Us       Party = "us"
	You      Party = "you"
)

// Parties lists every party.
var Parties = []Party{Nobody, Customer, Operator, Us, You}

// Situation is all that the sentence depends on. Times are the database's.
type Situation struct {
	Kind    till.SubjectKind
	Subject store.Subject
	Step    *store.Step    // nil: none is scheduled
	Last    *store.Attempt // the newest call; nil: none was made
	Breaker *admin.Breaker // of the connection; nil: nothing is known against it
	Rate    int            // sends a second that the connection takes; 0: no limit
	Cases   []*store.Case  // open ones

	HeldSince  till.Time  // when the operator was first seen to hold the request
	Suspended  till.Money // put aside; zero: nothing
	LateAt     till.Time  // when money came, or left, after the end
	ReversedAt till.Time
	Debited    till.Money // of a reversal: what the wallet gave
	Owed       till.Money // of a reversal: what it could not give
	Sums       till.RefundSums
	Refund     *Refund   // of a payment: the one that is open, or else the newest
	BackAt     till.Time // when money of it last went back to the customer
	Now        till.Time
}

// Why is what is going on: a code, who is next, and the values of the
// sentence. A value that the code does not use is zero.
type Why struct {
	Code     WhyCode
	Next     Party
	Operator string // the connection
	At       till.Time
	Until    till.Time // a deadline, which counts down
	Then     till.Time // when something is tried or asked again
	Span     time.Duration
	Amount   till.Money
	Other    till.Money
	Reason   till.FailureReason
	Status   string
	Rate     int
	AskedAt  till.Time // the last check, beside the sentence
	NextAsk  till.Time // the next one
}

// Explain returns what is going on with a payment or payout. It reads
// nothing: equal situations have equal sentences.
func Explain(s *Situation) Why {
	w := Why{Operator: s.Subject.Connection, Status: s.Subject.Status, Next: Nobody}
	switch {
	case s.Kind == till.SubjectPayout:
		s.explainPayout(&w)
	case s.Subject.Final:
		s.explainEnded(&w)
	default:
		s.explainOpen(&w)
	}
	if s.Step != nil && !s.Subject.Final {
		w.NextAsk = s.Step.DueAt
		if s.Last != nil && s.Last.Kind == store.AttemptCheck {
			w.AskedAt = s.Last.LastAt
		}
	}
	return w
}

// explainEnded explains a payment that has its final status.
func (s *Situation) explainEnded(w *Why) {
	p := &s.Subject
	w.At = *p.UpdatedAt
	switch {
	case s.explainRefunds(w):
	case !s.ReversedAt.IsZero():
		w.Code, w.At, w.Amount, w.Other = WhyReversed, s.ReversedAt, s.Debited, s.Owed
	case !s.LateAt.IsZero():
		w.Code, w.At = WhyLate, s.LateAt
	case p.Settled && p.Fee == 0:
		w.Code, w.Amount = WhyPaidFree, p.Amount
	case p.Settled:
		w.Code, w.Amount, w.Other = WhyPaid, net(p), till.Money{Minor: p.Fee, Currency: p.Amount.Currency}
	case s.open(engine.CaseMismatch) != nil:
		s.explainMismatch(w)
	case p.Status == string(till.Expired):
		w.Code = WhyExpired
	case *p.FailureReason == till.ProviderUnavailable:
		w.Code, w.Reason = WhyFailedUnsent, *p.FailureReason
	default:
		w.Code, w.Reason = WhyFailed, *p.FailureReason
	}
}

func net(p *store.Subject) till.Money {
	return till.Money{Minor: p.Amount.Minor - p.Fee, Currency: p.Amount.Currency}
}

// explainOpen explains a payment that has not ended.
func (s *Situation) explainOpen(w *Why) {
	p := &s.Subject
	switch {
	case s.open(engine.CaseMismatch) != nil:
		s.explainMismatch(w)
	case *p.Attention || len(s.Cases) > 0:
		s.explainAttention(w)
	case s.Step != nil && engine.Unsent(s.Step):
		s.explainUnsent(w)
	case !s.HeldSince.IsZero() && s.Now < p.ExpiresAt:
		w.Code, w.Next, w.At, w.Until = WhyWaiting, Customer, s.HeldSince, p.ExpiresAt
	case s.Now >= p.ExpiresAt:
		w.Code, w.Next = WhyOver, Operator
	default:
		w.Code, w.Next, w.At = WhyUnsure, Operator, p.CreatedAt
		if s.Step != nil && !s.Step.SendStartedAt.IsZero() {
			w.At = s.Step.SendStartedAt
		}
	}
}

// explainUnsent explains what was certainly not sent.
func (s *Situation) explainUnsent(w *Why) {
	p := &s.Subject
	w.Next, w.Until = Us, p.ExpiresAt
	switch {
	case s.Step.HeldAt != 0:
		w.Code, w.At = WhyHeld, s.Step.HeldAt
	case s.Breaker != nil && s.Breaker.State != admin.Passing:
		w.Code, w.Next, w.At, w.Then = WhyUnsentStopped, Operator, s.Breaker.ChangedAt, s.Breaker.RetryAt
	case s.Rate > 0:
		w.Code, w.Rate = WhyUnsentTurn, s.Rate
	default:
		w.Code = WhyUnsent
	}
}

// explainMismatch explains money that moved and is not what was asked for.
func (s *Situation) explainMismatch(w *Why) {
	w.Code, w.Next, w.Amount, w.Other = WhyMismatch, Us, s.Suspended, s.Subject.Amount
}

// explainAttention explains what is on the list for a person.
func (s *Situation) explainAttention(w *Why) {
	w.Code, w.Next = WhyAttention, Us
	w.At, w.Span = *s.Subject.UpdatedAt, s.Now.Sub(s.Subject.CreatedAt)
	if len(s.Cases) > 0 {
		w.At = s.Cases[0].OpenedAt
	}
	if s.Step != nil {
		w.Then = s.Step.DueAt
	}
}

// explainPayout explains a payout.
func (s *Situation) explainPayout(w *Why) {
	p := &s.Subject
	reserved := till.Money{Minor: p.Amount.Minor + p.Fee, Currency: p.Amount.Currency}
	w.Amount, w.At = reserved, *p.UpdatedAt
	switch {
	case !s.LateAt.IsZero():
		w.Code, w.At = WhyPayoutLate, s.LateAt
	case p.Status == string(till.PayoutSuccess):
		w.Code = WhyPayoutPaid
	case p.Status == string(till.PayoutCancelled):
		w.Code = WhyPayoutCancelled
	case p.Status == string(till.PayoutFailed):
		w.Code, w.Reason = WhyPayoutFailed, *p.FailureReason
	case s.Step != nil && engine.Unsent(s.Step):
		s.explainUnsent(w)
		w.Amount = reserved
		if w.Code == WhyUnsent || w.Code == WhyUnsentTurn {
			w.Code = WhyPayoutUnsent
		}
	default:
		w.Code, w.Next = WhyPayoutUnknown, Operator
		if len(s.Cases) > 0 {
			w.Next = Us
		}
	}
}

// open returns the open case of a kind, nil if there is none.
func (s *Situation) open(kind string) *store.Case {
	i := slices.IndexFunc(s.Cases, func(c *store.Case) bool { return c.Kind == kind })
	if i < 0 {
		return nil
	}
	return s.Cases[i]
}

// takenBack returns what a reversal took from the wallet, and what it could
// not.
func takenBack(lines []*ledger.Transaction, owed []store.Owing, currency string) (debited, owes till.Money) {
	debited.Currency, owes.Currency = currency, currency
	for _, t := range lines {
		if t.Type == string(ledger.CollectionReversal) {
			debited.Minor += t.Amount.Minor
		}
	}
	for _, o := range owed {
		if o.Kind == ledger.CollectionReversal {
			owes.Minor += o.Amount.Minor
		}
	}
	return debited, owes
}
