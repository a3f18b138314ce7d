package store_test

import (
	"strings"
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

// An event about something that is no payment stands in the log like any
// other, and neither hides its neighbours nor borrows a payment.
func TestEventsAboutOtherThings(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e.Config(t))
			client, other := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test)
			c := storetest.NewCollector(t, s)
			p := storetest.NewPayment(t, c, client, storetest.Body{})
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				heads, err := tx.LockHeads(t.Context(), []till.ID{client.ID})
				if err != nil {
					return err
				}
				h := heads[client.ID]
				at := h.NextTime()
				if err := tx.InsertEvents(t.Context(), []*till.Event{{
					ClientID: client.ID, Sequence: h.NextEvent(), Kind: "webhook_endpoint.disabled", SubjectID: till.NewID(at), CreatedAt: at,
				}}); err != nil {
					return err
				}
				return tx.SaveHeads(t.Context(), heads)
			})
			if err != nil {
				t.Fatal(err)
			}
			storetest.Apply(t, c, s, p, storetest.Succeeded)

			err = s.View(t.Context(), func(tx *store.Tx) error {
				rows, err := tx.EventBodies(t.Context(), client.ID, 0, 10)
				if err != nil {
					return err
				}
				var kinds []string
				for i, r := range rows {
					kinds = append(kinds, string(r.Kind))
					if about := r.Kind.Subject() == "payment"; about != (r.Payment != nil) || r.Sequence != int64(i+1) {
						t.Errorf("event %d, %s, has the payment %v", r.Sequence, r.Kind, r.Payment)
					}
				}
				if got := strings.Join(kinds, " "); got != "payment.pending webhook_endpoint.disabled payment.success" {
					t.Errorf("the log is %s", got)
				}
				if rows, err := tx.EventBodies(t.Context(), client.ID, 1, 1); err != nil || len(rows) != 1 || rows[0].Sequence != 2 {
					t.Errorf("one event beyond the first: %v, %v", rows, err)
				}
				if rows, err := tx.PaymentEvents(t.Context(), store.Ref{Client: client.ID, ID: p.ID}); err != nil || len(rows) != 2 || rows[1].Sequence != 3 {
					t.Errorf("the payment's own events: %v, %v", rows, err)
				}
				if _, err := tx.PaymentEvents(t.Context(), store.Ref{Client: other.ID, ID: p.ID}); till.ErrorCode(err) != till.CodePaymentNotFound {
					t.Errorf("another client's payment: %v", err)
				}
				last, _, err := tx.LogEnd(t.Context(), client.ID)
				if err == nil && last != 3 {
					t.Errorf("the log ends at %d", last)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
