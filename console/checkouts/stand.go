package checkouts

import (
	"slices"

	"till"
	"till/store"
)

// stand is how a checkout stands. It is read from what its asks brought, and not from its state
// alone, which is moved a moment after the money came.
type stand string

// The stands.
const (
	untried   stand = "open"      // nobody was asked
	tried     stand = "tried"     // the last ask brought no money; another may be made
	spent     stand = "spent"     // as many asks as there may be
	unsent    stand = "unsent"    // an ask is written down, and its payment is not made
	live      stand = "live"      // an ask is under way, in time
	unsure    stand = "unsure"    // an ask's time is over, and the operator has not said how it ended
	examined  stand = "examine"   // a person has to look at an ask
	paid      stand = "paid"      // once
	late      stand = "late"      // once, after it had ended
	twice     stand = "twice"     // more than once: one payment is too much
	repaying  stand = "repaying"  // the same, and it is on its way back
	once      stand = "once"      // the same, and it went back
	returned  stand = "returned"  // what was paid went back to the customer
	reversed  stand = "reversed"  // what was paid was taken back by the operator
	expired   stand = "expired"   // without money
	cancelled stand = "cancelled" // without money
)

// stands lists all.
var stands = []stand{untried, tried, spent, unsent, live, unsure, examined, paid, late, twice, repaying, once, returned, reversed, expired, cancelled}

// asked is an ask with its payment.
type asked struct {
	till.Ask
	payment *store.PaymentRow // nil: there is none
	sums    till.RefundSums   // of the payment
}

// taken reports whether the operator took the money back.
func (a *asked) taken() bool { return !a.payment.ReversedAt.IsZero() }

// back reports whether the money went back to the customer, and left whether none of it is here
// or on its way there.
func (a *asked) back() bool { return a.sums.Refunded+a.sums.Late >= a.payment.Amount.Minor }
func (a *asked) left() bool { return a.sums.Left() > 0 }

// situation is all that a stand depends on.
type situation struct {
	state   till.CheckoutState
	late    bool
	expires till.Time
	asks    []*asked
	now     till.Time
}

// look returns how a checkout stands, and the ask that matters for it; nil: none does.
func (s *situation) look() (stand, *asked) {
	var credited []*asked
	for _, a := range s.asks {
		if a.Stand() == till.AskCredited && a.payment != nil {
			credited = append(credited, a)
		}
	}
	slices.SortStableFunc(credited, func(a, b *asked) int { return int(a.Credit - b.Credit) })
	switch len(credited) {
	case 0:
		return s.lookUnpaid()
	case 1:
		return s.lookPaid(credited[0])
	}
	return s.lookTwice(credited)
}

// lookPaid returns the stand of a checkout that was paid once.
func (s *situation) lookPaid(a *asked) (stand, *asked) {
	switch {
	case a.taken():
		return reversed, a
	case a.back():
		return returned, a
	case s.late || s.state == till.CheckoutExpired || s.state == till.CheckoutCancelled:
		return late, a
	}
	return paid, a
}

// lookTwice returns the stand of a checkout that was paid more than once: the last payment that
// is still here is the one too much.
func (s *situation) lookTwice(credited []*asked) (stand, *asked) {
	var here, going []*asked
	for _, a := range credited {
		switch {
		case a.taken() || a.back():
		case !a.left():
			going = append(going, a)
		default:
			here = append(here, a)
		}
	}
	switch {
	case len(here) > 1:
		return twice, here[len(here)-1]
	case len(going) > 0:
		return repaying, going[len(going)-1]
	case len(here) == 1:
		return once, here[0]
	}
	return returned, credited[len(credited)-1]
}

// lookUnpaid returns the stand of a checkout that brought no money.
func (s *situation) lookUnpaid() (stand, *asked) {
	made := 0
	for _, a := range s.asks {
		p := a.payment
		switch {
		case p != nil && p.Attention:
			return examined, a
		case p != nil && !p.Status.Final() && s.now < p.ExpiresAt:
			return live, a
		case p != nil && !p.Status.Final():
			return unsure, a
		}
		if a.Refused == "" || p != nil {
			made++
		}
	}
	var last *asked
	if n := len(s.asks); n > 0 {
		last = s.asks[n-1]
	}
	switch {
	case s.state == till.CheckoutCancelled:
		return cancelled, last
	case s.state != till.CheckoutOpen || s.now >= s.expires:
		return expired, last
	case last == nil:
		return untried, nil
	case last.Stand() == till.AskUnsent:
		return unsent, last
	case made >= till.MaxAsks || len(s.asks) >= till.MaxAskRows:
		return spent, last
	}
	return tried, last
}

// open reports whether a customer can begin to pay.
func (s stand) open() bool { return s == untried || s == tried }

// mayEnd reports whether a checkout that stands so can be cancelled.
func (s stand) mayEnd() bool { return s.open() || s == spent || s == unsent }

// tooMuch reports whether a payment should go back, or may have to.
func (s stand) tooMuch() bool { return s == twice || s == late }
