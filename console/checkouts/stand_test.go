package checkouts

import (
	"testing"

	"till"
	"till/store"
)

const (
	now   = till.Time(10_000_000)
	ahead = now + 1_000_000
	gone  = now - 1_000_000
)

// ask returns the n-th ask, whose payment is as change leaves it.
func ask(n int, change func(a *asked)) *asked {
	a := &asked{Ask: till.Ask{N: n, PaymentID: till.NewID(till.Time(n)), Status: till.Failed}, payment: &store.PaymentRow{}}
	a.payment.ID, a.payment.Amount, a.payment.ExpiresAt, a.sums.Amount = a.PaymentID, till.Money{Minor: 5000, Currency: "XAF"}, ahead, 5000
	change(a)
	a.payment.Status = a.Status
	return a
}

func failed(*asked) {}
func open(a *asked) { a.Status = till.Processing }
func over(a *asked) { a.Status, a.payment.ExpiresAt = till.Processing, gone }
func watched(a *asked) {
	a.payment.Attention = true
}
func credited(event int64) func(*asked) {
	return func(a *asked) { a.Status, a.Credit = till.Success, event }
}
func creditedAnd(event int64, change func(a *asked)) func(*asked) {
	return func(a *asked) { credited(event)(a); change(a) }
}
func gaveBack(a *asked)     { a.sums.Refunded = 5000 }
func gaveBackLate(a *asked) { a.sums.Late = 5000 }
func givesBack(a *asked)    { a.sums.Refunding = 5000 }
func gavePart(a *asked)     { a.sums.Refunded = 2000 }
func tookBack(a *asked)     { a.payment.ReversedAt = now }

// How a checkout stands, and which ask it is about, for all that can be.
func TestStands(t *testing.T) {
	t.Parallel()
	refused := &asked{Ask: till.Ask{N: 1, Refused: "method_unavailable"}}
	unmade := &asked{Ask: till.Ask{N: 1}}
	five := []*asked{ask(1, failed), ask(2, failed), ask(3, failed), ask(4, failed), ask(5, failed)}
	for name, c := range map[string]struct {
		s     situation
		want  stand
		about int
	}{
		"new":                        {situation{expires: ahead}, untried, 0},
		"over, not moved yet":        {situation{expires: now}, expired, 0},
		"moved":                      {situation{state: till.CheckoutExpired, expires: gone}, expired, 0},
		"cancelled":                  {situation{state: till.CheckoutCancelled, expires: ahead, asks: []*asked{ask(1, failed)}}, cancelled, 1},
		"refused":                    {situation{expires: ahead, asks: []*asked{refused}}, tried, 1},
		"failed":                     {situation{expires: ahead, asks: []*asked{ask(1, failed)}}, tried, 1},
		"five":                       {situation{expires: ahead, asks: five}, spent, 5},
		"a crash between commits":    {situation{expires: ahead, asks: []*asked{unmade}}, unsent, 1},
		"the same, over":             {situation{expires: now, asks: []*asked{unmade}}, expired, 1},
		"on the phone":               {situation{expires: ahead, asks: []*asked{ask(1, failed), ask(2, open)}}, live, 2},
		"time never beats money":     {situation{expires: gone, asks: []*asked{ask(1, open)}}, live, 1},
		"no answer":                  {situation{expires: ahead, asks: []*asked{ask(1, over)}}, unsure, 1},
		"put aside":                  {situation{expires: ahead, asks: []*asked{ask(1, watched), ask(2, failed)}}, examined, 1},
		"paid, not moved yet":        {situation{expires: ahead, asks: []*asked{ask(1, failed), ask(2, credited(7))}}, paid, 2},
		"paid, with a case":          {situation{expires: ahead, asks: []*asked{ask(1, creditedAnd(7, watched))}}, paid, 1},
		"paid and late":              {situation{state: till.CheckoutPaid, late: true, expires: gone, asks: []*asked{ask(1, credited(7))}}, late, 1},
		"late, not moved yet":        {situation{state: till.CheckoutCancelled, expires: ahead, asks: []*asked{ask(1, credited(7))}}, late, 1},
		"taken back":                 {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, creditedAnd(7, tookBack))}}, reversed, 1},
		"given back":                 {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, creditedAnd(7, gaveBack))}}, returned, 1},
		"given back late":            {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, creditedAnd(7, gaveBackLate))}}, returned, 1},
		"given back in part":         {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, creditedAnd(7, gavePart))}}, paid, 1},
		"twice":                      {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, credited(9)), ask(2, credited(7))}}, twice, 1},
		"twice, the second going":    {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, creditedAnd(9, givesBack)), ask(2, credited(7))}}, repaying, 1},
		"twice, the second went":     {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, creditedAnd(9, gaveBack)), ask(2, credited(7))}}, once, 2},
		"twice, the first went":      {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, credited(9)), ask(2, creditedAnd(7, gaveBack))}}, once, 1},
		"twice, one taken back":      {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, creditedAnd(9, tookBack)), ask(2, credited(7))}}, once, 2},
		"twice, a part went":         {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, creditedAnd(9, gavePart)), ask(2, credited(7))}}, twice, 1},
		"twice, nothing is left":     {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, creditedAnd(9, tookBack)), ask(2, creditedAnd(7, gaveBack))}}, returned, 1},
		"three times, one went back": {situation{state: till.CheckoutPaid, expires: ahead, asks: []*asked{ask(1, credited(9)), ask(2, credited(7)), ask(3, creditedAnd(11, gaveBack))}}, twice, 1},
	} {
		if c.s.now = now; c.s.state == "" {
			c.s.state = till.CheckoutOpen
		}
		got, about := c.s.look()
		n := 0
		if about != nil {
			n = about.N
		}
		if got != c.want || n != c.about {
			t.Errorf("%s: %s of ask %d, want %s of %d", name, got, n, c.want, c.about)
		}
		if (got == twice || got == late) != got.tooMuch() {
			t.Errorf("%s: what may be done contradicts itself", name)
		}
	}
	for _, s := range stands {
		if looks[s].Icon == "" {
			t.Errorf("%s has no look", s)
		}
	}
}
