package recovery

import (
	"context"
	"errors"
	"fmt"

	"till"
	"till/books"
	"till/engine"
	"till/store"
	"till/store/access"
	"till/store/admin"
)

// Limits of one commit of MarkRestored and Release.
const (
	restoredSteps = 200 // steps
)

// RestoreRequest is what a person says about a restored database.
type RestoreRequest struct {
	Secret       []byte    // the installation's; references to operators are derived from it
	LostFrom     till.Time // commits from then on are lost
	KeysReviewed bool      // a person has reviewed the working keys
	By           string
}

// RestoreResult is what MarkRestored did.
type RestoreResult struct {
	admin.Restore
	Again             bool // it continued an earlier run
	Payments, Payouts int  // marked as possibly sent, by this run
}

// errNeverStarted means that there is no installation yet.
var errNeverStarted = errors.New("the database has not been started yet: there is nothing to restore")

// MarkRestored records that the database was restored from a backup, or that a
// standby took over without the latest commits. What the database says about
// open payments and payouts may be wrong from then on:
//
//   - Each of them counts as possibly sent. It is checked, never sent, and ends
//     as unsent only if its operator proves it (engine.MarkRestored).
//   - New payouts are held until Release: wallets lack the payouts that are lost.
//   - First sends to operators without a client reference are held, too.
//   - The event logs get a new id, because event numbers are assigned again.
//     Each audit log has a row about it.
//   - The sums of refunds are made again from the refunds.
//   - Nobody is signed in any more and no invitation works: of each, the older
//     database may not know that it had been ended.
//
// It commits in slices and may be interrupted. Run again with the same
// LostFrom, it continues and leaves newer payments alone. A server may be
// running.
func MarkRestored(ctx context.Context, s *store.Store, r RestoreRequest) (*RestoreResult, error) {
	out := &RestoreResult{}
	// A second run continues the restore that the first has begun.
	_, err := store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, _ bool) error { return out.begin(ctx, tx, r) })
	if err != nil {
		return nil, err
	}
	keys := keysOf(r.Secret)
	detail := fmt.Sprintf("log %s; lost from %s", out.LogID, out.LostFrom)
	err = s.Update(ctx, func(tx *store.Tx) error {
		if err := store.AuditClients(ctx, tx, []till.ID{till.House}, r.By, books.ActionRestored, detail); err != nil {
			return err
		}
		return access.EndAllAccess(ctx, tx)
	})
	if err != nil {
		return out, err
	}
	err = s.EachPageOfClients(ctx, func(clients []till.ID) error {
		for _, client := range clients {
			if err := out.mark(ctx, s, client, keys); err != nil {
				return err
			}
			if err := rebuildRefundSums(ctx, s, client, r.By); err != nil {
				return err
			}
		}
		return s.UpdateBackground(ctx, func(tx *store.Tx) error {
			return store.AuditClients(ctx, tx, clients, r.By, books.ActionRestored, detail)
		})
	})
	if err != nil || !r.KeysReviewed {
		return out, err
	}
	err = s.Update(ctx, func(tx *store.Tx) error {
		out.KeysReviewedAt = tx.Now()
		return admin.ReviewKeys(ctx, tx)
	})
	return out, err
}

// keysOf returns the keys of both kinds.
func keysOf(secret []byte) map[till.SubjectKind]engine.Keys {
	return map[till.SubjectKind]engine.Keys{
		till.SubjectPayment: engine.NewKeys(till.SubjectPayment, secret),
		till.SubjectPayout:  engine.NewKeys(till.SubjectPayout, secret),
	}
}

// begin records the restore, or finds the one that an earlier run began.
func (out *RestoreResult) begin(ctx context.Context, tx *store.Tx, r RestoreRequest) error {
	if r.LostFrom > tx.Now() {
		return till.Errorf(till.CodeValidationFailed, "what is lost cannot begin in the future")
	}
	open, err := admin.OpenRestores(ctx, tx)
	if err != nil {
		return err
	}
	if len(open) > 0 && open[0].LostFrom == r.LostFrom {
		out.Restore, out.Again = *open[0], true
		return tx.HoldPayouts(ctx, store.Hold{Client: store.EveryClient, Cause: store.HoldRestored, By: r.By})
	}
	out.Restore = admin.Restore{At: tx.Now(), LostFrom: r.LostFrom, By: r.By, LogID: till.NewID(tx.Now())}
	if found, err := admin.SetLogID(ctx, tx, out.LogID); err != nil || !found {
		return errors.Join(err, errUnless(found))
	}
	if err := admin.InsertRestore(ctx, tx, &out.Restore); err != nil {
		return err
	}
	return tx.HoldPayouts(ctx, store.Hold{Client: store.EveryClient, Cause: store.HoldRestored, By: r.By})
}

func errUnless(started bool) error {
	if started {
		return nil
	}
	return errNeverStarted
}

// mark marks the open steps of a client as possibly sent, in slices.
func (out *RestoreResult) mark(ctx context.Context, s *store.Store, client till.ID, keys map[till.SubjectKind]engine.Keys) error {
	for after := (till.ID{}); ; {
		var last till.ID
		var n map[till.SubjectKind]int
		err := s.UpdateBackground(ctx, func(tx *store.Tx) (err error) {
			last, n, err = out.markSlice(ctx, tx, client, after, keys)
			return err
		})
		if err != nil {
			return err
		}
		out.Payments, out.Payouts = out.Payments+n[till.SubjectPayment], out.Payouts+n[till.SubjectPayout]
		if last.IsZero() {
			return nil
		}
		after = last
	}
}

// markSlice marks the next steps of a client and returns the last one it read;
// zero if there is none.
func (out *RestoreResult) markSlice(ctx context.Context, tx *store.Tx, client, after till.ID, keys map[till.SubjectKind]engine.Keys) (last till.ID, n map[till.SubjectKind]int, err error) {
	steps, err := admin.LockOpenSteps(ctx, tx, client, after, out.Again, restoredSteps)
	if err != nil || len(steps) == 0 {
		return last, nil, err
	}
	rows, err := subjectsOf(ctx, tx, steps)
	if err != nil {
		return last, nil, err
	}
	n = map[till.SubjectKind]int{}
	var marked []*store.Step
	var sends []*store.Attempt
	for _, st := range steps {
		last = st.SubjectID
		row, found := rows[st.SubjectID]
		// A newer step is right: it was made after an earlier run began.
		if !found || row.Final || out.Again && row.CreatedAt > out.At {
			continue
		}
		first := st.SendStartedAt.IsZero()
		engine.MarkRestored(st, row.Connection, tx.Now())
		marked, n[st.Kind] = append(marked, st), n[st.Kind]+1
		if first {
			sends = append(sends, engine.RestoredSend(st, row, keys[st.Kind]))
		}
	}
	if err := admin.MarkRestored(ctx, tx, marked); err != nil {
		return last, nil, err
	}
	return last, n, tx.InsertSends(ctx, sends)
}

// subjectsOf reads the payments and payouts of the steps of one client, by id.
func subjectsOf(ctx context.Context, tx *store.Tx, steps []*store.Step) (map[till.ID]store.Subject, error) {
	var in, out []store.Ref
	for _, st := range steps {
		if ref := (store.Ref{Client: st.ClientID, ID: st.SubjectID}); st.Kind == till.SubjectPayout {
			out = append(out, ref)
		} else {
			in = append(in, ref)
		}
	}
	payments, err := tx.Payments(ctx, in)
	if err != nil {
		return nil, err
	}
	payouts, err := tx.Payouts(ctx, out)
	if err != nil {
		return nil, err
	}
	rows := make(map[till.ID]store.Subject, len(steps))
	for ref, p := range payments {
		rows[ref.ID] = p.Subject()
	}
	for ref, p := range payouts {
		rows[ref.ID] = p.Subject()
	}
	return rows, nil
}
