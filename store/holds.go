package store

import (
	"context"

	"till"
)

// Why payouts are held. Each cause has its own hold: what one has held another
// does not release.
const (
	HoldRestored  = "restored"  // an old database was put back
	HoldPerson    = "person"    // a person said so
	HoldSuspended = "suspended" // the client is suspended
)

// EveryClient stands for all clients where payouts are held.
var EveryClient till.ID

// Hold keeps payouts of a client, or of EveryClient, from being taken and sent.
type Hold struct {
	Client till.ID
	Cause  string
	At     till.Time // set by HoldPayouts
	By     string
	Reason string // in the words of whoever holds them; "" where the cause says all
}

// HoldPayouts keeps payouts of a client, or of EveryClient, from being taken and
// sent. What is held for the same cause stays so.
func (tx *Tx) HoldPayouts(ctx context.Context, h Hold) error {
	_, err := tx.exec(ctx, `INSERT INTO payout_holds (client_id, cause, held_at, held_by, reason) VALUES (?, ?, ?, ?, ?) ON CONFLICT (client_id, cause) DO NOTHING`,
		h.Client[:], h.Cause, int64(tx.Now()), h.By, orNull(h.Reason))
	return err
}

// ReleasePayouts ends what HoldPayouts began for a cause. What waits is due
// when HastenHeld says so.
func (tx *Tx) ReleasePayouts(ctx context.Context, client till.ID, cause string) error {
	_, err := tx.exec(ctx, `DELETE FROM payout_holds WHERE client_id = ? AND cause = ?`, client[:], cause)
	return err
}

const holdColumns = `client_id, cause, held_at, held_by, reason`

func scanHold(r row) (h Hold, err error) {
	err = r.Scan(idDest(&h.Client), &h.Cause, &h.At, &h.By, textDest(&h.Reason))
	return h, err
}

// HoldsOf returns what holds the payouts of clients, those of EveryClient
// included.
func (tx *Tx) HoldsOf(ctx context.Context, clients []till.ID) (map[till.ID][]Hold, error) {
	all := sortedIDs(append([]till.ID{EveryClient}, clients...))
	out := make(map[till.ID][]Hold)
	err := tx.rowsOf(ctx, `SELECT `+holdColumns+` FROM payout_holds WHERE client_id = ?`, idArgs(all), func(i int, r row) error {
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
func (tx *Tx) Holds(ctx context.Context, limit int) (out []Hold, err error) {
	err = tx.rows(ctx, `SELECT `+holdColumns+` FROM payout_holds ORDER BY client_id, cause LIMIT ?`, []any{limit}, func(r row) error {
		h, err := scanHold(r)
		out = append(out, h)
		return err
	})
	return out, err
}

// Held is a payout that waits because payouts are held.
type Held struct {
	Ref   Ref
	Since till.Time
}

// HeldPayouts returns the next payouts that wait because payouts are held, by
// client and id, of one client or of EveryClient.
func (tx *Tx) HeldPayouts(ctx context.Context, client till.ID, after Ref, limit int) ([]Held, error) {
	return tx.heldSteps(ctx, ` AND kind = 'payout'`, client, after, limit)
}

func (tx *Tx) heldSteps(ctx context.Context, of string, client till.ID, after Ref, limit int) (out []Held, err error) {
	query, args := `SELECT client_id, subject_id, held_at FROM steps WHERE held_at > 0 AND (client_id > ? OR client_id = ? AND subject_id > ?)`+of,
		[]any{after.Client[:], after.Client[:], after.ID[:]}
	if client != EveryClient {
		query, args = query+` AND client_id = ?`, append(args, client[:])
	}
	err = tx.rows(ctx, query+` ORDER BY client_id, subject_id LIMIT ?`, append(args, limit), func(r row) error {
		var h Held
		err := r.Scan(idDest(&h.Ref.Client), idDest(&h.Ref.ID), &h.Since)
		out = append(out, h)
		return err
	})
	return out, err
}

// CountHeldPayouts counts them.
func (tx *Tx) CountHeldPayouts(ctx context.Context, client till.ID) (n int, err error) {
	query, args := `SELECT count(*) FROM steps WHERE held_at > 0 AND kind = 'payout'`, []any{}
	if client != EveryClient {
		query, args = query+` AND client_id = ?`, append(args, client[:])
	}
	_, err = tx.one(ctx, query, args, &n)
	return n, err
}

// maxHastened is how many steps HastenHeld makes due in one commit.
const maxHastened = 200

// HastenHeld makes due what waits because payouts of a client, or of EveryClient,
// were held: the engine lets go of what nothing holds any more. It commits in
// slices and may be interrupted: what is left is looked at within a minute.
func (s *Store) HastenHeld(ctx context.Context, client till.ID) error {
	var after Ref
	for {
		var held []Held
		err := s.UpdateBehind(ctx, func(tx *Tx) (err error) {
			if held, err = tx.heldSteps(ctx, "", client, after, maxHastened); err != nil {
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
