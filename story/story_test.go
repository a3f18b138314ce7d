package story_test

import (
	"slices"
	"testing"

	"till"
	"till/books"
	"till/provider"
	"till/store"
	"till/store/auditlog"
	"till/store/storetest"
	"till/story"
)

// A story has the engine's rows of the audit log about its subject, wherever they are in the
// log: each line of the wallet has its row, and a decision without a line is a moment.
func TestAStoryHasWhatTheEngineDecided(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Live)
		c, m := storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
		stories := map[till.ID]till.SubjectKind{}
		pay := func(receipt string, amount int64) *till.Payment {
			p := storetest.NewPayment(t, c, client, storetest.Body{})
			storetest.Apply(t, c, s, p, provider.Result{Outcome: provider.Success, Receipt: receipt, Amount: till.Money{Minor: amount, Currency: "XAF"}})
			stories[p.ID] = till.SubjectPayment
			return p
		}
		paid := pay("R1", 5000)
		aside := pay("R2", 9)
		late := storetest.NewPayment(t, c, client, storetest.Body{})
		storetest.Apply(t, c, s, late, storetest.TimedOut)
		stories[late.ID] = till.SubjectPayment
		for _, receipt := range []string{"R3", "R4", "R5"} {
			pay(receipt, 5000)
		}
		out := storetest.NewPayout(t, m, client, storetest.Body{Value: "500"}, 7)
		storetest.ApplyPayout(t, m, s, out, provider.Result{Outcome: provider.Success, Receipt: "P1", Amount: out.Amount})
		failed := storetest.NewPayout(t, m, client, storetest.Body{Value: "300"}, 7)
		storetest.ApplyPayout(t, m, s, failed, provider.Result{Outcome: provider.Failed, Reason: till.ProviderRejected})
		stories[out.ID], stories[failed.ID] = till.SubjectPayout, till.SubjectPayout
		storetest.Apply(t, c, s, late, provider.Result{Outcome: provider.Success, Receipt: "R6", Amount: late.Amount})
		if _, err := books.Adjust(t.Context(), s, newAdjustment(client, s, -24_493)); err != nil { // all there is
			t.Fatal(err)
		}
		storetest.Apply(t, c, s, paid, provider.Result{Outcome: provider.Reversed, Receipt: "R1", Amount: paid.Amount})

		decided := map[till.ID][]string{}
		for id, kind := range stories {
			ref := store.Ref{Client: client.ID, ID: id}
			var history *story.Story
			if err := s.View(t.Context(), func(tx *store.Tx) (err error) {
				history, err = story.ReadStory(t.Context(), tx, kind, ref)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			var got, want []int64
			for _, a := range history.Decided {
				got = append(got, a.Sequence)
			}
			if err := books.EachAudit(t.Context(), s, client.ID, books.AuditFilter{Subject: id}, func(a *store.AuditRow) error {
				if a.Actor == "engine" {
					want = append(want, a.Sequence)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s %s: rows %v, and the log has %v", kind, history.Subject.Status, got, want)
			}
			for _, moment := range history.Timeline() {
				switch {
				case moment.Line != nil && (moment.Audit == nil || moment.Audit.Action != moment.Line.Type):
					t.Errorf("%s: the line %s has the row %+v", id, moment.Line.Type, moment.Audit)
				case moment.Kind == story.MomentDecided, moment.Event != nil && moment.Audit != nil:
					decided[id] = append(decided[id], moment.Audit.Action+": "+moment.Audit.Detail)
				}
			}
		}
		for id, want := range map[till.ID]string{
			aside.ID:  "suspense: 9 XAF put aside: the operator reports another amount: 9 XAF instead of 5000 XAF",
			paid.ID:   "collection_reversal: 5000 XAF owed",
			failed.ID: "payout.release: 307 XAF released",
		} {
			if got := decided[id]; len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if got := decided[late.ID]; got != nil {
			t.Errorf("the late payment has a line of the wallet, and these: %q", got)
		}
	})
}

// Each row is found from its own microsecond on, the first and the last of the log included,
// and not from the next one on.
func TestDecisionsAreFoundAtTheirMoments(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Live)
		c := storetest.NewCollector(t, s)
		var all []store.Ref
		for range 9 {
			p := storetest.NewPayment(t, c, client, storetest.Body{})
			storetest.Apply(t, c, s, p, provider.Result{Outcome: provider.Success, Amount: p.Amount})
			all = append(all, store.Ref{Client: client.ID, ID: p.ID})
		}
		var rows []*store.AuditRow
		err := s.View(t.Context(), func(tx *store.Tx) (err error) {
			rows, err = auditlog.Read(t.Context(), tx, client.ID, 0, 1000)
			for _, ref := range all {
				i := slices.IndexFunc(rows, func(a *store.AuditRow) bool { return a.SubjectID == ref.ID && a.Actor == "engine" })
				for before, want := range map[till.Time]int{0: 1, 1: 0} {
					got, err := auditlog.DecisionsAt(t.Context(), tx, ref, []till.Time{rows[i].At + before}, 0)
					if err != nil || len(got) != want {
						t.Errorf("row %d, %d µs after it: %d rows, %v", rows[i].Sequence, before, len(got), err)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var none []*store.AuditRow
		err = s.View(t.Context(), func(tx *store.Tx) (err error) {
			none, err = auditlog.DecisionsAt(t.Context(), tx, store.Ref{Client: till.NewID(1), ID: all[0].ID}, []till.Time{1, rows[0].At}, 1<<40)
			return err
		})
		if err != nil || len(none) > 0 {
			t.Errorf("another client: %v, %v", none, err)
		}
	})
}

func newAdjustment(client *till.Client, s *store.Store, minor int64) books.Adjustment {
	return books.Adjustment{Client: client.ID, ID: till.NewID(s.Now()), Amount: till.Money{Minor: minor, Currency: "XAF"}, Reason: "a bank slip of Monday", By: "Anne Ndala"}
}
