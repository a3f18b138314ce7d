package recovery

import (
	"context"
	"math"
	"slices"

	"till"
	"till/engine"
	"till/store"
	"till/store/admin"
	"till/store/matching"
)

// MaxUnexplained is how many items of each kind ReadUnexplained lists.
const MaxUnexplained = 1000

// Unexplained lists what is not known yet after a restore.
type Unexplained struct {
	Restores []*admin.Restore // that are not released, the latest first
	// Payouts and Payments were open in the restored database and still are: they
	// may have been sent. At most MaxUnexplained of each, by client and id.
	Payouts, Payments []admin.Undecided
	// Cases and Strays are the open ones, the longest open first.
	Cases  []*store.Case
	Strays []*matching.Stray

	// Undecided adds up all payouts and payments, also those that are not listed.
	// StrayMoney adds up all open strays, and closed ones that were seen since the time
	// from which everything is lost.
	Undecided  []store.UndecidedSum
	StrayMoney []store.StrayMoney
}

// Left counts what nobody has decided: payouts, payments and open strays.
func (u *Unexplained) Left() (payouts, payments, strays int) {
	for _, s := range u.Undecided {
		if s.Kind == till.SubjectPayout {
			payouts += s.Count
		} else {
			payments += s.Count
		}
	}
	for _, s := range u.StrayMoney {
		if s.Why == "" {
			strays += s.Count
		}
	}
	return payouts, payments, strays
}

// Empty reports whether everything is explained.
func (u *Unexplained) Empty() bool {
	return len(u.Payouts) == 0 && len(u.Payments) == 0 && len(u.Cases) == 0 && len(u.Strays) == 0
}

// ReadUnexplained reads what is not known yet after a restore.
func ReadUnexplained(ctx context.Context, s *store.Store) (*Unexplained, error) {
	u := &Unexplained{}
	err := s.View(ctx, func(tx *store.Tx) (err error) {
		if u.Restores, err = admin.OpenRestores(ctx, tx); err != nil {
			return err
		}
		if err = u.readUndecided(ctx, tx); err != nil {
			return err
		}
		if u.Cases, err = tx.Cases(ctx, store.CaseFilter{Limit: MaxUnexplained}); err != nil {
			return err
		}
		u.Strays, err = matching.Strays(ctx, tx, matching.StrayFilter{Limit: MaxUnexplained})
		return err
	})
	return u, err
}

// readUndecided reads the payouts and payments, the first with their money, and the sums.
func (u *Unexplained) readUndecided(ctx context.Context, tx *store.Tx) error {
	from := till.Time(math.MaxInt64) // without a restore no time is lost
	for _, r := range u.Restores {
		from = min(from, r.LostFrom)
	}
	var err error
	if u.StrayMoney, err = tx.SumStrays(ctx, from); err != nil {
		return err
	}
	u.Undecided = nil
	for _, one := range []struct {
		kind till.SubjectKind
		list *[]admin.Undecided
	}{{till.SubjectPayout, &u.Payouts}, {till.SubjectPayment, &u.Payments}} {
		sums, err := tx.SumUndecided(ctx, one.kind)
		if err != nil {
			return err
		}
		u.Undecided = append(u.Undecided, sums...)
		list, err := admin.ListUndecided(ctx, tx, one.kind, MaxUnexplained)
		if err != nil {
			return err
		}
		steps := make([]*store.Step, len(list))
		for i, x := range list {
			steps[i] = &store.Step{ClientID: x.Ref.Client, SubjectID: x.Ref.ID, Kind: x.Kind}
		}
		rows, err := subjectsOf(ctx, tx, steps)
		if err != nil {
			return err
		}
		for i := range list {
			row := rows[list[i].Ref.ID]
			list[i].Connection, list[i].Amount = row.Connection, row.Amount
		}
		*one.list = list
	}
	return nil
}

// Refusal returns why a restore cannot be released: nobody has reviewed the keys, or rows
// of the journal are still to be made again. nil if it can.
func (u *Unexplained) Refusal() error {
	for _, r := range u.Restores {
		if r.KeysReviewedAt.IsZero() {
			return till.Errorf(till.CodeValidationFailed, "nobody has looked at the keys that work again: run 'till restored --lost-from %s --keys-reviewed'", r.LostFrom)
		}
		if r.JournalLeft > 0 {
			return till.Errorf(till.CodeValidationFailed, "%d rows of the journal are not made again yet: run 'till restored --lost-from %s --journal FOLDER' until none is left", r.JournalLeft, r.LostFrom)
		}
	}
	return nil
}

// Release ends a restore, once a person has applied the statements of the lost
// time. New payouts are accepted again. Held payments and payouts are sent or,
// if their time is over, end as unsent. It returns what is still unexplained.
// It returns the error of Refusal if there is one. What is undecided does not stop it:
// that is for a person to accept. It may be run twice.
func Release(ctx context.Context, s *store.Store, by string) (*Unexplained, error) {
	u, err := ReadUnexplained(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := u.Refusal(); err != nil {
		return nil, err
	}
	if len(u.Restores) > 0 {
		// The audit rows come first: an interrupted release has them twice, not never.
		err = s.EachPageOfClients(ctx, func(clients []till.ID) error {
			return s.UpdateBackground(ctx, func(tx *store.Tx) error { return store.AuditClients(ctx, tx, clients, by, "restored.release", "") })
		})
		if err != nil {
			return nil, err
		}
	}
	_, err = store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) error {
		if err := tx.ReleasePayouts(ctx, store.EveryClient, store.HoldRestored); err != nil {
			return err
		}
		return admin.ReleaseRestores(ctx, tx, by)
	})
	if err != nil {
		return nil, err
	}
	if err := releaseHeldPayments(ctx, s, by); err != nil {
		return u, err
	}
	return u, s.HastenHeld(ctx, store.EveryClient)
}

// releaseHeldPayments closes the cases of held payments and makes them due, in
// slices. The engine releases held payouts, unless they have another hold.
func releaseHeldPayments(ctx context.Context, s *store.Store, by string) error {
	var last *store.Case
	for {
		more, next := false, last
		err := s.UpdateBackground(ctx, func(tx *store.Tx) error {
			held, err := tx.Cases(ctx, store.CaseFilter{Kind: engine.CaseHeld, After: last, Limit: restoredSteps})
			if err != nil {
				return err
			}
			if more = len(held) > 0; more {
				next = held[len(held)-1]
			}
			held = slices.DeleteFunc(held, func(c *store.Case) bool { return c.Payout })
			refs, closings := make([]store.Ref, len(held)), make([]store.CaseClosure, len(held))
			for i, c := range held {
				refs[i] = store.Ref{Client: c.ClientID, ID: c.SubjectID}
				closings[i] = store.CaseClosure{Ref: refs[i], By: by, At: tx.Now(), Kinds: []string{engine.CaseHeld}, Why: till.Because(till.ReasonRestoreReleased)}
			}
			if err := tx.HastenSteps(ctx, refs); err != nil {
				return err
			}
			return tx.CloseCases(ctx, closings)
		})
		if err != nil || !more {
			return err
		}
		last = next
	}
}
