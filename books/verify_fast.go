package books

import (
	"context"
	"encoding/binary"
	"slices"

	"till"
	"till/collect"
	"till/store"
	"till/store/proof"
)

// suspectShare is the share of a slice, one in so many, above which it is
// faster to read the whole slice in full than its suspects one by one.
const suspectShare = 8

// readSlice reads the next slice of payments in one snapshot. It checks the
// usual ones and returns the others, with all their rows, to be checked one by
// one. It returns the slice's last id, and false at the end.
func (v *verifier) readSlice(ctx context.Context, tx *store.Tx, head *store.Head, after till.ID) (out []*proof.VerifyPayment, last till.ID, more bool, err error) {
	var suspects []till.ID
	last = after
	var named int64
	n, err := proof.VerifyPaymentsFast(ctx, tx, v.client, after, lastTime(head), v.logEnd, v.o.Slice, func(p *proof.FastPayment) error {
		if p.ID == last && p.ID != after {
			v.problem("I2", p.ID, "the payment was credited more than once")
			return nil
		}
		last = p.ID
		named += p.Named
		if !p.Usual || p.ID.Time() != p.CreatedAt || p.Unscheduled && !v.readLate(p.Connection, p.UpdatedAt, p.LastRead) {
			suspects = append(suspects, p.ID)
			return nil
		}
		v.Payments++
		v.noteAsk(p.ID, p.Document)
		for _, f := range collect.CheckStored(&till.Payment{Amount: p.Amount, Document: p.Document}) {
			v.problem("I15", p.ID, "%s %s: %s", f.Pointer, f.Code, f.Detail)
		}
		return nil
	})
	if err != nil {
		return nil, last, false, err
	}
	v.named += named
	v.addProgress(named)
	switch {
	case len(suspects) == 0:
	case len(suspects) > n/suspectShare:
		out, err = proof.VerifyPayments(ctx, tx, v.client, after, n)
		out = slices.DeleteFunc(out, func(p *proof.VerifyPayment) bool {
			_, suspect := slices.BinarySearchFunc(suspects, p.ID, func(a, b till.ID) int { return slices.Compare(a[:], b[:]) })
			return !suspect
		})
	default:
		out, err = proof.VerifyPaymentsOf(ctx, tx, v.client, suspects)
	}
	return out, last, n > 0, err
}

// lastTime is the client's last timestamp.
func lastTime(head *store.Head) till.Time {
	if head == nil {
		return 0
	}
	return head.LastTime
}

// verifyEventsFast reads the log. It proves that the log is dense and in the
// order of time, and counts the payments' events up to an end that was fixed
// before. Each payment was found to number so many events that exist, are its
// own and are of the right kind. If the counts are equal, each event belongs
// to a payment. Other events are looked up one by one.
func (v *verifier) verifyEventsFast(ctx context.Context) error {
	var last int64
	var before till.Time
	for {
		var head *store.Head
		var closer []*proof.LoggedEvent
		n, first := 0, last
		err := v.view(ctx, func(tx *store.Tx) (err error) {
			if head, err = proof.Head(ctx, tx, v.client); err != nil {
				return err
			}
			var others []int64
			n, err = proof.VerifyEventsFast(ctx, tx, v.client, last, v.o.Slice, func(e *proof.FastEvent) {
				v.Events++
				v.check(e.Sequence == last+1, "I6", till.ID{}, "the event log has a gap between %d and %d", last, e.Sequence)
				v.check(e.CreatedAt > before, "I6", till.ID{}, "event %d was made before the one before it", e.Sequence)
				last, before = e.Sequence, e.CreatedAt
				switch {
				case !e.OfPayment:
					others = append(others, e.Sequence)
				case e.Sequence <= v.logEnd:
					v.logged++
				}
			})
			if err == nil {
				closer, err = v.loggedEvents(ctx, tx, others, first, n)
			}
			return err
		})
		if err != nil {
			return err
		}
		v.addProgress(int64(n))
		for _, e := range closer {
			v.check(e.Sequence == subjectSequence(e), "I6", e.SubjectID, "event %d, %s, is not named by what it is about", e.Sequence, e.Kind)
		}
		if n == 0 {
			v.check(head != nil && last == head.LastEvent, "I6", till.ID{}, "the event log ends at %d and its head says otherwise", last)
			return nil
		}
	}
}

// loggedEvents reads events with their subjects: one by one, or the whole
// slice if there are many.
func (v *verifier) loggedEvents(ctx context.Context, tx *store.Tx, sequences []int64, after int64, n int) (out []*proof.LoggedEvent, err error) {
	if len(sequences) > n/suspectShare {
		out, err = proof.LoggedEvents(ctx, tx, v.client, after, n)
		return slices.DeleteFunc(out, func(e *proof.LoggedEvent) bool {
			_, wanted := slices.BinarySearch(sequences, e.Sequence)
			return !wanted
		}), err
	}
	for _, sequence := range sequences {
		one, err := proof.LoggedEvents(ctx, tx, v.client, sequence-1, 1)
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return out, nil
}

// keysHeld is how many keys are compared at once, in 128 MB.
const keysHeld = 16 << 20

// verifyKeys proves I5 again, beside the unique index. It compares half of the
// bits of each key; if two are equal, the database counts all keys.
func (v *verifier) verifyKeys(ctx context.Context) error {
	seen := []uint64{}
	for round, rounds := uint64(0), uint64(1); round < rounds; round++ {
		seen = seen[:0]
		for last, more := (till.ID{}), true; more; {
			err := v.view(ctx, func(tx *store.Tx) error {
				next, n, err := proof.IdempotencyKeys(ctx, tx, v.client, last, v.o.Slice, func(key till.ID) {
					folded := binary.BigEndian.Uint64(key[:8]) ^ binary.BigEndian.Uint64(key[8:])
					if folded%rounds == round {
						seen = append(seen, folded)
					}
				})
				last, more = next, n > 0
				return err
			})
			if err != nil {
				return err
			}
			if len(seen) > keysHeld { // more than fit: begin again, in more rounds
				rounds, round = rounds*2, 0
				last, seen = till.ID{}, seen[:0]
			}
		}
		slices.Sort(seen)
		for i := 1; i < len(seen); i++ {
			if seen[i] == seen[i-1] {
				return v.countKeys(ctx)
			}
		}
	}
	return nil
}

// countKeys lets the database compare all keys in full.
func (v *verifier) countKeys(ctx context.Context) error {
	return v.view(ctx, func(tx *store.Tx) error {
		payments, keys, err := proof.CountIdempotencyKeys(ctx, tx, v.client)
		v.check(payments == keys, "I5", till.ID{}, "%d payments have %d idempotency keys", payments, keys)
		return err
	})
}
