package store

import (
	"context"

	"till"
	"till/internal/db"
)

const holdColumns = `client_id, cause, held_at, held_by, reason`

var insertHold = db.Define(db.SQL{Name: "holds.insert",
	SQLite: `INSERT INTO payout_holds (client_id, cause, held_at, held_by, reason) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (client_id, cause) DO NOTHING`})

var deleteHold = db.Define(db.SQL{Name: "holds.delete",
	SQLite: `DELETE FROM payout_holds WHERE client_id = $1 AND cause = $2`})

var selectHoldsOf = db.Define(db.SQL{Name: "holds.selectOf",
	SQLite: `SELECT ` + holdColumns + ` FROM payout_holds WHERE client_id = $1`,
	Postgres: `SELECT u.nth, ` + holdColumns + ` FROM payout_holds,
		(SELECT unnest($1::bytea[]) AS a1, unnest($2::bigint[]) AS nth LIMIT $3::bigint) AS u
		WHERE client_id = ANY(ARRAY[u.a1])`,
	Arrays: true})

var selectHolds = db.Define(db.SQL{Name: "holds.select",
	SQLite: `SELECT ` + holdColumns + ` FROM payout_holds ORDER BY client_id, cause LIMIT $1`})

const heldAfter = `SELECT client_id, subject_id, held_at FROM steps WHERE held_at > 0 AND (client_id > $1 OR client_id = $1 AND subject_id > $2)`

var selectHeldPayouts = db.Define(db.SQL{Name: "holds.selectHeldPayouts",
	SQLite: heldAfter + ` AND kind = 'payout' ORDER BY client_id, subject_id LIMIT $3`})

var selectHeldPayoutsOf = db.Define(db.SQL{Name: "holds.selectHeldPayoutsOf",
	SQLite: heldAfter + ` AND kind = 'payout' AND client_id = $3 ORDER BY client_id, subject_id LIMIT $4`})

var selectHeldSteps = db.Define(db.SQL{Name: "holds.selectHeldSteps",
	SQLite: heldAfter + ` ORDER BY client_id, subject_id LIMIT $3`})

var selectHeldStepsOf = db.Define(db.SQL{Name: "holds.selectHeldStepsOf",
	SQLite: heldAfter + ` AND client_id = $3 ORDER BY client_id, subject_id LIMIT $4`})

var countHeldPayouts = db.Define(db.SQL{Name: "holds.countHeldPayouts",
	SQLite: `SELECT count(*) FROM steps WHERE held_at > 0 AND kind = 'payout'`})

var countHeldPayoutsOf = db.Define(db.SQL{Name: "holds.countHeldPayoutsOf",
	SQLite: `SELECT count(*) FROM steps WHERE held_at > 0 AND kind = 'payout' AND client_id = $1`})

// Why payouts are held. Each cause has its own hold: what one has held another
// does not release.
const (
	HoldRestored  = "restored"  // an old database was put back
	HoldPerson    = "person"    // a person said so
	HoldSuspended = "suspended" // the client is suspended
)

// EveryClient means all clients in a hold of payouts.
var EveryClient till.ID

// Hold keeps payouts of a client, or of EveryClient, from being taken and sent.
type Hold struct {
	Client till.ID
	Cause  string
	At     till.Time // set by HoldPayouts
	By     string
	Reason string // in the words of the person who holds them; "" where the cause says all
}

// HoldPayouts keeps payouts of a client, or of EveryClient, from being taken and
// sent. What is held for the same cause stays so.
func (tx *Tx) HoldPayouts(ctx context.Context, h Hold) error {
	_, err := tx.db.Exec(ctx, insertHold,
		h.Client[:], h.Cause, int64(tx.Now()), h.By, db.OrNull(h.Reason))
	return err
}

// ReleasePayouts ends what HoldPayouts began for a cause. What waits is due
// when HastenHeld says so.
func (tx *Tx) ReleasePayouts(ctx context.Context, client till.ID, cause string) error {
	_, err := tx.db.Exec(ctx, deleteHold, client[:], cause)
	return err
}

func scanHold(r db.Row) (h Hold, err error) {
	err = r.Scan(db.ID(&h.Client), &h.Cause, &h.At, &h.By, db.Text(&h.Reason))
	return h, err
}

// HoldsOf returns what holds the payouts of clients, those of EveryClient
// included.
func (tx *Tx) HoldsOf(ctx context.Context, clients []till.ID) (map[till.ID][]Hold, error) {
	all := SortedIDs(append([]till.ID{EveryClient}, clients...))
	out := make(map[till.ID][]Hold)
	err := tx.db.QueryEach(ctx, selectHoldsOf, IDArgs(all), func(i int, r db.Row) error {
		h, err := scanHold(r)
		out[all[i]] = append(out[all[i]], h)
		return err
	})
	if every := out[EveryClient]; len(every) > 0 {
		for _, c := range all {
			if c != EveryClient {
				out[c] = append(out[c], every...)
			}
		}
	}
	return out, err
}

// Holds returns the first holds, those of EveryClient before those of clients.
func (tx *Tx) Holds(ctx context.Context, limit int) ([]Hold, error) {
	return db.ReadAll(ctx, tx.db, selectHolds, []any{limit}, scanHold)
}

// Prefetched is a payout that waits because payouts are held.
type Held struct {
	Ref   Ref
	Since till.Time
}

// HeldPayouts returns the next payouts that wait because payouts are held, by
// client and id, of one client or of EveryClient.
func (tx *Tx) HeldPayouts(ctx context.Context, client till.ID, after Ref, limit int) ([]Held, error) {
	if client == EveryClient {
		return tx.held(ctx, selectHeldPayouts, after.Client[:], after.ID[:], limit)
	}
	return tx.held(ctx, selectHeldPayoutsOf, after.Client[:], after.ID[:], client[:], limit)
}

// heldSteps is HeldPayouts for steps of every kind.
func (tx *Tx) heldSteps(ctx context.Context, client till.ID, after Ref, limit int) ([]Held, error) {
	if client == EveryClient {
		return tx.held(ctx, selectHeldSteps, after.Client[:], after.ID[:], limit)
	}
	return tx.held(ctx, selectHeldStepsOf, after.Client[:], after.ID[:], client[:], limit)
}

func (tx *Tx) held(ctx context.Context, q *db.SQL, args ...any) (out []Held, err error) {
	err = tx.db.Query(ctx, q, args, func(r db.Row) error {
		var h Held
		err := r.Scan(db.ID(&h.Ref.Client), db.ID(&h.Ref.ID), &h.Since)
		out = append(out, h)
		return err
	})
	return out, err
}

// CountHeldPayouts counts them.
func (tx *Tx) CountHeldPayouts(ctx context.Context, client till.ID) (n int, err error) {
	if client == EveryClient {
		_, err = tx.db.QueryRow(ctx, countHeldPayouts, nil, &n)
	} else {
		_, err = tx.db.QueryRow(ctx, countHeldPayoutsOf, []any{client[:]}, &n)
	}
	return n, err
}

// maxHastened is how many steps HastenHeld makes due in one commit.
const maxHastened = 200

// HastenHeld makes the steps due that wait because payouts of a client, or of
// EveryClient, were held. The engine then releases those that nothing holds any
// more. It commits in slices and may be interrupted: the engine checks the rest
// within a minute.
func (s *Store) HastenHeld(ctx context.Context, client till.ID) error {
	var after Ref
	for {
		var held []Held
		err := s.UpdateBackground(ctx, func(tx *Tx) (err error) {
			if held, err = tx.heldSteps(ctx, client, after, maxHastened); err != nil {
				return err
			}
			refs := make([]Ref, len(held))
			for i, h := range held {
				refs[i] = h.Ref
			}
			return tx.HastenSteps(ctx, refs)
		})
		if err != nil || len(held) < maxHastened {
			return err
		}
		after = held[len(held)-1].Ref
	}
}
