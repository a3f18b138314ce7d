package books_test

import (
	"testing"

	"till"
	"till/books"
	"till/store"
	"till/store/storetest"
)

func TestRestoredGivesTheLogsANewIdentity(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		if _, err := books.Restored(ctx, s, "Awa"); err == nil {
			t.Error("a database that was never started was restored")
		}
		old := till.NewID(s.Now())
		clients := make([]*till.Client, 103) // more than one commit takes
		err := s.Update(ctx, func(tx *store.Tx) error {
			for i := range clients {
				clients[i] = &till.Client{ID: till.NewID(tx.Now()), Name: "one of many", Mode: till.Live, CreatedAt: tx.Now()}
				if err := tx.InsertClient(ctx, clients[i]); err != nil {
					return err
				}
			}
			return tx.InsertInstallation(ctx, &store.Installation{LogID: old, SecretCheck: []byte("check"), CreatedAt: tx.Now()})
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[till.ID]bool{old: true}
		for range 2 {
			id, err := books.Restored(ctx, s, "Awa")
			if err != nil || seen[id] {
				t.Fatalf("log %s, %v; want one that was never there", id, err)
			}
			seen[id] = true
			err = s.View(ctx, func(tx *store.Tx) error {
				i, err := tx.Installation(ctx)
				if err == nil && i.LogID != id {
					t.Errorf("the log is %s, want %s", i.LogID, id)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		err = s.View(ctx, func(tx *store.Tx) error {
			for _, c := range clients {
				rows, err := tx.Audit(ctx, c.ID, 0, 10)
				if err != nil {
					return err
				}
				if len(rows) != 2 || rows[0].Action != "restored" || rows[0].Actor != "Awa" {
					t.Errorf("the audit log of %s has %d rows: %+v", c.ID, len(rows), rows)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
