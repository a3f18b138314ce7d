package books_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"till"
	"till/books"
	"till/provider"
	"till/store"
	"till/store/storetest"
)

// caseOf returns the open case of a kind.
func caseOf(t *testing.T, s *store.Store, kind string) *store.Case {
	t.Helper()
	cases, err := books.Cases(t.Context(), s, store.CaseFilter{Kind: kind})
	if err != nil || len(cases) != 1 {
		t.Fatalf("%d open cases of kind %s, %v", len(cases), kind, err)
	}
	return cases[0]
}

func TestCasesArePaged(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c := storetest.NewCollector(t, s)
		var clients []*till.Client
		for range 3 {
			client := storetest.NewClient(t, s, till.Test)
			clients = append(clients, client)
			for range 2 {
				p := storetest.NewPayment(t, c, client, storetest.Body{})
				storetest.Apply(t, c, s, p, storetest.TimedOut)
				storetest.Apply(t, c, s, p, storetest.Succeeded)
			}
		}
		for _, f := range []store.CaseFilter{{}, {All: true}, {Kind: "late_money"}} {
			f.Limit = 4
			seen := map[till.ID]bool{}
			for page := 0; ; page++ {
				got, err := books.Cases(t.Context(), s, f)
				if err != nil {
					t.Fatal(err)
				}
				for i, c := range got {
					if seen[c.ID] || i > 0 && (c.OpenedAt < got[i-1].OpenedAt) != f.All {
						t.Errorf("%+v: case %d of page %d is out of place", f, i, page)
					}
					seen[c.ID] = true
				}
				if len(got) < f.Limit {
					break
				}
				f.After = got[len(got)-1]
			}
			if len(seen) != 6 {
				t.Errorf("%+v: %d cases, want 6", f, len(seen))
			}
		}
		for _, w := range []struct {
			f store.CaseFilter
			n int
		}{{store.CaseFilter{Client: clients[1].ID}, 2}, {store.CaseFilter{Kind: "overdue"}, 0}, {store.CaseFilter{Closed: true}, 0}} {
			if got, err := books.Cases(t.Context(), s, w.f); err != nil || len(got) != w.n {
				t.Errorf("%+v: %d cases, %v; want %d", w.f, len(got), err, w.n)
			}
		}
	})
}

func TestACaseIsShownWithItsEvidence(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		fillBooks(t, s, c, client)
		f, err := books.CaseDetailOf(t.Context(), s, caseOf(t, s, "late_money").ID)
		if err != nil {
			t.Fatal(err)
		}
		if f.Payment == nil || f.Payment.Reference != "late" || len(f.Attempts) < 2 || len(f.Events) != 3 || len(f.Transactions) != 1 || len(f.Audit) != 1 || f.RemainingCause != "" {
			t.Errorf("payment %v, %d attempts, %d events, %d transactions, %d audit rows, stands %q", f.Payment, len(f.Attempts), len(f.Events), len(f.Transactions), len(f.Audit), f.RemainingCause)
		}
		f, err = books.CaseDetailOf(t.Context(), s, caseOf(t, s, "mismatch").ID)
		if err != nil || !strings.Contains(f.RemainingCause, "is still processing") {
			t.Errorf("%v, stands %q", err, f.RemainingCause)
		}
		if _, err := books.CaseDetailOf(t.Context(), s, till.NewID(1)); till.ErrorCode(err) != till.CodeNotFound {
			t.Errorf("a case that does not exist: %v", err)
		}
	})
}

func TestACaseIsClosedInAPersonsName(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
		p := storetest.NewPayment(t, c, client, storetest.Body{})
		wrong := provider.Result{Outcome: provider.Success, Receipt: "R", Amount: till.Money{Minor: 7000, Currency: "XAF"}}
		storetest.Apply(t, c, s, p, wrong)
		id := caseOf(t, s, "mismatch").ID
		digest := bytes.Repeat([]byte{7}, 32)
		ctx := store.WithCause(t.Context(), "a test")
		resolve := func(ctx context.Context) (*books.CaseDetail, error) {
			return books.ResolveCase(ctx, s, id, books.CaseAction{By: "Awa", Reason: "seen", Evidence: digest, Named: "letter.pdf"})
		}
		f, err := resolve(ctx)
		if err != nil || !strings.Contains(f.RemainingCause, "is still processing") || f.ClosedBy != "Awa" {
			t.Errorf("%+v, %v; want it closed, and to be told that the cause stands", f, err)
		}
		rows := auditRows(t, s, client.ID, books.AuditFilter{Subject: p.ID})
		a := rows[len(rows)-1]
		if a.Actor != "Awa" || a.Action != "case.resolve" || a.Cause != "a test" || !bytes.Equal(a.Evidence, digest) || !strings.Contains(a.Detail, "mismatch: seen; evidence letter.pdf") {
			t.Errorf("the audit row is %+v", a)
		}
		if _, err := resolve(ctx); till.ErrorCode(err) != till.CodeValidationFailed {
			t.Errorf("closed twice: %v", err)
		}
		closed, err := books.Cases(t.Context(), s, store.CaseFilter{Closed: true})
		if err != nil || len(closed) != 1 || closed[0].Reason != "seen" || !bytes.Equal(closed[0].Evidence, digest) {
			t.Fatalf("closed cases: %+v, %v", closed, err)
		}

		// The operator says the same again: the case is open again, once, and the
		// money is put aside once.
		storetest.Apply(t, c, s, p, wrong)
		storetest.Apply(t, c, s, p, wrong)
		again := caseOf(t, s, "mismatch")
		if again.ID != id || again.Reason != "" || again.Evidence != nil || again.OpenedAt <= closed[0].OpenedAt {
			t.Errorf("opened again: %+v", again)
		}
	})
}

// The case of a payout is shown with the payout, and what it holds.
func TestACaseOfAPayout(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		c, m, client := storetest.NewCollector(t, s), storetest.NewDisburser(t, s), storetest.NewClient(t, s, till.Test)
		storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{Value: "20000"}), storetest.Succeeded)
		late := storetest.NewPayout(t, m, client, storetest.Body{Reference: "late"}, 50)
		storetest.ApplyPayout(t, m, s, late, provider.Result{Outcome: provider.Failed, Reason: till.RecipientNotFound})
		storetest.ApplyPayout(t, m, s, late, storetest.Succeeded)
		other := storetest.NewPayout(t, m, client, storetest.Body{Reference: "other"}, 50)
		storetest.ApplyPayout(t, m, s, other, provider.Result{Outcome: provider.Success, Receipt: "R", Amount: till.Money{Minor: 7000, Currency: "XAF"}})

		f, err := books.CaseDetailOf(t.Context(), s, caseOf(t, s, "late_money").ID)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, e := range f.Events {
			kinds = append(kinds, string(e.Kind))
		}
		if got := strings.Join(kinds, " "); got != "payout.pending payout.failed payout.late_success" {
			t.Errorf("events %s", got)
		}
		if f.Payout == nil || f.Payment != nil || f.Payout.Reference != "late" || len(f.Attempts) != 2 || len(f.Transactions) != 1 || len(f.Audit) != 3 || f.RemainingCause != "" {
			t.Errorf("payout %v, payment %v, %d attempts, %d transactions, %d audit rows, stands %q", f.Payout, f.Payment, len(f.Attempts), len(f.Transactions), len(f.Audit), f.RemainingCause)
		}
		open := caseOf(t, s, "mismatch")
		if f, err = books.CaseDetailOf(t.Context(), s, open.ID); err != nil || !open.Payout || !strings.Contains(f.RemainingCause, "is still processing and holds 5050 XAF") {
			t.Errorf("%v, of a payout %v, stands %q", err, open.Payout, f.RemainingCause)
		}
		if f, err = books.ResolveCase(t.Context(), s, open.ID, books.CaseAction{By: "Awa", Reason: "seen"}); err != nil || !strings.Contains(f.RemainingCause, "payout "+other.ID.String()) {
			t.Errorf("closed: %v, stands %q", err, f.RemainingCause)
		}
	})
}

// A case is the last thing that keeps an open payment in sight: it stays.
func TestTheLastSightOfAPaymentIsNotClosed(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/till.db"
	s := storetest.Open(t, store.Config{Path: path})
	c, client := storetest.NewCollector(t, s), storetest.NewClient(t, s, till.Test)
	fillBooks(t, s, c, client)
	storetest.Exec(t, storetest.OpenRaw(t, path), `DELETE FROM steps`)
	_, err := books.ResolveCase(t.Context(), s, caseOf(t, s, "mismatch").ID, books.CaseAction{By: "Awa", Reason: "seen"})
	if till.ErrorCode(err) != till.CodeValidationFailed {
		t.Errorf("got %v, want it refused", err)
	}
	out := storetest.NewPayout(t, storetest.NewDisburser(t, s), client, storetest.Body{Value: "1000"}, 0)
	err = s.Update(t.Context(), func(tx *store.Tx) error {
		return tx.OpenCases(t.Context(), []*store.Case{{ClientID: client.ID, ID: till.NewID(s.Now()), SubjectID: out.ID, Kind: "overdue", Detail: "x", OpenedAt: s.Now()}})
	})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, storetest.OpenRaw(t, path), `DELETE FROM steps`)
	_, err = books.ResolveCase(t.Context(), s, caseOf(t, s, "overdue").ID, books.CaseAction{By: "Awa", Reason: "seen"})
	if till.ErrorCode(err) != till.CodeValidationFailed || !strings.Contains(err.Error(), "till payout resolve") {
		t.Errorf("the case of a payout: got %v, want it refused", err)
	}
	if _, err := books.ResolveCase(t.Context(), s, till.NewID(1), books.CaseAction{By: "Awa", Reason: "seen"}); till.ErrorCode(err) != till.CodeNotFound {
		t.Errorf("a case that does not exist: %v", err)
	}
}
