package books_test

import (
	"testing"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/storetest"
)

// auditRows reads a client's whole audit log.
func auditRows(t *testing.T, s *store.Store, client till.ID, f books.AuditFilter) (out []*store.AuditRow) {
	t.Helper()
	if err := books.EachAudit(t.Context(), s, client, f, func(a *store.AuditRow) error { out = append(out, a); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheAuditLogIsListed(t *testing.T) {
	t.Parallel()
	start := till.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	storetest.RunAt(t, &start, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		client := storetest.NewClient(t, s, till.Test)
		addAudit(t, s, client.ID, 5200) // more than a slice
		clock.Advance(time.Hour)
		c := storetest.NewCollector(t, s)
		p := storetest.NewPayment(t, c, client, storetest.Body{})
		storetest.Apply(t, c, s, p, storetest.Succeeded)
		storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded)
		for name, w := range map[string]struct {
			f books.AuditFilter
			n int
		}{
			"all": {books.AuditFilter{}, 5202}, "a subject": {books.AuditFilter{Subject: p.ID}, 1},
			"from": {books.AuditFilter{From: start.Add(time.Minute)}, 2}, "to": {books.AuditFilter{To: start.Add(time.Minute)}, 5200},
			"from and subject": {books.AuditFilter{From: p.ID.Time(), Subject: p.ID}, 1}, "before all": {books.AuditFilter{To: 1}, 0},
			"after all": {books.AuditFilter{From: start.Add(2 * time.Hour)}, 0},
		} {
			if got := auditRows(t, s, client.ID, w.f); len(got) != w.n {
				t.Errorf("%s: %d rows, want %d", name, len(got), w.n)
			}
		}
		if err := books.EachAudit(t.Context(), s, till.NewID(1), books.AuditFilter{}, nil); till.ErrorCode(err) != till.CodeClientNotFound {
			t.Errorf("a client that does not exist: %v", err)
		}
	})
}
