package books

import (
	"context"

	"till"
	"till/store"
	"till/store/auditlog"
	"till/store/proof"
)

// ActionRestored is the audit action of a restore.
const ActionRestored = "restored"

// decision is what an audit row and the entry it is about have in common.
type decision struct {
	at      till.Time
	action  string
	subject till.ID
}

// auditSlice is a stretch of a client's audit log with its seals and with the
// money decisions of the same time, from one snapshot.
type auditSlice struct {
	head         *store.Head
	rows         []*store.AuditRow
	plain, keyed map[int64]auditlog.ChainLink
	money        []proof.MoneyEntry
	last         bool
}

// chains is how far the chains of a client's audit log go, and where a walk
// over the log is in them: the row before as a link, which covers what no
// link did before it.
type chains struct {
	base         auditlog.ChainLink // the link under the key that seals all plain ones; zero where there is none
	ended, end   int64              // the last plain link that counts, the last link under the key
	plain, keyed auditlog.ChainLink
	restored     int64 // the first row that says that an older database was put back; 0 if none does
}

// verifyAudit proves I14. Audit rows and seals never change; the rows are
// walked in the order of the log, which is the order of time, and each slice
// takes with it the money decisions of its stretch of time.
func (v *verifier) verifyAudit(ctx context.Context) error {
	c, err := v.chains(ctx)
	if err != nil {
		return err
	}
	heads := v.keptHeads
	var last int64
	var before till.Time
	for {
		slice, err := v.auditSlice(ctx, last, before)
		if err != nil {
			return err
		}
		v.addProgress(int64(len(slice.rows)))
		noted := make(map[decision]bool, len(slice.rows))
		for _, a := range slice.rows {
			v.Audit++
			v.check(a.Sequence == last+1, "I14", a.SubjectID, "the audit log has a gap between %d and %d", last, a.Sequence)
			v.check(a.At > before, "I14", a.SubjectID, "audit row %d was written before the one before it", a.Sequence)
			last, before = a.Sequence, a.At
			noted[decision{a.At, a.Action, a.SubjectID}] = true
			v.verifyLinks(c, a, slice)
			heads = v.verifyHeads(c, heads, a.Sequence)
		}
		for _, e := range slice.money {
			v.check(noted[decision{e.CreatedAt, e.Kind, e.PaymentID}], "I14", e.ID, "a %s of %s has no audit row", e.Kind, e.PaymentID)
		}
		if slice.last {
			v.check(slice.head != nil && last == slice.head.LastAudit, "I14", till.ID{}, "the audit log ends at %d and its head says otherwise", last)
			v.check(max(c.ended, c.end) <= last, "I14", till.ID{}, "the audit chain goes on to %d, and the log ends at %d", max(c.ended, c.end), last)
			v.verifyHeads(c, heads, endOfLog)
			return nil
		}
	}
}

// chains reads how far the chains go. What is written later is still to come,
// and so is its seal.
func (v *verifier) chains(ctx context.Context) (*chains, error) {
	c := &chains{}
	err := v.view(ctx, func(tx *store.Tx) error {
		*c = chains{}
		plain, err := auditlog.LastUnkeyedLink(ctx, tx, v.client)
		if err != nil {
			return err
		}
		first, err := auditlog.FirstLink(ctx, tx, v.client)
		if err != nil {
			return err
		}
		last, err := auditlog.LastLink(ctx, tx, v.client)
		switch c.ended, c.end = plain.Sequence, last.Sequence; {
		case first.Sequence > 0 && first.Covers == 0: // what an older release went on with is sealed again
			c.base, c.ended = first, first.Sequence
		case first.Sequence > 0:
			c.ended = 0
		}
		return err
	})
	return c, err
}

// verifyLinks compares the links of a row that has some with what they should
// be. Where the key is not known, it only checks whether one is missing.
func (v *verifier) verifyLinks(c *chains, a *store.AuditRow, slice auditSlice) {
	if a.Action == ActionRestored && c.restored == 0 {
		c.restored = a.Sequence
	}
	if a.Sequence <= max(c.ended, c.end) { // the others' seals are still to come
		v.ChainLinks++
	}
	if a.Sequence <= c.ended {
		c.plain = v.verifyLink(auditlog.NextUnkeyedLink(c.plain, a), a, slice.plain, true)
	}
	switch base := c.base.Sequence; {
	case a.Sequence > c.end || a.Sequence < base:
	case a.Sequence == base:
		_, found := slice.plain[base]
		v.check(found, "I14", a.SubjectID, "the audit chain has a gap before %d", base)
		want := v.o.Key.LinkUnkeyed(v.client, c.plain)
		v.check(v.o.Key == nil || want.Hash == c.base.Hash, "I14", a.SubjectID, "an audit row up to %d is not the one that was sealed", base)
		c.keyed = c.base
	default:
		c.keyed = v.verifyLink(v.o.Key.NextLink(c.keyed, a), a, slice.keyed, v.o.Key != nil)
	}
}

// verifyLink compares the link of a row that has one with what it should be, and
// returns what the next row is sealed behind.
func (v *verifier) verifyLink(want auditlog.ChainLink, a *store.AuditRow, seals map[int64]auditlog.ChainLink, hashed bool) auditlog.ChainLink {
	if have, found := seals[a.Sequence]; found {
		v.check(have.Covers >= want.Covers, "I14", a.SubjectID, "the audit chain has a gap before %d", a.Sequence)
		v.check(!hashed || have.Hash == want.Hash, "I14", a.SubjectID, "an audit row between %d and %d is not the one that was sealed", a.Sequence-want.Covers+1, a.Sequence)
		// From here on by what was kept, so that behind a row that was changed
		// nothing else is named.
		want = auditlog.ChainLink{Sequence: a.Sequence, Hash: have.Hash}
	}
	return want
}

// endOfTime is later than anything that was ever written, endOfLog beyond
// every row.
const (
	endOfTime till.Time = 1<<47*1000 - 1
	endOfLog  int64     = 1<<63 - 1
)

// auditSlice reads the rows beyond a sequence and the money decisions made
// after the row before them; the last slice has all that came later, too.
func (v *verifier) auditSlice(ctx context.Context, after int64, before till.Time) (auditSlice, error) {
	var s auditSlice
	err := v.view(ctx, func(tx *store.Tx) (err error) {
		if s.head, err = proof.Head(ctx, tx, v.client); err != nil {
			return err
		}
		if s.rows, err = auditlog.Read(ctx, tx, v.client, after, v.o.Slice); err != nil {
			return err
		}
		plain, err := auditlog.UnkeyedLinks(ctx, tx, v.client, after, v.o.Slice)
		if err != nil {
			return err
		}
		keyed, err := auditlog.ChainLinks(ctx, tx, v.client, after, v.o.Slice)
		if err != nil {
			return err
		}
		s.plain, s.keyed = linksBySequence(plain), linksBySequence(keyed)
		until := endOfTime
		if s.last = len(s.rows) < v.o.Slice; !s.last {
			until = s.rows[len(s.rows)-1].At
		}
		s.money, err = proof.MoneyEntries(ctx, tx, v.client, before, until)
		return err
	})
	return s, err
}

func linksBySequence(seals []auditlog.ChainLink) map[int64]auditlog.ChainLink {
	out := make(map[int64]auditlog.ChainLink, len(seals))
	for _, link := range seals {
		out[link.Sequence] = link
	}
	return out
}
