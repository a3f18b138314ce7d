package store

import (
	"context"

	"till"
)

// HoldRestored is why payouts are held after an old database was put back.
const HoldRestored = "restored"

// EveryClient stands for all clients where payouts are held.
var EveryClient till.ID

// HoldPayouts keeps new payouts of a client, or of EveryClient, from being
// taken. What is held for the same cause stays so.
func (tx *Tx) HoldPayouts(ctx context.Context, client till.ID, cause, by string) error {
	_, err := tx.exec(ctx, `INSERT INTO payout_holds (client_id, cause, held_at, held_by) VALUES (?, ?, ?, ?) ON CONFLICT (client_id, cause) DO NOTHING`,
		client[:], cause, int64(tx.Now()), by)
	return err
}

// ReleasePayouts ends what HoldPayouts began for a cause.
func (tx *Tx) ReleasePayouts(ctx context.Context, client till.ID, cause string) error {
	_, err := tx.exec(ctx, `DELETE FROM payout_holds WHERE client_id = ? AND cause = ?`, client[:], cause)
	return err
}

// PayoutsHeld returns of which of the clients no new payouts are taken.
func (tx *Tx) PayoutsHeld(ctx context.Context, clients []till.ID) (map[till.ID]bool, error) {
	clients = sortedIDs(append([]till.ID{EveryClient}, clients...))
	held := make(map[till.ID]bool)
	err := tx.rowsOf(ctx, `SELECT held_at FROM payout_holds WHERE client_id = ?`, idArgs(clients), func(i int, r row) error {
		var at till.Time
		held[clients[i]] = true
		return r.Scan(&at)
	})
	if held[EveryClient] {
		for _, c := range clients {
			held[c] = true
		}
	}
	return held, err
}
