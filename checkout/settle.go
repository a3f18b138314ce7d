package checkout

import (
	"context"
	"slices"

	"till"
	"till/engine"
	"till/store"
	"till/store/checkouts"
)

// settle moves a checkout to where its asks say it is, and tells it, while its client's head is
// locked. It decides on the rows, not on events: to run it again changes nothing.
//
// Time never beats money: what expires has no live ask, and money that comes after all makes
// what had expired or was cancelled paid.
func settle(ctx context.Context, tx *store.Tx, head *store.Head, row *checkouts.Row, asks []till.Ask) error {
	var credited []till.Ask
	live := false
	for _, a := range asks {
		switch a.Stand() {
		case till.AskCredited:
			credited = append(credited, a)
		case till.AskLive:
			live = true
		}
	}
	slices.SortFunc(credited, func(a, b till.Ask) int { return int(a.Credit - b.Credit) })
	if len(credited) > 0 && row.State.CanBecome(till.CheckoutPaid) {
		made, err := tx.EventMade(ctx, row.ClientID, credited[0].Credit)
		if err != nil {
			return err
		}
		row.Late, row.PaymentID, row.PaidAt = row.State != till.CheckoutOpen, credited[0].PaymentID, made
		if err := move(ctx, tx, head, row, asks, till.CheckoutPaid, till.CheckoutEventPaid); err != nil {
			return err
		}
	}
	if len(credited) > 1 && !row.Overpaid {
		row.Overpaid = true
		if err := move(ctx, tx, head, row, asks, row.State, till.CheckoutEventOverpaid); err != nil {
			return err
		}
		second := credited[1]
		return tx.OpenCases(ctx, []*store.Case{{ClientID: row.ClientID, ID: till.NewID(row.UpdatedAt), SubjectID: second.PaymentID,
			Kind: engine.CasePaidTwice, Why: till.Because(till.ReasonPaidTwice, row.PaymentID.String()), OpenedAt: row.UpdatedAt}})
	}
	if live || row.State != till.CheckoutOpen || tx.Now() < row.ExpiresAt {
		return nil
	}
	return end(ctx, tx, head, row, asks, till.CheckoutExpired, till.CheckoutEventExpired)
}

// end ends a checkout without money. An ask that has no payment yet gets none any more.
func end(ctx context.Context, tx *store.Tx, head *store.Head, row *checkouts.Row, asks []till.Ask, to till.CheckoutState, kind till.EventKind) error {
	for i := range asks {
		if asks[i].Stand() == till.AskUnsent {
			if err := checkouts.Refuse(ctx, tx, &asks[i], till.AskNotSent); err != nil {
				return err
			}
			asks[i].Refused = till.AskNotSent
		}
	}
	return move(ctx, tx, head, row, asks, to, kind)
}

// move writes the checkout in its new state, with the event that tells it.
func move(ctx context.Context, tx *store.Tx, head *store.Head, row *checkouts.Row, asks []till.Ask, to till.CheckoutState, kind till.EventKind) error {
	row.State, row.UpdatedAt = to, head.NextTime()
	if err := checkouts.Save(ctx, tx, row); err != nil {
		return err
	}
	return tx.InsertEvents(ctx, []*till.Event{{ClientID: row.ClientID, Sequence: head.NextEvent(), Kind: kind, SubjectID: row.ID, CreatedAt: row.UpdatedAt,
		Document: string(row.AppendState(nil, asks))}})
}

// Read returns a checkout with its asks. It returns CodeCheckoutNotFound if the client has no
// such.
func Read(ctx context.Context, tx *store.Tx, ref store.Ref) (*checkouts.Row, []till.Ask, error) {
	row, err := checkouts.Get(ctx, tx, ref)
	if err != nil {
		return nil, nil, err
	}
	asks, err := checkouts.Asks(ctx, tx, ref)
	return row, asks, err
}

// Cancel ends an open checkout by its client's wish. It returns CodeCheckoutLive if an ask may
// still bring money, or has. What has expired or was cancelled stays as it is.
func (s *Checkouts) Cancel(ctx context.Context, ref store.Ref, actor string) (row *checkouts.Row, asks []till.Ask, err error) {
	_, err = store.RetryUnknown(ctx, s.c.Store.Update, func(tx *store.Tx, _ bool) error {
		heads, err := tx.LockHeads(ctx, []till.ID{ref.Client})
		if err != nil {
			return err
		}
		if row, asks, err = Read(ctx, tx, ref); err != nil {
			return err
		}
		for i := range asks {
			if stand := asks[i].Stand(); stand == till.AskLive || stand == till.AskCredited {
				return &till.Error{Code: till.CodeCheckoutLive, Told: true, Detail: "One of its asks may still bring money, or has brought it."}
			}
		}
		if row.State != till.CheckoutOpen {
			return nil
		}
		head := heads[ref.Client]
		if err := end(ctx, tx, head, row, asks, till.CheckoutCancelled, till.CheckoutEventCancelled); err != nil {
			return err
		}
		if err := audit(ctx, tx, head, row, actor, "checkout.cancel"); err != nil {
			return err
		}
		return tx.SaveHeads(ctx, heads)
	})
	return row, asks, s.unavailable("checkout not cancelled", err)
}
