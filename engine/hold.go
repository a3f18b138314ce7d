package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till"
	"till/provider"
	"till/store"
	"till/store/admin"
)

// What is due but not sent until a person releases it:
//
//   - Payouts, while their client or all clients have a hold: after a restore, because
//     a person set it, or because the client is suspended. That includes re-sends. Their
//     window does not run: when nothing holds them any more, they get a whole window.
//   - Payments of a suspended client that were not sent. Their window does run, because
//     the customer waits now.
//   - New payments after a restore, to operators that do not know our references. Each
//     may be the retry of a lost payment, and the customer would be asked to pay twice.

// holdPause is how often a held step checks whether it is released. The release itself
// makes it due.
const holdPause = time.Minute

// heldClients is what a claim must not send. It is read in the claim's transaction, and
// only if it matters.
type heldClients struct {
	restoring bool
	clients   map[till.ID]bool
}

// readHolds reads the holds that concern some steps.
func (w *Worker) readHolds(ctx context.Context, tx *store.Tx, steps []*store.Step, jobs map[store.Ref]*Instruction) (h heldClients, err error) {
	var clients []till.ID
	lost := false
	for _, s := range steps {
		j := jobs[store.Ref{Client: s.ClientID, ID: s.SubjectID}]
		if j == nil || j.Final || !unsent(s) && !provenNotFound(s) {
			continue // it is not about to be sent
		}
		clients = append(clients, s.ClientID)
		lost = lost || w.kind == till.SubjectPayment && w.noReference[j.Connection] && unsent(s)
	}
	if len(clients) == 0 {
		return h, nil
	}
	holds, err := tx.HoldsOf(ctx, clients)
	if err != nil {
		return h, err
	}
	h.clients = make(map[till.ID]bool, len(holds))
	for client, of := range holds {
		h.clients[client] = holdsAny(w.kind, of)
	}
	if lost {
		h.restoring, err = admin.Restoring(ctx, tx)
	}
	return h, err
}

// holdsAny reports whether any of a client's holds applies to a kind of subject. Payments
// are held only because their client is suspended.
func holdsAny(kind till.SubjectKind, holds []store.Hold) bool {
	for _, h := range holds {
		if kind == till.SubjectPayout || h.Cause == store.HoldSuspended {
			return true
		}
	}
	return false
}

// replaceIfHeld returns what to do instead of an action. Hold also releases what is held no
// longer.
func (w *Worker) replaceIfHeld(action Action, s *store.Step, j *Instruction, h heldClients) Action {
	ends := s.Kind == till.SubjectPayout && unsent(s) && !j.Final // by itself, or after the read that its end waits for
	switch sends := action == Submit || ends && (action == Abandon || action == Check); {
	case h.restoring && w.noReference[j.Connection] && !j.Final && unsent(s):
		return Hold
	case sends && (h.clients[s.ClientID] || s.HeldAt != 0):
		return Hold
	}
	return action
}

// The errors of a send that is stopped at the last moment.
var (
	errHeld         = fmt.Errorf("%w: payouts are held", provider.ErrNotSent)
	errHoldsUnknown = fmt.Errorf("%w: it cannot be seen whether payouts are held", provider.ErrNotSent)
)

// checkHolds reads the client's holds again right before a payout is sent: the claim may
// have waited for its commit, or paused since. If the holds cannot be read, nothing is
// sent.
func (w *Worker) checkHolds(ctx context.Context, client till.ID) error {
	var holds map[till.ID][]store.Hold
	err := w.c.Store.View(ctx, func(tx *store.Tx) (err error) {
		holds, err = tx.HoldsOf(ctx, []till.ID{client})
		return err
	})
	switch {
	case err != nil:
		w.c.Log.Error("payout holds not read", "error", err)
		return errHoldsUnknown
	case len(holds[client]) > 0:
		return errHeld
	}
	return nil
}

// maxKinds is how many open cases of a row are read: one of each kind.
const maxKinds = 20

// readHolds reads the holds of the rows in the answers, and the open cases of those that
// nothing holds any more.
func (b *Recording[R]) readHolds(ctx context.Context) (err error) {
	var clients []till.ID
	for _, a := range b.answers {
		if a.Action == Hold {
			clients = append(clients, a.Ref.Client)
		}
	}
	if len(clients) > 0 {
		if b.holds, err = b.Tx.HoldsOf(ctx, clients); err != nil {
			return err
		}
		if b.restoring, err = admin.Restoring(ctx, b.Tx); err != nil {
			return err
		}
	}
	b.noCase = make(map[store.Ref]bool)
	for _, a := range b.answers {
		if a.Action == Hold && holdsAny(b.table.Kind, b.holds[a.Ref.Client]) || a.Action != Hold && !b.isHeld(a.Ref) {
			continue
		}
		open, err := b.Tx.Cases(ctx, store.CaseFilter{Client: a.Ref.Client, Subject: a.Ref.ID, Limit: maxKinds})
		if err != nil {
			return err
		}
		b.noCase[a.Ref] = !slices.ContainsFunc(open, func(c *store.Case) bool { return c.Kind != CaseHeld })
	}
	return nil
}

// isHeld reports whether a row has been held until now.
func (b *Recording[R]) isHeld(ref store.Ref) bool {
	s := b.Steps[ref]
	return s != nil && s.HeldAt != 0
}

// hold keeps a row from being sent while anything holds it, and releases it after that.
// Payouts, and possible retries of lost payments, have an open case meanwhile.
func (b *Recording[R]) hold(row R, a *Answer, s *store.Step, now till.Time) {
	if a.LeaseVersion != s.LeaseVersion {
		return // another claim has it and decides
	}
	s.LeaseUntil, s.DueAt = 0, now.Add(holdPause)
	if s.WakeSeq != a.WakeSeq {
		s.DueAt = callbackDue(s, now) // a callback came since: it may have to be checked
	}
	p, holds := row.Subject(), b.holds[a.Ref.Client]
	switch {
	case b.restoring && s.Kind == till.SubjectPayment && b.worker.noReference[p.Connection] && unsent(s):
		b.ReopenCase(row, CaseHeld, till.Because(till.ReasonMaybeRetry, b.table.Name()), *p.Attention)
		b.NeedAttention(row)
	case !holdsAny(s.Kind, holds):
		b.releaseHold(row, s, now)
	default:
		if s.HeldAt == 0 {
			s.HeldAt = now
		}
		if s.Kind == till.SubjectPayout {
			b.ReopenCase(row, CaseHeld, till.Because(till.ReasonHeld, whyHeld(holds)), *p.Attention)
			b.NeedAttention(row)
		}
		if s.Kind != till.SubjectPayout || !unsent(s) {
			s.DueAt = max(now, min(s.DueAt, p.ExpiresAt)) // its window runs
		}
	}
}

// releaseHold makes a row due that nothing holds any more. A payout that was not sent gets
// its whole window from now on, however long it was held.
func (b *Recording[R]) releaseHold(row R, s *store.Step, now till.Time) {
	p := row.Subject()
	s.DueAt = now
	if s.Kind == till.SubjectPayout && unsent(s) && p.ExpiresAt < now.Add(p.Window) {
		b.extended = append(b.extended, extended{p.Ref, now.Add(p.Window)})
	}
	b.closeHeldCase(row, s, now, till.Because(till.ReasonNotHeld))
}

// closeHeldCase closes the case of a row that was held.
func (b *Recording[R]) closeHeldCase(row R, s *store.Step, now till.Time, why till.Reason) {
	p := row.Subject()
	s.HeldAt = 0
	another := func(c *store.Case) bool { return c.SubjectID == p.Ref.ID && c.Kind != CaseHeld }
	if *p.Attention && b.noCase[p.Ref] && !slices.ContainsFunc(b.cases, another) {
		b.setAttention(row, false)
	}
	b.closed = append(b.closed, store.CaseClosure{Ref: p.Ref, By: "engine", At: now, Kinds: []string{CaseHeld}, Why: why})
}

// extended is a row with a later end of its window.
type extended struct {
	ref   store.Ref
	until till.Time
}

func (b *Recording[R]) writeWindows(ctx context.Context) error {
	for _, x := range b.extended {
		if err := b.table.Extend(ctx, b.Tx, x.ref, x.until); err != nil {
			return err
		}
	}
	return nil
}

// whyHeld says why payouts are held.
func whyHeld(holds []store.Hold) string {
	var why []string
	for _, h := range holds {
		switch h.Cause {
		case store.HoldRestored:
			why = append(why, "payouts are held since an old database was put back")
		case store.HoldSuspended:
			why = append(why, "its client is suspended")
		default:
			why = append(why, "payouts are held by "+h.By+" ("+h.Reason+")")
		}
	}
	return strings.Join(why, ", and ")
}

// overdue says why a person should check a row that has been open for too long.
func overdue(s *store.Step) till.Reason {
	if s.Restored && !s.Acked {
		return till.Because(till.ReasonRestored)
	}
	return till.Because(till.ReasonOverdue)
}
