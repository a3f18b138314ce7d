package books

import (
	"context"

	"till"
	"till/store"
)

// decision is what an audit row and the entry it is about have in common.
type decision struct {
	at      till.Time
	action  string
	subject till.ID
}

// auditSlice is a stretch of a client's audit log with its seals and with the
// money decisions of the same time, from one snapshot.
type auditSlice struct {
	head  *store.Head
	rows  []*store.AuditRow
	seals map[int64]store.Seal
	money []store.MoneyEntry
	last  bool
}

// verifyAudit proves I14. Audit rows and seals never change; the rows are
// walked in the order of the log, which is the order of time, and each slice
// takes with it the money decisions of its stretch of time.
func (v *verifier) verifyAudit(ctx context.Context) error {
	var sealed, link store.Seal // the newest link; the row before as a link, which covers what no link did before it
	err := v.view(ctx, func(tx *store.Tx) (err error) {
		sealed, err = tx.LastSeal(ctx, v.client)
		return err
	})
	if err != nil {
		return err
	}
	var last int64
	var before till.Time
	for {
		slice, err := v.auditSlice(ctx, last, before)
		if err != nil {
			return err
		}
		v.tell(int64(len(slice.rows)))
		noted := make(map[decision]bool, len(slice.rows))
		for _, a := range slice.rows {
			v.Audit++
			v.check(a.Sequence == last+1, "I14", a.SubjectID, "the audit log has a gap between %d and %d", last, a.Sequence)
			v.check(a.At > before, "I14", a.SubjectID, "audit row %d was written before the one before it", a.Sequence)
			last, before = a.Sequence, a.At
			noted[decision{a.At, a.Action, a.SubjectID}] = true
			if a.Sequence <= sealed.Sequence { // the others' seals are still to come
				link = v.verifySeal(link, a, slice.seals)
			}
		}
		for _, e := range slice.money {
			v.check(noted[decision{e.CreatedAt, e.Kind, e.PaymentID}], "I14", e.ID, "a %s of %s has no audit row", e.Kind, e.PaymentID)
		}
		if slice.last {
			v.check(slice.head != nil && last == slice.head.LastAudit, "I14", till.ID{}, "the audit log ends at %d and its head says otherwise", last)
			v.check(sealed.Sequence <= last, "I14", till.ID{}, "the audit chain goes on to %d, and the log ends at %d", sealed.Sequence, last)
			return nil
		}
	}
}

// verifySeal compares the link of a row that has one with what it should be, and
// returns what the next row is sealed behind.
func (v *verifier) verifySeal(before store.Seal, a *store.AuditRow, seals map[int64]store.Seal) store.Seal {
	v.Seals++
	want := store.SealOf(before, a)
	if have, found := seals[a.Sequence]; found {
		v.check(have.Covers >= want.Covers, "I14", a.SubjectID, "the audit chain has a gap before %d", a.Sequence)
		v.check(have.Hash == want.Hash, "I14", a.SubjectID, "an audit row between %d and %d is not the one that was sealed", a.Sequence-want.Covers+1, a.Sequence)
		// From here on by what was kept, so that behind a row that was changed
		// nothing else is named.
		want = store.Seal{Sequence: a.Sequence, Hash: have.Hash}
	}
	return want
}

// endOfTime is later than anything that was ever written.
const endOfTime till.Time = 1<<47*1000 - 1

// auditSlice reads the rows beyond a sequence and the money decisions made
// after the row before them; the last slice has all that came later, too.
func (v *verifier) auditSlice(ctx context.Context, after int64, before till.Time) (auditSlice, error) {
	s := auditSlice{seals: map[int64]store.Seal{}}
	err := v.view(ctx, func(tx *store.Tx) (err error) {
		if s.head, err = tx.Head(ctx, v.client); err != nil {
			return err
		}
		if s.rows, err = tx.Audit(ctx, v.client, after, v.o.Slice); err != nil {
			return err
		}
		seals, err := tx.Seals(ctx, v.client, after, v.o.Slice)
		if err != nil {
			return err
		}
		for _, link := range seals {
			s.seals[link.Sequence] = link
		}
		until := endOfTime
		if s.last = len(s.rows) < v.o.Slice; !s.last {
			until = s.rows[len(s.rows)-1].At
		}
		s.money, err = tx.MoneyEntries(ctx, v.client, before, until)
		return err
	})
	return s, err
}
