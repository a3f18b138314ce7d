package books_test

import (
	"testing"

	"till"
	"till/books"
	"till/store"
)

// The house's log is sealed and proven like a client's, and nothing else is the
// house's: it has no wallet to adjust and cannot be suspended.
func TestTheHouseHasALogAndNothingElse(t *testing.T) {
	t.Parallel()
	s, raw := newRaw(t)
	key, err := books.ChainKey([]byte("a secret for tests"))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		if heads, err := tx.LockHeads(t.Context(), []till.ID{till.House}); err != nil || len(heads) != 0 {
			t.Errorf("%d heads, %v", len(heads), err)
		}
		heads, err := tx.LockLogs(t.Context(), []till.ID{till.House})
		if err != nil {
			return err
		}
		h := heads[till.House]
		for range 3 {
			row := &store.AuditRow{Sequence: h.NextAudit(), At: h.NextTime(), Actor: "cli:root", Action: "person.invite", Detail: "Awa as admin"}
			if err := tx.InsertAudit(t.Context(), []*store.AuditRow{row}); err != nil {
				return err
			}
		}
		return tx.SaveHeads(t.Context(), heads)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := books.ExtendChains(t.Context(), s, key); err != nil || n != 3 {
		t.Fatalf("%d rows were sealed, %v", n, err)
	}
	var kept []books.AuditHead
	if err := books.EachHead(t.Context(), s, func(h books.AuditHead) bool { kept = append(kept, h); return true }); err != nil || len(kept) != 1 || kept[0].Client != till.House {
		t.Fatalf("%v, %v", kept, err)
	}
	verify := func() books.Report {
		r, err := books.Verify(t.Context(), s, books.Options{Key: key, Heads: kept})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := verify(); !r.Clean() || r.Audit != 3 || r.ChainLinks != 3 || r.Heads != 1 || r.Clients != 0 {
		t.Errorf("%+v", r)
	}
	if rows := auditRows(t, s, till.House, books.AuditFilter{}); len(rows) != 3 {
		t.Errorf("%d rows", len(rows))
	}
	raw(t, `DROP TRIGGER audit_update`)
	raw(t, `DROP TRIGGER audit_delete`)
	raw(t, `UPDATE audit SET detail = 'Mallory as admin' WHERE client_id = zeroblob(16) AND sequence = 2`)
	if r := verify(); r.Clean() || r.Problems[0].Invariant != "I14" || r.Problems[0].Client != till.House {
		t.Errorf("a changed row is not found: %+v", r)
	}
	raw(t, `UPDATE audit SET detail = 'Awa as admin' WHERE client_id = zeroblob(16) AND sequence = 2`)
	raw(t, `DELETE FROM audit WHERE client_id = zeroblob(16) AND sequence = 3`)
	if r := verify(); r.Clean() {
		t.Error("a removed row is not found")
	}
}
