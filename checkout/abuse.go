package checkout

import (
	"context"
	"time"

	"till"
	"till/store"
	"till/store/access"
	"till/store/checkouts"
)

// The kinds of cases about pages. Their subject is a link or a checkout.
const (
	CasePageAbuse    = "page_abuse"    // a merchant's links make telephones ring, and hardly anybody pays
	CasePageReported = "page_reported" // somebody says that something is wrong with a page
)

// IsCase reports whether a kind of case is about a page.
func IsCase(kind string) bool { return kind == CasePageAbuse || kind == CasePageReported }

// When a merchant's links are slowed: of their last asks hardly any was paid, and many numbers
// were asked in a while and did not approve. A merchant whose customers pay is never slowed,
// however many do not.
const (
	judgedAsks   = 50
	leastPaid    = 5
	manyNumbers  = 20
	numbersWhile = time.Hour
	slowedPause  = time.Minute // of each link, between two asks, while that is so
	readAsks     = 400         // of the merchant's links, and as many checkouts, that are read
)

// slowLink returns Slow if the merchant's links are slowed and this one has asked just now. It
// counts an ask of the link, and opens the case where it finds that the links are to be slowed.
// The caller has locked the client's head.
//
// The rows say who was asked and who paid. To read them for each ask would cost too much, so a
// count says when that can change anything: it is never less than the numbers that did not
// approve in the while.
func (l *Limits) slowLink(ctx context.Context, tx *store.Tx, client, link till.ID) error {
	now := tx.Now()
	last := &count{name: l.name("slowed", link.String()), most: 1, pause: slowedPause, while: true}
	unpaid := &count{name: l.name("unpaid", client.String()), pause: numbersWhile}
	for _, one := range []*count{last, unpaid} {
		var err error
		if one.Guesses, err = access.LockGuesses(ctx, tx, one.name, now); err != nil {
			return err
		}
	}
	if until := last.until(now); until > 0 {
		return &Slow{Until: until, Link: true}
	}
	if unpaid.add(now, 0); unpaid.Count > manyNumbers { // this ask is one of them, and its number is not among the rows yet
		numbers, abused, err := judge(ctx, tx, client)
		if err != nil {
			return err
		}
		unpaid.Count = int64(numbers) + 1
		if abused {
			last.add(now, 0)
			if err := access.SaveGuesses(ctx, tx, last.name, last.Guesses); err != nil {
				return err
			}
			if err := openCase(ctx, tx, client, link, CasePageAbuse, till.ReasonPageAbuse); err != nil {
				return err
			}
		}
	}
	return access.SaveGuesses(ctx, tx, unpaid.name, unpaid.Guesses)
}

// judge returns how many numbers a merchant's links have asked in the while that did not approve,
// and whether its links are to be slowed.
func judge(ctx context.Context, tx *store.Tx, client till.ID) (numbers int, abused bool, err error) {
	asks, err := checkouts.OfLinks(ctx, tx, client, readAsks)
	if err != nil {
		return 0, false, err
	}
	since, paid := tx.Now().Add(-numbersWhile), 0
	approved, silent := map[string]bool{}, map[string]bool{}
	for i, a := range asks {
		if a.Paid && i < judgedAsks {
			paid++
		}
		switch {
		case a.AskedAt < since:
		case a.Paid:
			approved[a.Phone] = true
		default:
			silent[a.Phone] = true
		}
	}
	for phone := range silent {
		if !approved[phone] {
			numbers++
		}
	}
	return numbers, numbers >= manyNumbers && paid < leastPaid, nil
}

// openCase puts a case about a page on the attention list.
func openCase(ctx context.Context, tx *store.Tx, client, subject till.ID, kind string, why till.ReasonCode) error {
	now := tx.Now()
	return tx.OpenCases(ctx, []*store.Case{{ClientID: client, ID: till.NewID(now), SubjectID: subject, Kind: kind, Why: till.Because(why), OpenedAt: now}})
}
