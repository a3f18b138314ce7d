package books

import (
	"context"
	"errors"

	"till"
	"till/store"
)

// restoredClients is how many audit logs one commit of Restored appends to.
const restoredClients = 100

// Restored is told by a person that the database was put back from a backup:
// what came after the backup is lost, and numbers of events will be given out
// a second time. The event logs get a new identity, so that whoever follows
// one notices, and every audit log says so. It may be run twice.
func Restored(ctx context.Context, s *store.Store, actor string) (logID till.ID, err error) {
	logID = till.NewID(s.Now())
	err = s.Update(ctx, func(tx *store.Tx) error {
		found, err := tx.SetLogID(ctx, logID)
		if err == nil && !found {
			return errors.New("the database has not been started yet: there is nothing to restore")
		}
		return err
	})
	if err != nil {
		return till.ID{}, err
	}
	for after := (till.ID{}); ; {
		var clients []till.ID
		err := s.View(ctx, func(tx *store.Tx) error {
			clients = nil
			page, err := tx.Clients(ctx, after, restoredClients)
			for _, c := range page {
				clients = append(clients, c.ID)
			}
			return err
		})
		if err != nil || len(clients) == 0 {
			return logID, err
		}
		after = clients[len(clients)-1]
		if err := s.UpdateBehind(ctx, func(tx *store.Tx) error { return auditRestored(ctx, tx, clients, logID, actor) }); err != nil {
			return logID, err
		}
	}
}

func auditRestored(ctx context.Context, tx *store.Tx, clients []till.ID, logID till.ID, actor string) error {
	heads, err := tx.LockHeads(ctx, clients)
	if err != nil {
		return err
	}
	rows := make([]*store.AuditRow, 0, len(heads))
	for _, h := range heads {
		rows = append(rows, &store.AuditRow{ClientID: h.ClientID, Sequence: h.NextAudit(), At: h.Tick(), Actor: actor, Action: "restored", Detail: "log " + logID.String()})
	}
	if err := tx.InsertAudit(ctx, rows); err != nil {
		return err
	}
	return tx.SaveHeads(ctx, heads)
}
