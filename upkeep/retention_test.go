package upkeep_test

import (
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
	"till/store/webhooks"
	"till/upkeep"
)

// A receiver's answer goes after its time, and nothing else of the delivery does.
func TestOldAnswersAreCleared(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines() {
		t.Run(engine.Name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, engine.Config(t))
			client := storetest.NewClient(t, s, till.Test)
			now := s.Now()
			old, young := now.Add(-upkeep.AnswersKept-1_000_000), now.Add(-upkeep.AnswersKept+60_000_000_000)
			e := &webhooks.Endpoint{Endpoint: till.Endpoint{ID: till.NewID(now), ClientID: client.ID, URL: "https://shop.example.com/h", Enabled: true, CreatedAt: now, UpdatedAt: now}, Secret: []byte("sealed")}
			var rows []*webhooks.Delivery
			const n = 1200 // more than two commits
			for i := range n {
				at := old
				if i%2 == 1 {
					at = young
				}
				rows = append(rows, &webhooks.Delivery{ClientID: client.ID, EndpointID: e.ID, Sequence: int64(i), Kind: webhooks.DeliverTest, ID: till.NewID(at), SubjectID: e.ID, Status: webhooks.DeliveryDelivered,
					Attempts: 1, DueAt: at, CreatedAt: at, UpdatedAt: at, Last: webhooks.DeliveryAttempt{SentAt: at, URL: e.URL, Code: 200, Text: "thank you, Mado"}})
			}
			if err := s.Update(t.Context(), func(tx *store.Tx) error {
				if err := webhooks.InsertEndpoint(t.Context(), tx, e); err != nil {
					return err
				}
				return webhooks.SaveDeliveries(t.Context(), tx, rows)
			}); err != nil {
				t.Fatal(err)
			}
			turn := upkeep.NewRetentionTurn(s)
			for _, want := range []string{`{"answers":600}`, `{"answers":0}`} {
				if got, err := turn.Run(t.Context()); got != want || err != nil {
					t.Errorf("cleared %s, want %s: %v", got, want, err)
				}
			}
			if err := s.View(t.Context(), func(tx *store.Tx) error {
				after, err := webhooks.DeliveriesBetween(t.Context(), tx, e.Ref(), 0, n)
				for _, d := range after {
					cleared := d.Last.SentAt == old
					if (d.Last.Text == "") != cleared || d.Last.Code != 200 || d.Last.URL != e.URL || d.Status != webhooks.DeliveryDelivered {
						t.Errorf("%+v", d)
					}
				}
				if len(after) != n {
					t.Errorf("%d rows are left", len(after))
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
