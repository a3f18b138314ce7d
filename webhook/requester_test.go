package webhook

import (
	"slices"
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
)

// awa is an asker that may read everything.
var awa = Requester{Actor: "Awa", Scopes: till.Scopes}

func TestAllEventsMeansWhatTheKeyMayRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scopes []till.Scope
		want   []string // subjects; nil: everything, also what is to come
	}{
		{till.DefaultScopes, nil},
		{[]till.Scope{till.WebhooksManage}, []string{"webhook_endpoint"}},
		{[]till.Scope{till.WebhooksManage, till.PaymentsRead, till.PayoutsWrite}, []string{"payment", "refund", "checkout", "webhook_endpoint"}},
		{[]till.Scope{till.WebhooksManage, till.PayoutsRead}, []string{"payout", "webhook_endpoint"}},
	} {
		by := Requester{Scopes: c.scopes}
		got := by.allKinds()
		var want []till.EventKind
		for _, k := range till.EventKinds {
			if slices.Contains(c.want, k.Subject()) {
				want = append(want, k)
			}
		}
		if !slices.Equal(got, want) || (got == nil) != (c.want == nil) {
			t.Errorf("%v: %v, want %v", c.scopes, got, want)
		}
	}
}

// What was asked for before the kinds were changed still goes out, so a key
// that may not read it must not turn the endpoint to another address.
func TestWhatWaitsForAnEndpointIsNotTurnedElsewhere(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, client, ctx := acting(t, s), storetest.NewClient(t, s, till.Test), t.Context()
		weak := Requester{Actor: "weak", Scopes: []till.Scope{till.WebhooksManage}}
		url, other, yes := "https://93.184.216.34/hooks", "https://93.184.216.34/other", true
		made, err := a.Create(ctx, client, &Request{URL: &url, Events: &[]string{"*"}}, weak)
		if err != nil {
			t.Fatal(err)
		}
		e := made.Endpoint
		if !slices.Equal(e.Kinds(), []string{"webhook_endpoint.disabled"}) {
			t.Fatalf("an endpoint of a weak key: %+v", e)
		}
		if _, err := a.Patch(ctx, client, e.ID, &Request{URL: &other}, weak); err != nil {
			t.Fatalf("an endpoint without payments: %v", err)
		}
		payment := storetest.NewPayment(t, storetest.NewCollector(t, s), client, storetest.Body{})
		if _, err := a.Redeliver(ctx, client.ID, till.EventID(client.ID, 1, payment.CreatedAt), &e.ID, awa); err != nil {
			t.Fatal(err)
		}
		_, err = a.Patch(ctx, client, e.ID, &Request{URL: &url}, weak)
		expect(t, "another address", string(till.ErrorCode(err)), string(till.CodeInsufficientScope))
		_, err = a.Replay(ctx, client.ID, e.ID, &Replay{Failed: &yes}, weak)
		expect(t, "a replay", string(till.ErrorCode(err)), string(till.CodeInsufficientScope))
		for _, r := range []*Request{{URL: &url}, {Events: &[]string{"*"}}} {
			if _, err := a.Patch(ctx, client, e.ID, r, awa); err != nil {
				t.Errorf("by a key that may read payments: %v", err)
			}
		}
	})
}
