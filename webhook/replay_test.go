package webhook

import (
	"testing"

	"till"
	"till/store"
	"till/store/storetest"
	"till/store/webhooks"
)

// A replay says to how many events it comes, not only that it was accepted.
func TestAReplaySaysWhatItQueued(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, client, ctx := acting(t, s), storetest.NewClient(t, s, till.Test), t.Context()
		collector := storetest.NewCollector(t, s)
		for range 4 { // two events each
			storetest.Apply(t, collector, s, storetest.NewPayment(t, collector, client, storetest.Body{}), storetest.Succeeded)
		}
		url, two, six, yes, no := "https://93.184.216.34/hooks", int64(2), int64(6), true, false
		create := func(kinds ...string) *webhooks.Endpoint {
			t.Helper()
			made, err := a.Create(ctx, client, &Request{URL: &url, Events: &kinds}, awa)
			if err != nil {
				t.Fatal(err)
			}
			return made.Endpoint
		}
		all, some := create("*"), create("payment.success", "payout.success")
		for _, on := range []bool{no, yes} { // out of service while a payment is made
			if _, err := a.Patch(ctx, client, some.ID, &Request{Enabled: &on}, awa); err != nil {
				t.Fatal(err)
			}
			if !on {
				storetest.Apply(t, collector, s, storetest.NewPayment(t, collector, client, storetest.Body{}), storetest.Succeeded)
			}
		}
		for _, c := range []struct {
			name string
			e    *webhooks.Endpoint
			r    Replay
			want Replayed
		}{
			{"all kinds", all, Replay{From: &two, To: &six}, Replayed{From: 2, To: 6, Events: 5}},
			{"to the end", all, Replay{From: &two}, Replayed{From: 2, To: 10, Events: 9}},
			{"some kinds", some, Replay{From: &two, To: &six}, Replayed{From: 2, To: 6, Events: 3}},
			{"what failed", some, Replay{Failed: &yes}, Replayed{Ranges: 1, Events: 1}},
			{"nothing is left of it", some, Replay{Failed: &yes}, Replayed{}},
		} {
			got, err := a.Replay(ctx, client.ID, c.e.ID, &c.r, awa)
			if err != nil || got != c.want {
				t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
			}
		}
	})
}

// Who has an endpoint's secret can sign what the endpoint believes.
func TestASecretIsGivenOnlyToWhoMayReadTheEvents(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a, client, ctx := acting(t, s), storetest.NewClient(t, s, till.Test), t.Context()
		weak := Requester{Actor: "weak", Scopes: []till.Scope{till.WebhooksManage}}
		url := "https://93.184.216.34/hooks"
		of := func(kinds ...string) till.ID {
			t.Helper()
			made, err := a.Create(ctx, client, &Request{URL: &url, Events: &kinds}, awa)
			if err != nil {
				t.Fatal(err)
			}
			return made.Endpoint.ID
		}
		payments, own := of("payment.success"), of("webhook_endpoint.disabled")
		_, secret, err := a.Rotate(ctx, client.ID, payments, 0, nil, weak)
		if expect(t, "of payments", string(till.ErrorCode(err)), string(till.CodeInsufficientScope)); secret != nil {
			t.Error("the secret was given all the same")
		}
		if _, _, err := a.Rotate(ctx, client.ID, own, 0, nil, weak); err != nil {
			t.Errorf("of an endpoint without payments: %v", err)
		}
		if _, _, err := a.Rotate(ctx, client.ID, payments, 0, nil, Requester{Actor: "reader", Scopes: []till.Scope{till.WebhooksManage, till.PaymentsRead}}); err != nil {
			t.Errorf("by a key that may read payments: %v", err)
		}
	})
}
