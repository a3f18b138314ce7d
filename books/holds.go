package books

import (
	"context"

	"till"
	"till/store"
)

// maxHolds is how many holds are listed at most.
const maxHolds = 1000

// MaxHeld is how many waiting payouts are listed at most.
const MaxHeld = 1000

// PayoutsHeld has the holds on payouts, and the number of payouts that wait.
type PayoutsHeld struct {
	Holds   []store.Hold // at most MaxHolds, those of all clients first
	Waiting int          // payouts that wait
}

// HeldPayouts reads the holds of one client, or of store.EveryClient.
func HeldPayouts(ctx context.Context, s *store.Store, client till.ID) (out PayoutsHeld, err error) {
	err = s.View(ctx, func(tx *store.Tx) (err error) {
		if client == store.EveryClient {
			out.Holds, err = tx.Holds(ctx, maxHolds)
		} else {
			var of map[till.ID][]store.Hold
			of, err = tx.HoldsOf(ctx, []till.ID{client})
			out.Holds = of[client]
		}
		if err != nil {
			return err
		}
		out.Waiting, err = tx.CountHeldPayouts(ctx, client)
		return err
	})
	return out, err
}

// HoldPayouts stops the payouts of a client, or of store.EveryClient, until
// ReleasePayouts. It is in force when it returns: only calls in flight go on.
// It returns CodeClientNotFound. It may be run twice; the first hold counts.
func HoldPayouts(ctx context.Context, s *store.Store, client till.ID, by, reason string) error {
	hold := func(tx *store.Tx, _ bool) error {
		return tx.HoldPayouts(ctx, store.Hold{Client: client, Cause: store.HoldPerson, By: by, Reason: reason})
	}
	if client != store.EveryClient {
		return auditedUpdate(ctx, s, client, by, "payouts.hold", reason, hold)
	}
	// The hold comes before the audit rows; an interrupted command is run again.
	if _, err := store.RetryUnknown(ctx, s.Update, hold); err != nil {
		return err
	}
	return auditAllClients(ctx, s, by, "payouts.hold", reason)
}

// ReleasePayouts ends a hold of HoldPayouts. Waiting payouts are sent, unless
// another hold remains: a restore, the client's suspension, a hold of the
// client or of all clients. It returns CodeClientNotFound. It may be run
// twice.
func ReleasePayouts(ctx context.Context, s *store.Store, client till.ID, by, reason string) error {
	release := func(tx *store.Tx, _ bool) error { return tx.ReleasePayouts(ctx, client, store.HoldPerson) }
	var err error
	if client != store.EveryClient {
		err = auditedUpdate(ctx, s, client, by, "payouts.release", reason, release)
	} else if err = auditAllClients(ctx, s, by, "payouts.release", reason); err == nil { // the audit rows come first, as in Release
		_, err = store.RetryUnknown(ctx, s.Update, release)
	}
	if err != nil {
		return err
	}
	return s.HastenHeld(ctx, client)
}

// auditedUpdate runs f for a client, with a row in its audit log.
func auditedUpdate(ctx context.Context, s *store.Store, client till.ID, by, action, detail string, f func(tx *store.Tx, again bool) error) error {
	_, err := store.RetryUnknown(ctx, s.Update, func(tx *store.Tx, again bool) error {
		if _, err := tx.Client(ctx, client); err != nil {
			return err
		}
		if err := store.AuditClients(ctx, tx, []till.ID{client}, by, action, detail); err != nil {
			return err
		}
		return f(tx, again)
	})
	return err
}

// auditAllClients adds a row to the audit logs of all clients, in slices.
func auditAllClients(ctx context.Context, s *store.Store, by, action, detail string) error {
	return s.EachPageOfClients(ctx, func(clients []till.ID) error {
		return s.UpdateBackground(ctx, func(tx *store.Tx) error {
			return store.AuditClients(ctx, tx, clients, by, action, "all clients: "+detail)
		})
	})
}

// HoldScope says whose payouts a hold stops.
func HoldScope(h store.Hold) string {
	if h.Client == store.EveryClient {
		return "all clients"
	}
	return "client " + h.Client.String()
}

// HoldReason says why payouts are held, and what ends it.
func HoldReason(h store.Hold) string {
	switch h.Cause {
	case store.HoldRestored:
		return "an old database was put back; see 'till restored --show'"
	case store.HoldSuspended:
		return "the client is suspended; 'till client resume' ends it"
	}
	return h.Reason
}
