package account

import (
	"context"
	"strings"

	"till"
	"till/store"
	"till/store/access"
	"till/store/auditlog"
)

// maxKeysRead is how many keys of a client are looked through.
const maxKeysRead = 1000

// KeysByPerson returns the keys of a client that are active, by the person of the console
// who made them or put them in another's place. The audit log says who: a key has the time
// of its row.
func (a *Accounts) KeysByPerson(ctx context.Context, client till.ID) (out map[till.ID][]*till.Key, err error) {
	err = a.store.View(ctx, func(tx *store.Tx) error {
		out = map[till.ID][]*till.Key{}
		keys, err := access.Keys(ctx, tx, client, maxKeysRead)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if !k.Active(tx.Now()) {
				continue
			}
			before, err := auditlog.CountBefore(ctx, tx, client, k.CreatedAt)
			if err != nil {
				return err
			}
			rows, err := auditlog.Read(ctx, tx, client, before, 1)
			if err != nil {
				return err
			}
			if len(rows) == 1 && rows[0].At == k.CreatedAt && strings.Contains(rows[0].Detail, "key "+k.ID+",") {
				if maker, ok := till.PersonOfActor(rows[0].Actor); ok {
					out[maker] = append(out[maker], k)
				}
			}
		}
		return nil
	})
	return out, err
}
