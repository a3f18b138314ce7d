package books_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/storetest"
)

// oldSeal is the formula from before audit rows had a cause and evidence.
func oldSeal(before [32]byte, a *store.AuditRow) [32]byte {
	var b bytes.Buffer
	number := func(n int64) { binary.Write(&b, binary.BigEndian, n) }
	b.Write(before[:])
	b.Write(a.ClientID[:])
	number(a.Sequence)
	number(int64(a.At))
	b.Write(a.SubjectID[:])
	for _, text := range []string{a.Actor, a.Action, a.Detail} {
		number(int64(len(text)))
		b.WriteString(text)
	}
	return sha256.Sum256(b.Bytes())
}

// auditRows reads a client's whole audit log.
func auditRows(t *testing.T, s *store.Store, client till.ID, f books.AuditFilter) (out []*store.AuditRow) {
	t.Helper()
	if err := books.EachAudit(t.Context(), s, client, f, func(a *store.AuditRow) error { out = append(out, a); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// A chain that was sealed before rows had a cause and evidence goes on under
// the new formula.
func TestAnOldChainGoesOn(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Test)
		addAudit(t, s, client.ID, 5)
		var seals []store.Seal
		var link [32]byte
		for _, a := range auditRows(t, s, client.ID, books.AuditFilter{}) {
			if a.Cause != "" || a.Evidence != nil {
				t.Fatalf("got %+v, want a row as it was once", a)
			}
			link = oldSeal(link, a)
			seals = append(seals, store.Seal{Sequence: a.Sequence, Covers: 1, Hash: link})
		}
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			for _, link := range seals {
				if err := tx.InsertSeal(t.Context(), client.ID, link); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c := storetest.NewCollector(t, s)
		storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{}), storetest.Succeeded)
		rows := auditRows(t, s, client.ID, books.AuditFilter{})
		if last := rows[len(rows)-1]; last.Cause != "check" || len(last.Evidence) != 32 {
			t.Errorf("got %+v, want the cause and the evidence of a credit", last)
		}
		if n, err := books.Seal(t.Context(), s); err != nil || n != 1 {
			t.Errorf("sealed %d, %v", n, err)
		}
		if r := verify(t, s, books.Options{}); !r.Clean() || r.Seals != 6 {
			t.Errorf("%d seals, %+v", r.Seals, r.Problems)
		}
	})
}

// Every part of a row is sealed.
func TestASealCoversTheWholeRow(t *testing.T) {
	t.Parallel()
	row := store.AuditRow{ClientID: till.NewID(1), Sequence: 1, At: 2, Actor: "Awa", Action: "look", SubjectID: till.NewID(2), Detail: "d", Cause: "c", Evidence: []byte("e")}
	seen := map[[32]byte]string{store.SealOf(store.Seal{}, &row).Hash: "nothing"}
	for name, change := range map[string]func(a *store.AuditRow){
		"client": func(a *store.AuditRow) { a.ClientID[0]++ }, "sequence": func(a *store.AuditRow) { a.Sequence++ }, "at": func(a *store.AuditRow) { a.At++ },
		"actor": func(a *store.AuditRow) { a.Actor = "Eve" }, "action": func(a *store.AuditRow) { a.Action = "x" }, "subject": func(a *store.AuditRow) { a.SubjectID[0]++ },
		"detail": func(a *store.AuditRow) { a.Detail = "x" }, "cause": func(a *store.AuditRow) { a.Cause = "x" }, "no cause": func(a *store.AuditRow) { a.Cause = "" },
		"evidence": func(a *store.AuditRow) { a.Evidence = []byte("x") }, "no evidence": func(a *store.AuditRow) { a.Evidence = nil },
		"neither": func(a *store.AuditRow) { a.Cause, a.Evidence = "", nil }, "moved": func(a *store.AuditRow) { a.Cause, a.Evidence = "ce", nil },
	} {
		a := row
		change(&a)
		h := store.SealOf(store.Seal{}, &a).Hash
		if other, found := seen[h]; found {
			t.Errorf("a changed %s has the seal of a changed %s", name, other)
		}
		seen[h] = name
	}
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
