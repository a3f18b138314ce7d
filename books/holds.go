package books

import (
	"context"

	"till"
	"till/store"
)

// MaxHolds is how many holds are listed.
const MaxHolds = 1000

// MaxHeld is how many payouts that wait are listed at once.
const MaxHeld = 1000

// PayoutsHeld is what holds payouts, and what waits because of it.
type PayoutsHeld struct {
	Holds   []store.Hold // at most MaxHolds, those of all clients first
	Waiting int          // payouts that are kept from being sent
}

// HeldPayouts reads what holds payouts, of one client or of store.EveryClient.
func HeldPayouts(ctx context.Context, s *store.Store, client till.ID) (out PayoutsHeld, err error) {
	err = s.View(ctx, func(tx *store.Tx) (err error) {
		if client == store.EveryClient {
			out.Holds, err = tx.Holds(ctx, MaxHolds)
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

// HoldPayouts is told by a person that no payouts of a client, or of
// store.EveryClient, are to be taken and sent until ReleasePayouts. It is in force
// when it returns: nothing is sent any more but what is on the wire. It returns
// CodeClientNotFound. It may be run twice: the first hold stands.
func HoldPayouts(ctx context.Context, s *store.Store, client till.ID, by, reason string) error {
	hold := func(tx *store.Tx, _ bool) error {
		return tx.HoldPayouts(ctx, store.Hold{Client: client, Cause: store.HoldPerson, By: by, Reason: reason})
	}
	if client != store.EveryClient {
		return auditedUpdate(ctx, s, client, by, "payouts.hold", reason, hold)
	}
	// It holds before it is told everywhere: one that is interrupted is run again.
	if _, err := retryUnknown(ctx, s.Update, hold); err != nil {
		return err
	}
	return auditAllClients(ctx, s, by, "payouts.hold", reason)
}

// ReleasePayouts ends what HoldPayouts began. What waited is sent, unless
// something else holds it still: a restore, the suspension of its client, or a hold
// of the client, or of all. It returns CodeClientNotFound. It may be run twice.
func ReleasePayouts(ctx context.Context, s *store.Store, client till.ID, by, reason string) error {
	release := func(tx *store.Tx, _ bool) error { return tx.ReleasePayouts(ctx, client, store.HoldPerson) }
	var err error
	if client != store.EveryClient {
		err = auditedUpdate(ctx, s, client, by, "payouts.release", reason, release)
	} else if err = auditAllClients(ctx, s, by, "payouts.release", reason); err == nil { // before it is done, as after a restore
		_, err = retryUnknown(ctx, s.Update, release)
	}
	if err != nil {
		return err
	}
	return s.HastenHeld(ctx, client)
}

// auditedUpdate does something to a client, with a line in its audit log.
func auditedUpdate(ctx context.Context, s *store.Store, client till.ID, by, action, detail string, f func(tx *store.Tx, again bool) error) error {
	_, err := retryUnknown(ctx, s.Update, func(tx *store.Tx, again bool) error {
		if _, err := tx.Client(ctx, client); err != nil {
			return err
		}
		if err := auditClients(ctx, tx, []till.ID{client}, by, action, detail); err != nil {
			return err
		}
		return f(tx, again)
	})
	return err
}

// auditAllClients writes a line into the audit logs of all clients, slice by slice.
func auditAllClients(ctx context.Context, s *store.Store, by, action, detail string) error {
	return eachPage(ctx, s, func(clients []till.ID) error {
		return s.UpdateBehind(ctx, func(tx *store.Tx) error { return auditClients(ctx, tx, clients, by, action, "all clients: "+detail) })
	})
}
