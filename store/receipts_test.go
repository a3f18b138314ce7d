package store_test

import (
	"errors"
	"testing"

	"till"
	"till/engine"
	"till/store"
	"till/store/matching"
	"till/store/storetest"
)

// unreceipted takes a database back to before the record of receipts, and
// gives payments receipts as that time would have: one that two clients have.
func unreceipted(t *testing.T, path string) {
	t.Helper()
	for _, query := range []string{
		`DROP TABLE operator_receipts`,
		`ALTER TABLE payments DROP COLUMN updated_event`,
		`DELETE FROM schema_migrations WHERE version = '0017_receipts'`,
	} {
		storetest.Raw(t, path, query)
	}
	for _, query := range []string{
		`UPDATE payments SET provider_reference = 'SAME' WHERE reference = 'same'`,
		`UPDATE payments SET provider_reference = 'OWN' WHERE reference = 'own'`,
	} {
		storetest.Raw(t, path, query)
	}
}

// TestTheRecordOfReceiptsIsFilledFromWhatIsThere: of two clients' payments that
// were credited under one receipt, the first keeps it, and there is a case for
// the other.
func TestTheRecordOfReceiptsIsFilledFromWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			config := e.Config(t)
			s := storetest.Open(t, config)
			c := storetest.NewCollector(t, s)
			pay := func(client *till.Client, reference string) *till.Payment {
				p := storetest.NewPayment(t, c, client, storetest.Body{Reference: reference})
				storetest.Apply(t, c, s, p, storetest.Succeeded)
				return p
			}
			one, two := storetest.NewClient(t, s, till.Live), storetest.NewClient(t, s, till.Live)
			first, own, second := pay(two, "same"), pay(two, "own"), pay(one, "same")
			unreceipted(t, config.Path)
			if applied, err := s.Migrate(t.Context()); err != nil || len(applied) != 1 || applied[0] != "0017_receipts" {
				t.Fatalf("applied %v, %v", applied, err)
			}
			owners := func() map[store.Receipt]store.Ref {
				var out map[store.Receipt]store.Ref
				err := s.View(t.Context(), func(tx *store.Tx) (err error) {
					out, err = tx.ReceiptOwners(t.Context(), till.SubjectPayment, []store.Receipt{{Issuer: storetest.Connection, Text: "SAME"}, {Issuer: storetest.Connection, Text: "OWN"}})
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			of := func(p *till.Payment) store.Ref { return store.Ref{Client: p.ClientID, ID: p.ID} }
			check := func(when string) {
				t.Helper()
				got := owners()
				if got[store.Receipt{Issuer: storetest.Connection, Text: "SAME"}] != of(first) || got[store.Receipt{Issuer: storetest.Connection, Text: "OWN"}] != of(own) {
					t.Errorf("%s: the receipts belong to %v", when, got)
				}
			}
			check("migrated")
			err := s.View(t.Context(), func(tx *store.Tx) error {
				cases, err := matching.CasesOf(t.Context(), tx, engine.CaseReceiptReused, []store.Ref{of(first), of(own), of(second)})
				if len(cases) != 1 || cases[of(second)] == nil || cases[of(second)].ClosedAt != 0 {
					t.Errorf("the cases are %v", cases)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			// An instance of the version before has credited under a receipt since.
			storetest.Raw(t, config.Path, `DELETE FROM operator_receipts WHERE receipt = 'OWN'`)
			if n, err := s.FillReceipts(t.Context()); err != nil || n != 1 {
				t.Errorf("%d were missing, %v", n, err)
			}
			if n, err := s.FillReceipts(t.Context()); err != nil || n != 0 {
				t.Errorf("once more %d were missing, %v", n, err)
			}
			check("filled")
		})
	}
}

// TestAHandleIsHadAlone: where an operator's handle is one request's, a second
// that brings it is refused, over all clients.
func TestAHandleIsHadAlone(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		name := func(client byte) error {
			return s.Update(t.Context(), func(tx *store.Tx) error {
				return tx.NameHandles(t.Context(), []store.Named{
					{Connection: "a", Handle: "ws_2", Ref: store.Ref{Client: till.ID{client}, ID: till.ID{client}}, Kind: till.SubjectPayment, Alone: true},
					{Connection: "a", Handle: "ws_1", Ref: store.Ref{Client: till.ID{client}, ID: till.ID{client}}, Kind: till.SubjectPayment, Alone: true}})
			})
		}
		if err := name(1); err != nil {
			t.Fatal(err)
		}
		if err := name(2); !errors.Is(err, store.ErrConstraint) {
			t.Errorf("another's handle: %v", err)
		}
	})
}

// TestACallbackOfAnotherHandleIsNotKept: where a step knows by which handle it is
// known, a callback that names another takes no place of one that names it.
func TestACallbackOfAnotherHandleIsNotKept(t *testing.T) {
	t.Parallel()
	storetest.RunAt(t, &noon, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		ref := newSteps(t, s, clock, 1)[0]
		wake := func(mail, handle, want string) {
			t.Helper()
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				if _, err := tx.WakeStep(t.Context(), ref, []byte(mail), handle, clock.Now()); err != nil {
					return err
				}
				st, err := tx.Step(t.Context(), ref)
				if err == nil && string(st.CallbackBody) != want {
					t.Errorf("after %q for %q the mail is %q, want %q", mail, handle, st.CallbackBody, want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		wake("any", "ws_1", "any")
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			st, err := tx.Step(t.Context(), ref)
			if err != nil {
				return err
			}
			st.Handle = "ws_1"
			return tx.SaveSteps(t.Context(), []*store.Step{st})
		})
		if err != nil {
			t.Fatal(err)
		}
		wake("other", "ws_2", "any")
		wake("own", "ws_1", "own")
		wake("nameless", "", "nameless")
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.ForgetCallbackBodies(t.Context(), []store.Ref{ref}) }); err != nil {
			t.Fatal(err)
		}
		wake("", "", "")
	})
}
