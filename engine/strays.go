package engine

import (
	"context"
	"crypto/sha256"
	"fmt"

	"till"
	"till/ledger"
	"till/provider"
	"till/store"
	"till/store/matching"
)

// A stray is money that names us and matched no row when it was reported. If its payment
// turns up, the commit that credits the payment closes the stray. So the money is never in
// two places.

// strays holds the strays that the successes of a batch may belong to.
type strays struct {
	any    bool // there are open strays at all
	of     map[store.Ref][]*matching.Stray
	closed map[till.ID]bool // by this batch
}

// succeeds reports whether an answer may move money.
func succeeds(a *Answer) bool { return a.Err == nil && a.Result.Outcome == provider.Success }

// findStrays reads the strays that successes may belong to. If there are no strays at all,
// it reads nothing.
func (b *Recording[R]) findStrays(ctx context.Context) error {
	if !b.strays.any {
		return nil
	}
	var keys []matching.StrayKey
	var refs []store.Ref
	for _, a := range b.answers {
		row, ok := b.Rows[a.Ref]
		if !ok || !succeeds(a) {
			continue
		}
		p := row.Subject()
		k := matching.StrayKey{Connection: p.Connection, Reference: b.worker.keys.Reference(p.Ref.Client, p.IdempotencyKey), Subject: p.Ref.ID}
		if !p.Aggregated() { // of an aggregator's receipt nobody knows who issued it
			k.Receipt = a.Result.Receipt
		}
		keys = append(keys, k)
		refs = append(refs, a.Ref)
	}
	found, err := matching.StandingStrays(ctx, b.Tx, keys)
	if err != nil {
		return err
	}
	b.strays.of, b.strays.closed = make(map[store.Ref][]*matching.Stray, len(found)), make(map[till.ID]bool)
	for i, some := range found {
		b.strays.of[refs[i]] = append(b.strays.of[refs[i]], some...)
	}
	return nil
}

// CloseStrays closes the strays of a row whose money this batch has just posted. It takes
// back what a person gave to any client for one of them.
func (b *Recording[R]) CloseStrays(ctx context.Context, row R) error {
	p := row.Subject()
	way := matching.StrayIn
	if b.table.Kind == till.SubjectPayout {
		way = matching.StrayOut
	}
	for _, s := range b.strays.of[p.Ref] {
		// One stray may be found by several of its identifiers.
		if b.strays.closed[s.ID] || s.Direction != "" && s.Direction != way {
			continue
		}
		b.strays.closed[s.ID] = true
		before := s.Why
		if before == matching.StrayAttributed {
			var err error
			if s.TakenBack, err = b.takeBack(ctx, s, p); err != nil {
				return fmt.Errorf("take back stray %s: %w", s.ID, err)
			}
		}
		at := b.Heads[p.Ref.Client].NextTime()
		s.Why, s.ClosedAt, s.ClosedBy, s.Owner, s.Settled = matching.StrayCredited, at, "engine", p.Ref.Client, p.Ref.ID
		s.Direction = way
		if err := matching.CloseStrays(ctx, b.Tx, before, []*matching.Stray{s}); err != nil {
			return err
		}
		b.AddAudit(p.Ref.Client, p.Ref.ID, at, "engine", "stray.credited", "it is the money of stray "+s.ID.String())
	}
	delete(b.strays.of, p.Ref)
	return nil
}

// takeBack takes an attribution back by the opposite adjustment, once for each stray. What
// the client has spent of it is owed. It reports whether there was an attribution.
func (b *Recording[R]) takeBack(ctx context.Context, s *matching.Stray, p store.Subject) (bool, error) {
	made, err := b.Tx.Adjustment(ctx, store.Ref{Client: s.Given, ID: s.ID}) // it never changes
	if err != nil || made == nil {
		return false, err
	}
	if b.Heads[s.Given] == nil { // another client than the row's
		heads, err := b.Tx.LockHeads(ctx, []till.ID{s.Given})
		if err != nil {
			return false, err
		}
		b.Heads[s.Given] = heads[s.Given]
	}
	w, err := b.Wallet(ctx, s.Given, made.Amount.Currency)
	if err != nil {
		return false, err
	}
	id := TakenBackID(s.ID)
	e := ledger.Correct(w, -made.Amount.Minor, id.String())
	if err := b.ApplyEntry(w, &e); err != nil {
		return false, err
	}
	reason := fmt.Sprintf("stray %s turned out to be %s %s", s.ID, b.table.Name(), p.Ref.ID)
	b.audit[len(b.audit)-1].Detail += "; " + reason
	return true, b.Tx.InsertAdjustment(ctx, &store.Adjustment{ClientID: s.Given, ID: id, EntryID: e.ID,
		Amount: till.Money{Minor: -made.Amount.Minor, Currency: made.Amount.Currency}, Reason: reason, Actor: "engine", CreatedAt: e.CreatedAt})
}

// TakenBackID returns the id of the adjustment that takes a stray's attribution back. It is
// always the same, so the database rejects a second one.
func TakenBackID(stray till.ID) till.ID {
	sum := sha256.Sum256(append([]byte("stray taken back\x00"), stray[:]...))
	id := till.ID(sum[:16])
	id[6] = id[6]&0x0f | 0x80 // UUID version 8: derived by a rule of our own
	id[8] = id[8]&0x3f | 0x80
	return id
}
