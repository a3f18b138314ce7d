package books_test

import (
	"path/filepath"
	"testing"

	"till"
	"till/books"
	"till/provider"
	"till/store"
	"till/store/storetest"
	"till/store/webhooks"
)

// newPayoutBooks fills a store with payouts in every state, for two clients.
func newPayoutBooks(t *testing.T, path string) *store.Store {
	t.Helper()
	s := storetest.Open(t, store.Config{Path: path})
	c, m := storetest.NewCollector(t, s), storetest.NewDisburser(t, s)
	failed := provider.Result{Outcome: provider.Failed, Reason: till.RecipientNotFound}
	for range 2 {
		client := storetest.NewClient(t, s, till.Test)
		storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{Value: "40000"}), storetest.Succeeded)
		for _, p := range []struct {
			reference string
			words     []provider.Result
		}{
			{"out pending", nil},
			{"out processing", []provider.Result{storetest.Opened}},
			{"out paid", []provider.Result{storetest.Opened, storetest.Succeeded}},
			{"out failed", []provider.Result{failed}},
			{"out late", []provider.Result{failed, storetest.Succeeded}},
		} {
			made := storetest.NewPayout(t, m, client, storetest.Body{Reference: p.reference}, 50)
			for _, w := range p.words {
				storetest.ApplyPayout(t, m, s, made, w)
			}
		}
		cancelled := storetest.NewPayout(t, m, client, storetest.Body{Reference: "out cancelled"}, 50)
		if _, err := m.Cancel(t.Context(), store.Ref{Client: client.ID, ID: cancelled.ID}, "a test"); err != nil {
			t.Fatal(err)
		}
		// What is left is spent, and a payout that had failed is paid: all of it
		// is owed.
		owed := storetest.NewPayout(t, m, client, storetest.Body{Reference: "out owed"}, 50)
		storetest.ApplyPayout(t, m, s, owed, failed)
		rest := storetest.NewPayout(t, m, client, storetest.Body{Reference: "out rest", Value: "19850"}, 0)
		storetest.ApplyPayout(t, m, s, rest, storetest.Succeeded)
		storetest.ApplyPayout(t, m, s, owed, storetest.Succeeded)
	}
	if _, err := books.ExtendChains(t.Context(), s, storetest.ChainKey); err != nil {
		t.Fatal(err)
	}
	storetest.RollUp(t, s)
	return s
}

// out is a payout of the client that is broken.
func out(reference string) string {
	return `(SELECT id FROM payouts WHERE reference = 'out ` + reference + `' AND client_id = ` + firstClient + `)`
}

func TestVerifyFindsNothingWrongWithPayouts(t *testing.T) {
	t.Parallel()
	s := newPayoutBooks(t, filepath.Join(t.TempDir(), "till.db"))
	for _, slice := range []int{1, 3, 100} {
		r := verify(t, s, books.Options{Slice: slice})
		if !r.Clean() || r.Payouts != 16 {
			t.Errorf("slice %d: %d payouts, %+v", slice, r.Payouts, r.Problems)
		}
	}
}

func TestVerifyFindsBrokenPayouts(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "template.db")
	newPayoutBooks(t, template)
	for _, c := range []struct{ invariant, name, sql string }{
		{"I1", "a payout without its other side", `DELETE FROM postings WHERE payout_id = ` + out("paid")},
		{"I1", "a debt from nowhere", `DELETE FROM postings WHERE account = 'operator' AND payout_id = ` + out("owed")},

		{"I2", "a success without its line", `DELETE FROM transactions WHERE type = 'payout' AND payout_id = ` + out("paid")},
		{"I2", "a success without its fact", `DELETE FROM facts WHERE fact = 'money_out' AND subject_id = ` + out("paid")},
		{"I2", "a late payout without its fact", `DELETE FROM facts WHERE subject_id = ` + out("late")},
		{"I2", "a fact of a payout that failed", `UPDATE facts SET subject_id = ` + out("failed") + ` WHERE fact = 'money_out' AND subject_id = ` + out("paid")},
		{"I2", "a payout of another amount", `UPDATE transactions SET amount = amount + 1 WHERE type = 'payout' AND payout_id = ` + out("paid")},
		{"I2", "a late payout of a success", `UPDATE transactions SET type = 'late_payout' WHERE type = 'payout' AND payout_id = ` + out("paid")},
		{"I2", "a payout for an open one", `UPDATE transactions SET payout_id = ` + out("processing") + ` WHERE payout_id = ` + out("paid")},
		{"I2", "a payout for none", `UPDATE transactions SET payout_id = NULL WHERE type = 'payout' AND payout_id = ` + out("paid")},
		{"I2", "a late payout of which the operator got less", `UPDATE postings SET amount = amount - 1 WHERE account = 'operator' AND payout_id = ` + out("late")},
		{"I2", "a fee that was not taken", `DELETE FROM transactions WHERE type = 'fee' AND payout_id = ` + out("paid")},
		{"I2", "a fee without its fact", `DELETE FROM facts WHERE fact = 'fee' AND subject_id = ` + out("paid")},
		{"I2", "another fee", `UPDATE transactions SET amount = amount + 1 WHERE type = 'fee' AND payout_id = ` + out("paid")},
		{"I2", "a fee of a payout that failed", `UPDATE transactions SET payout_id = ` + out("failed") + ` WHERE type = 'fee' AND payout_id = ` + out("paid")},

		{"I3", "less reserved than open payouts hold", `UPDATE wallets SET reserved = reserved - 1 WHERE currency = 'XAF' AND client_id = ` + firstClient},
		{"I3", "a reserve of nothing", `UPDATE wallets SET reserved = 1, balance = 1 WHERE currency = 'KES' AND client_id = ` + firstClient},
		{"I3", "a debt that was never posted", `UPDATE wallets SET owed = owed + 1 WHERE currency = 'XAF' AND client_id = ` + firstClient},

		{"I4", "a move that does not exist", `UPDATE payouts SET previous_status = 'cancelled' WHERE id = ` + out("paid")},
		{"I4", "a status that does not exist", `UPDATE payouts SET status = 'expired' WHERE id = ` + out("processing")},
		{"I4", "an id of another time", `UPDATE payouts SET created_at = created_at - 1 WHERE id = ` + out("pending")},

		{"I6", "a missing event", `DELETE FROM events WHERE kind = 'payout.success' AND subject_id = ` + out("paid")},
		{"I6", "an event of another kind", `UPDATE events SET kind = 'payment.success' WHERE kind = 'payout.success' AND subject_id = ` + out("paid")},
		{"I6", "an event of another state", `UPDATE events SET status = 'failed' WHERE kind = 'payout.cancelled' AND subject_id = ` + out("cancelled")},
		{"I6", "a final state without its event", `UPDATE payouts SET final_event = NULL WHERE id = ` + out("cancelled")},
		{"I6", "a late success told of another", `UPDATE events SET subject_id = ` + out("owed") + ` WHERE kind = 'payout.late_success' AND subject_id = ` + out("late")},

		{"I9", "a pending payout that nobody sends", `DELETE FROM steps WHERE subject_id = ` + out("pending")},
		{"I9", "a processing payout that nobody asks about", `DELETE FROM steps WHERE subject_id = ` + out("processing")},
		{"I9", "a failed payout that is owed late reads", `DELETE FROM steps WHERE subject_id = ` + out("failed")},
		{"I9", "a step of no payout", `UPDATE steps SET subject_id = x'01' WHERE subject_id = ` + out("pending")},

		{"I10", "a counter of an hour", `UPDATE counters SET n = n + 1 WHERE width = 3 AND noun = 'payout' AND b = 'pending' AND client_id = ` + firstClient},
		{"I10", "a counter of all time", `UPDATE counters SET n = n + 1 WHERE width = 0 AND noun = 'payout' AND b = 'success' AND client_id = ` + firstClient},

		{"I14", "a payout that nobody decided", `DELETE FROM audit_seals WHERE client_id = ` + firstClient + `;
			UPDATE audit SET action = 'fee' WHERE action = 'payout' AND subject_id = ` + out("paid")},
		{"I14", "a debt that nobody decided", `DELETE FROM audit_seals WHERE client_id = ` + firstClient + `;
			UPDATE audit SET action = 'fee' WHERE action = 'late_payout' AND subject_id = ` + out("owed")},
	} {
		t.Run(c.invariant+" "+c.name, func(t *testing.T) {
			t.Parallel()
			s, client := broken(t, template, c.sql)
			r := verify(t, s, books.Options{Slice: 4})
			found := false
			for _, p := range r.Problems {
				found = found || p.Invariant == c.invariant
				house := p.Invariant == "I10" && p.Client == till.House     // it adds up what clients have
				if p.Client != client && !house && p.Invariant != "pages" { // pages are no client's
					t.Errorf("a fault was reported at a client that has none: %+v", p)
				}
			}
			if !found {
				t.Errorf("got %+v, want %s", r.Problems, c.invariant)
			}
		})
	}
}

// A state of a payout that a newer one has overtaken is no event forgotten;
// the newest one would be.
func TestVerifyKnowsWhatSupersedesAPayoutsState(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		c, m, client := storetest.NewCollector(t, s), storetest.NewDisburser(t, s), storetest.NewClient(t, s, till.Test)
		storetest.Apply(t, c, s, storetest.NewPayment(t, c, client, storetest.Body{Value: "9000"}), storetest.Succeeded)
		p := storetest.NewPayout(t, m, client, storetest.Body{}, 0)
		err := s.Update(ctx, func(tx *store.Tx) error {
			row, err := tx.Payout(ctx, store.Ref{Client: client.ID, ID: p.ID})
			if err != nil {
				return err
			}
			at := tx.Now()
			e := &webhooks.Endpoint{Endpoint: till.Endpoint{ClientID: client.ID, ID: till.NewID(at), URL: "https://on.example/", Enabled: true, CreatedAt: at, UpdatedAt: at},
				Secret: []byte("sealed"), Cursor: row.PendingEvent}
			if err := webhooks.InsertEndpoint(ctx, tx, e); err != nil {
				return err
			}
			return webhooks.SaveDeliveries(ctx, tx, []*webhooks.Delivery{{ClientID: client.ID, EndpointID: e.ID, Sequence: row.PendingEvent, Kind: webhooks.DeliverEvent,
				ID: till.NewID(at), SubjectID: p.ID, Status: webhooks.DeliverySuperseded, Attempts: 1, CreatedAt: at, UpdatedAt: at}})
		})
		if err != nil {
			t.Fatal(err)
		}
		if r := verify(t, s, books.Options{}); len(r.Problems) != 1 || r.Problems[0].Invariant != "I7" {
			t.Errorf("its newest state is superseded: %+v", r.Problems)
		}
		storetest.ApplyPayout(t, m, s, p, storetest.Succeeded)
		if r := verify(t, s, books.Options{}); !r.Clean() {
			t.Errorf("an older state is superseded: %+v", r.Problems)
		}
	})
}
