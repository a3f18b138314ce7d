package store_test

import (
	"reflect"
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

// Each code is stored and read with its values, beside its sentence: with a case, with its
// closing, with a call that is repeated, and with the answer to a send.
func TestReasonsAreStoredBesideTheirSentences(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client := storetest.NewClient(t, s, till.Test)
		for i, code := range till.ReasonCodes() {
			var values []string
			for _, place := range code.Places() {
				if place != "then" {
					values = append(values, "the "+place)
				}
			}
			why := till.Because(code, values...)
			if len(values) < len(code.Places()) {
				why = why.Then(till.ThenNotPosted)
			}
			ref := store.Ref{Client: client.ID, ID: till.NewID(s.Now())}
			attempt := func(n int, kind string) *store.Attempt {
				return &store.Attempt{ClientID: ref.Client, SubjectID: ref.ID, N: n, Kind: kind, Connection: "momo", Reference: till.NewID(till.Time(i + 1)),
					Outcome: "error", Why: why, Detail: why.String(), StartedAt: till.Time(n), EndedAt: 9}
			}
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				if err := tx.OpenCases(t.Context(), []*store.Case{{ClientID: ref.Client, ID: ref.ID, SubjectID: ref.ID, Kind: "mismatch", Why: why, OpenedAt: 1}}); err != nil {
					return err
				}
				if err := tx.InsertSends(t.Context(), []*store.Attempt{attempt(1, store.AttemptSubmit)}); err != nil {
					return err
				}
				return tx.RecordAttempts(t.Context(), []*store.Attempt{attempt(2, store.AttemptCheck)}, map[store.Ref]*store.Attempt{ref: {N: 1}})
			})
			if err != nil {
				t.Fatal(err)
			}
			err = s.Update(t.Context(), func(tx *store.Tx) error {
				_, err := tx.LockSubjects(t.Context(), till.SubjectPayment, []store.Ref{ref}, store.Cached{}, []*store.Attempt{attempt(1, store.AttemptSubmit)})
				if err != nil {
					return err
				}
				return tx.CloseCases(t.Context(), []store.CaseClosure{{Ref: ref, By: "engine", At: 2, Why: why}})
			})
			if err != nil {
				t.Fatal(err)
			}
			c, attempts := storedReasons(t, s, ref)
			if !reflect.DeepEqual(c.Why, why) || !reflect.DeepEqual(c.ClosedWhy, why) || c.Detail != why.String() || c.Reason != why.String() {
				t.Errorf("%s: the case is %+v, want %q", code, c, why.Values)
			}
			for _, a := range attempts {
				if !reflect.DeepEqual(a.Why, why) || a.Detail != why.String() {
					t.Errorf("%s: the %s is %q %q, want %q", code, a.Kind, a.Why, a.Detail, why)
				}
			}
			if len(attempts) != 2 {
				t.Errorf("%d attempts", len(attempts))
			}
		}
	})
}

// A release from before the codes runs beside this one: it writes a sentence, and leaves the
// code of the sentence before. The code is not read then.
func TestTheCodeOfAnotherSentenceIsNotRead(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Config(t)
			s := storetest.Open(t, config)
			client := storetest.NewClient(t, s, till.Test)
			ref := store.Ref{Client: client.ID, ID: till.NewID(s.Now())}
			open := []*store.Case{{ClientID: ref.Client, ID: ref.ID, SubjectID: ref.ID, Kind: "overdue", Why: till.Because(till.ReasonOverdue), OpenedAt: 1}}
			do := func(f func(tx *store.Tx) error) {
				t.Helper()
				if err := s.Update(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
			do(func(tx *store.Tx) error { return tx.OpenCases(t.Context(), open) })
			do(func(tx *store.Tx) error {
				return tx.CloseCases(t.Context(), []store.CaseClosure{{Ref: ref, By: "engine", At: 2, Kinds: []string{"overdue"}, Why: till.Because(till.ReasonOperatorHasIt)}})
			})
			storetest.Raw(t, config.Path, `UPDATE cases SET detail = 'an older sentence', reason = 'seen'`)
			c, _ := storedReasons(t, s, ref)
			if !c.Why.IsZero() || !c.ClosedWhy.IsZero() || c.Detail != "an older sentence" || c.Reason != "seen" {
				t.Errorf("the case is %+v", c)
			}

			// This release opens it again, for the first time or as what was seen before, and nothing
			// is left of why it was closed. A person closes it in words of their own.
			for _, reopen := range []bool{false, true} {
				open[0].Reopen = reopen
				do(func(tx *store.Tx) error { return tx.OpenCases(t.Context(), open) })
				if c, _ = storedReasons(t, s, ref); c.Why.Code != till.ReasonOverdue || !c.ClosedWhy.IsZero() || c.Reason != "" || !c.ClosedAt.IsZero() {
					t.Errorf("the case is %+v", c)
				}
				do(func(tx *store.Tx) error {
					return tx.CloseCases(t.Context(), []store.CaseClosure{{Ref: ref, By: "Awa", At: 3, Reason: "seen with the operator"}})
				})
				if c, _ = storedReasons(t, s, ref); !c.ClosedWhy.IsZero() || c.Reason != "seen with the operator" {
					t.Errorf("the case is %+v", c)
				}
			}
		})
	}
}

func storedReasons(t *testing.T, s *store.Store, ref store.Ref) (c *store.Case, attempts []*store.Attempt) {
	t.Helper()
	err := s.View(t.Context(), func(tx *store.Tx) (err error) {
		if attempts, err = tx.Attempts(t.Context(), ref); err != nil {
			return err
		}
		c, err = tx.Case(t.Context(), ref.ID)
		return err
	})
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	return c, attempts
}
