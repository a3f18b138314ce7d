package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/admin"
	"till/store/webhooks"
)

// examineWaiting reports what waits: cases, suspended money, strays, webhooks.
func (d *doctor) examineWaiting(ctx context.Context, s *store.Store, st *books.Status) error {
	d.addCases(st.Live.Cases)
	d.addSuspended(st.Live.Suspense)
	d.addBacklog(&st.Live.Webhooks)
	return s.View(ctx, func(tx *store.Tx) error {
		sums, err := admin.StatementSums(ctx, tx)
		if err != nil {
			return err
		}
		d.addStatements(sums, tx.Now())
		return nil
	})
}

// maxStatementAge is how old the end of the last compared statement may be.
const maxStatementAge = 48 * time.Hour

// addStatements reports statements that were compared: how old the last one of each
// connection is, and what is left. A connection without any is not known here.
func (d *doctor) addStatements(sums []admin.StatementSum, now till.Time) {
	var until, old []string
	var left int64
	for _, s := range sums {
		switch {
		case s.Class != admin.StatementLines:
			left += s.Count
		case now.Sub(s.Until) > maxStatementAge:
			old = append(old, fmt.Sprintf("%s until %s", s.Connection, s.Until))
		default:
			until = append(until, fmt.Sprintf("%s until %s", s.Connection, s.Until))
		}
	}
	text, v := "compared: "+strings.Join(append(until, old...), ", "), Fine
	if len(until)+len(old) == 0 {
		text = "none was compared; see 'till reconcile'"
	}
	if len(old) > 0 {
		text, v = text+"; compare the later ones with 'till reconcile'", Risky
	}
	if left > 0 {
		text, v = text+"; "+till.Count(left, "difference is", "differences are")+" left", Risky
	}
	d.add("statements", v, "%s", text)
}

func (d *doctor) addCases(kinds []store.OpenKind) {
	var all int64
	var oldest till.Time
	var parts []string
	for _, k := range kinds {
		all += k.Count
		if oldest.IsZero() || k.Oldest < oldest {
			oldest = k.Oldest
		}
		parts = append(parts, fmt.Sprintf("%d %s", k.Count, k.Kind))
	}
	if all == 0 {
		d.add("cases", Fine, "none is open")
		return
	}
	d.add("cases", Risky, "%s (%s), the oldest since %s; see 'till cases'",
		till.Count(all, "is open", "are open"), strings.Join(parts, ", "), oldest)
}

// addSuspended reports suspended money. It is no warning by itself: refunded
// money stays there, and an open case warns.
func (d *doctor) addSuspended(aside []store.Aside) {
	if len(aside) == 0 {
		d.add("suspense", Fine, "no money is put aside")
		return
	}
	var parts []string
	for _, a := range aside {
		parts = append(parts, fmt.Sprintf("%s %s of %s", till.Money{Minor: a.Minor}.Value(), a.Currency, till.Count(a.Payments, "payment", "payments")))
	}
	d.add("suspense", Fine, "%s (minor units) put aside, because the operator reported something else; see 'till cases --kind mismatch'", strings.Join(parts, ", "))
}

func (d *doctor) addBacklog(b *webhooks.Backlog) {
	text := fmt.Sprintf("%s, %s behind and %s to be sent again",
		till.Count(b.Endpoints, "endpoint", "endpoints"), till.Count(b.Behind, "event", "events"), till.Count(b.Retries, "event", "events"))
	if b.Failing > 0 {
		text += fmt.Sprintf("; nothing reaches %s, the longest since %s", till.Count(b.Failing, "of them", "of them"), b.Since)
	}
	if b.Disabled > 0 {
		text += fmt.Sprintf("; %s disabled because nothing reached them", till.Count(b.Disabled, "more was", "more were"))
	}
	v := Fine
	if b.Failing+b.Disabled > 0 || b.Behind+b.Retries >= books.ManyEvents {
		v = Risky
	}
	d.add("webhooks", v, "%s", text)
}

// maxShownHolds is how many holds the doctor lists.
const maxShownHolds = 10

// addHolds reports holds with their time, person and reason, and how many
// payouts wait. A suspended client is reported only if payouts wait.
func (d *doctor) addHolds(held *books.Status) {
	told, suspended := 0, 0
	for _, h := range held.Holds {
		if h.Cause == store.HoldSuspended {
			suspended++
		} else if told++; told <= maxShownHolds {
			d.add("payouts", Risky, "those of %s are held since %s by %s: %s", books.HoldScope(h), h.At, h.By, books.HoldReason(h))
		}
	}
	if told > maxShownHolds {
		d.add("payouts", Risky, "those of %s are held", till.Count(told-maxShownHolds, "more client", "more clients"))
	}
	if suspended > 0 && held.Waiting > 0 {
		d.add("payouts", Risky, "those of %s are held: suspended", till.Count(suspended, "client", "clients"))
	}
	waiting := till.Count(held.Waiting, "payout waits", "payouts wait") + " to be released; see 'till payouts held'"
	if held.Waiting == 0 {
		waiting = "no payout waits yet; see 'till payouts held'"
	}
	d.addIf("payouts", held.Waiting > 0 || told > 0, Risky, "none is held", waiting)
}
