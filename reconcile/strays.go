package reconcile

import (
	"context"
	"errors"
	"slices"

	"till"
	"till/books"
	"till/store"
	"till/store/matching"
)

// strayKeyOf returns the names on a line that have our form: a reference is a
// UUID of version 4, an id one of version 7. M-Pesa shows the end of an id,
// which counts only with a receipt.
func strayKeyOf(connection string, l *record, receipt string) (matching.StrayKey, bool) {
	k := matching.StrayKey{Connection: connection, Receipt: receipt}
	tail := false
	for _, text := range l.keys[:byReceipt] {
		switch id := till.ID(text); {
		case text == (key{}):
		case text.isTail():
			tail = true
		case id[6]>>4 == 4 && id[8]>>6 == 2:
			k.Reference = id
		case id[6]>>4 == 7 && id[8]>>6 == 2:
			k.Subject = id
		}
	}
	return k, !k.Reference.IsZero() || !k.Subject.IsZero() || tail && receipt != ""
}

// classifyMissing classifies the lines without a payment or payout. Those with
// our form are strays, unless their stray was closed before.
func (r *reconciler) classifyMissing(ctx context.Context) error {
	var left []uint32
	for i := range uint32(r.lines.n) {
		if r.lines.at(i).flags&(claimed|outside) == 0 {
			left = append(left, i)
		}
	}
	for chunk := range slices.Chunk(left, min(lookupSlice, r.slice)) {
		keys, of := make([]matching.StrayKey, 0, len(chunk)), make(map[uint32]int, len(chunk))
		for _, i := range chunk {
			k, ours, err := r.strayKey(i)
			if err != nil {
				return err
			}
			if ours {
				of[i] = len(keys)
				keys = append(keys, k)
			}
		}
		var found map[int][]*matching.Stray
		if len(keys) > 0 {
			err := r.view(ctx, func(tx *store.Tx) (err error) { found, err = matching.FindStrays(ctx, tx, keys); return err })
			if err != nil {
				return err
			}
		}
		for _, i := range chunk {
			v := classification{class: MissingHere, why: "no payment or payout here has this reference or receipt"}
			if n, ours := of[i]; ours {
				v = classifyStray(v, found[n])
			}
			if err := r.addFinding(v, i+1, nil); err != nil {
				return err
			}
		}
	}
	r.progress(0)
	return nil
}

// strayKey returns the names on a line, and whether it is a stray: it has our
// form and says that money moved, and no other line takes it back.
func (r *reconciler) strayKey(i uint32) (k matching.StrayKey, ours bool, err error) {
	l := r.lines.at(i)
	if l.status != lineSuccess || l.keys[byReference] == (key{}) && l.keys[byExternalID] == (key{}) {
		return k, false, nil
	}
	var same []uint32
	for kind := range l.keys {
		same = r.lines.indexes[kind].find(l.keys[kind], same)
	}
	for _, j := range same {
		if o := r.lines.at(j); o.status == lineReversed && o.flags&outside == 0 {
			return k, false, nil
		}
	}
	line, err := r.parser.reread(r.File, l, r.buffer)
	if err != nil {
		return k, false, err
	}
	k, ours = strayKeyOf(r.Connection, l, line.receipt)
	return k, ours, nil
}

// classifyStray classifies a line of our form that matches nothing, by the
// strays of the same name.
func classifyStray(v classification, found []*matching.Stray) classification {
	v.remedy, v.why = keepStray, v.why+", and it has the form of ours"
	for _, s := range found {
		if s.Why == "" {
			v.why = "stray " + s.ID.String() + " is open"
			return v
		}
		v = classification{class: Explained, why: "stray " + s.ID.String() + " was closed: " + s.Why}
	}
	return v
}

// recordStrays records the lines of one batch as strays. A line confirms the
// stray of a callback.
func (x *applier) recordStrays(ctx context.Context, batch []planned) error {
	f := x.r.file
	var fresh []*matching.Stray
	for i := range batch {
		l := f.lines.at(batch[i].line - 1)
		line, err := f.parser.reread(f.File, l, f.buffer)
		if err != nil {
			return err
		}
		k, _ := strayKeyOf(f.Connection, l, line.receipt)
		s := &matching.Stray{Connection: k.Connection, Reference: k.Reference, Subject: k.Subject, Receipt: k.Receipt, Amount: f.lines.money(l),
			Direction: map[direction]string{incoming: matching.StrayIn, outgoing: matching.StrayOut}[l.direction], Source: matching.StrayStatement,
			Confirmed: x.evidence(&batch[i]) + ", applied by " + x.By}
		changed, err := books.RecordStrayOfLine(ctx, x.s, s)
		switch {
		case errors.Is(err, books.ErrManyStrays):
			x.out.Beyond++
		case err != nil:
			return err
		case changed:
			x.out.Strays++
			fresh = append(fresh, s)
		default:
			x.out.Kept++
		}
	}
	if err := books.CloseBookedStrays(ctx, x.s, fresh, f.clients); err != nil {
		return err
	}
	return x.step(ctx, len(batch))
}
