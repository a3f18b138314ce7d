package books

import (
	"context"

	"till"
	"till/engine"
	"till/store"
	"till/store/matching"
)

// verifyStrays proves I16: a stray's money is in one place. An attributed
// stray has its adjustment and no credited payment. A stray whose payment was
// credited has the payment, and its adjustment is taken back.
func (v *verifier) verifyStrays(ctx context.Context) error {
	for after := (till.ID{}); ; {
		var slice []*matching.Stray
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			if slice, err = matching.StraysAfter(ctx, tx, after, min(v.o.Slice, MaxStrayPage)); err != nil {
				return err
			}
			for _, s := range slice {
				if err := v.verifyStrayOf(ctx, tx, s); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(slice) == 0 {
			return err
		}
		v.Strays += int64(len(slice))
		after = slice[len(slice)-1].ID
	}
}

// verifyStrayOf checks one stray against what hangs on it, in one snapshot.
func (v *verifier) verifyStrayOf(ctx context.Context, tx *store.Tx, s *matching.Stray) error {
	v.client = s.Owner
	given, err := tx.Adjustment(ctx, store.Ref{Client: s.Given, ID: s.ID})
	if err != nil {
		return err
	}
	back, err := tx.Adjustment(ctx, store.Ref{Client: s.Given, ID: engine.TakenBackID(s.ID)})
	if err != nil {
		return err
	}
	v.check((back != nil) == s.TakenBack, "I16", s.ID, "the stray's adjustment was taken back: %t, and by the ledger: %t", s.TakenBack, back != nil)
	if back != nil {
		v.check(given != nil && given.Amount.Currency == back.Amount.Currency && given.Amount.Minor == -back.Amount.Minor, "I16", s.ID, "what was taken back is not what was given")
	}
	switch s.Why {
	case matching.StrayForeign:
		v.check(s.Reason != "", "I14", s.ID, "a stray was closed as foreign without a reason")
	case matching.StrayAttributed:
		want := s.Amount
		if s.Direction == matching.StrayOut {
			want.Minor = -want.Minor
		}
		v.check(given != nil && given.Amount == want && given.Actor == s.ClosedBy, "I16", s.ID, "the stray of %v was attributed, and its adjustment is %+v", want, given)
	case matching.StrayCredited:
		rows, err := readSubjects(ctx, tx, s, []store.Ref{{Client: s.Owner, ID: s.Settled}})
		if err != nil {
			return err
		}
		v.check(len(rows) == 1 && rows[0].Booked, "I16", s.ID, "the stray was closed by %s, which has no money on its connection", s.Settled)
	}
	if s.Why != "" && s.Why != matching.StrayAttributed {
		return nil
	}
	found, err := findSubjects(ctx, tx, s, namedClient(s))
	if err != nil {
		return err
	}
	for _, f := range found {
		rows, err := readSubjects(ctx, tx, s, []store.Ref{f.Ref})
		if err != nil {
			return err
		}
		for _, r := range rows {
			v.check(!r.Booked, "I16", s.ID, "the %s %s has the money of the stray, which is not closed by it", r.kind, r.Ref.ID)
		}
	}
	return nil
}
