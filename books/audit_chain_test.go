package books_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"till"
	"till/books"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
)

// addAudit appends n rows to a client's audit log.
func addAudit(t *testing.T, s *store.Store, client till.ID, n int) {
	t.Helper()
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		heads, err := tx.LockHeads(t.Context(), []till.ID{client})
		if err != nil {
			return err
		}
		h := heads[client]
		rows := make([]*store.AuditRow, n)
		for i := range rows {
			rows[i] = &store.AuditRow{ClientID: client, Sequence: h.NextAudit(), At: h.NextTime(), Actor: "Awa", Action: "look", SubjectID: client}
		}
		if err := tx.InsertAudit(t.Context(), rows); err != nil {
			return err
		}
		return tx.SaveHeads(t.Context(), heads)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func seals(t *testing.T, s *store.Store, client till.ID) []auditlog.ChainLink {
	t.Helper()
	var out []auditlog.ChainLink
	err := s.View(t.Context(), func(tx *store.Tx) (err error) {
		out, err = auditlog.ChainLinks(t.Context(), tx, client, 0, 10_000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func covered(seals []auditlog.ChainLink) (out []int64) {
	for _, link := range seals {
		out = append(out, link.Covers)
	}
	return out
}

func TestSealCatchesUpWithTheLog(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, b := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Live)
		addAudit(t, s, a.ID, 1201) // more than one commit of Seal takes
		addAudit(t, s, b.ID, 3)
		for _, want := range []int{1204, 0} {
			n, err := books.ExtendChains(t.Context(), s, storetest.ChainKey)
			if err != nil || n != want {
				t.Fatalf("sealed %d, %v; want %d", n, err, want)
			}
		}
		for client, want := range map[till.ID][]int64{a.ID: {500, 500, 201}, b.ID: {3}} {
			if got := covered(seals(t, s, client)); !slices.Equal(got, want) {
				t.Errorf("the links cover %v rows, want %v", got, want)
			}
		}
		addAudit(t, s, b.ID, 2)
		if n, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil || n != 2 {
			t.Errorf("sealed %d, %v; want the 2 new rows", n, err)
		}
	})
}

func TestTwoWhoSealAtOnceBuildOneChain(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Test)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 5 {
					addAudit(t, s, client.ID, 7)
					if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		links := seals(t, s, client.ID)
		if last := links[len(links)-1]; last.Sequence != 140 {
			t.Errorf("the chain ends at %d, want 140", last.Sequence)
		}
		if r := verify(t, s, books.Options{Slice: 10}); !r.Clean() || r.ChainLinks != 140 {
			t.Errorf("%d rows are sealed, %+v", r.ChainLinks, r.Problems)
		}
	})
}

// Only what was changed is named, and a link that is gone is missed.
func TestWhatIsBrokenBetweenTwoLinksIsNamed(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/till.db"
	s := storetest.Open(t, store.Config{Path: path})
	client := storetest.NewClient(t, s, till.Test)
	for range 5 {
		addAudit(t, s, client.ID, 4)
		if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
			t.Fatal(err)
		}
	}
	raw := storetest.OpenRaw(t, path)
	storetest.Exec(t, raw, `DROP TRIGGER audit_update`)
	storetest.Exec(t, raw, `UPDATE audit SET actor = 'Eve' WHERE sequence = 6`)
	storetest.Exec(t, raw, `DELETE FROM audit_seals WHERE sequence = 16`)
	for _, slice := range []int{1, 3, 100} {
		var got []string
		for _, p := range verify(t, s, books.Options{Slice: slice}).Problems {
			got = append(got, p.Detail)
		}
		want := []string{"an audit row between 5 and 8 is not the one that was sealed", "the audit chain has a gap before 20"}
		if !slices.Equal(got, want) {
			t.Errorf("slice %d: got %q, want %q", slice, got, want)
		}
	}
}

func TestSealStopsAtAGap(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/till.db"
	s := storetest.Open(t, store.Config{Path: path})
	client := storetest.NewClient(t, s, till.Test)
	addAudit(t, s, client.ID, 10)
	raw := storetest.OpenRaw(t, path)
	storetest.Exec(t, raw, `DROP TRIGGER audit_delete`)
	storetest.Exec(t, raw, `DELETE FROM audit WHERE sequence = 5`)
	n, err := books.ExtendChains(t.Context(), s, storetest.ChainKey)
	if err != nil || n != 4 {
		t.Errorf("sealed %d, %v; want the 4 before the gap", n, err)
	}
	if r := verify(t, s, books.Options{}); r.Clean() {
		t.Error("the gap was not reported")
	}
}

func TestRunSealSealsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.Open(t, store.Config{Path: dir + "/till.db"})
		client := storetest.NewClient(t, s, till.Test)
		ctx, cancel := context.WithCancel(t.Context())
		stopped, told := make(chan struct{}), 0
		go func() {
			books.RunChains(ctx, s, storetest.ChainKey, slog.New(slog.DiscardHandler), func(rows []*store.AuditRow) { told += len(rows) })
			close(stopped)
		}()
		for want := 1; want <= 3; want++ {
			addAudit(t, s, client.ID, 1)
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			if n := len(seals(t, s, client.ID)); n != want {
				t.Errorf("the chain has %d links, want %d", n, want)
			}
		}
		cancel()
		<-stopped
		if told != 3 {
			t.Errorf("%d rows were passed on, want each once", told)
		}
	})
}

func TestCasesAreListedLongestOpenFirst(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		fillBooks(t, s, c, client)
		open, err := books.Cases(t.Context(), s, store.CaseFilter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if len(open) != 2 || open[0].Kind != "late_money" || open[1].Kind != "mismatch" || open[0].OpenedAt >= open[1].OpenedAt {
			t.Errorf("got %+v, want the late money, then the mismatch", open)
		}
		ref := store.Ref{Client: client.ID, ID: open[0].SubjectID}
		if err := s.Update(t.Context(), func(tx *store.Tx) error {
			return tx.CloseCases(t.Context(), []store.CaseClosure{{Ref: ref, By: "Awa", At: tx.Now()}})
		}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct {
			all   bool
			limit int
			n     int
		}{{false, 10, 1}, {true, 10, 2}, {true, 1, 1}, {true, 0, 2}} {
			got, err := books.Cases(t.Context(), s, store.CaseFilter{All: want.all, Limit: want.limit})
			if err != nil || len(got) != want.n {
				t.Errorf("all %v, limit %d: %d cases, %v; want %d", want.all, want.limit, len(got), err, want.n)
			}
		}
	})
}
