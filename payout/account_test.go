package payout_test

import (
	"context"
	"testing"
	"time"

	"till"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
)

// operatorCases returns the details of the open cases of connections.
func (w *world) operatorCases(kind string) (details []string) {
	w.t.Helper()
	w.view(func(ctx context.Context, tx *store.Tx) error {
		cases, err := tx.OperatorCases(ctx, false)
		for _, c := range cases {
			if c.Connection != "sandbox payouts" || c.Kind != kind {
				w.t.Errorf("a case of %q, %q", c.Connection, c.Kind)
			}
			details = append(details, c.Detail)
		}
		return err
	})
	return details
}

// An operator that says that something is wrong with our own account fails the
// payout, which is nobody else's fault, and has a person check the connection,
// once. What was sent before proves nothing; the next that succeeds ends the case.
func TestAFaultOfOurOwnAccountFailsThePayoutAndIsTold(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute}, func(t *testing.T, w *world) {
		const fault = "the float is empty"
		w.deaf = true
		open := func(context.Context, provider.Query, int) (provider.Result, error) {
			return provider.Result{Outcome: provider.Open}, nil
		}
		w.way.set(nil, open)
		before := w.create("4567").ID
		time.Sleep(time.Second)
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{Outcome: provider.Rejected, Reason: till.ProviderUnavailable, Code: "1", Retryable: true, OurFault: fault}, nil
		}, open)
		for range 3 {
			id := w.create("4567").ID
			time.Sleep(time.Second)
			if p := w.payout(id); p.Status != till.PayoutFailed || p.FailureReason != till.ProviderUnavailable {
				t.Fatalf("it is %s %s, want failed provider_unavailable", p.Status, p.FailureReason)
			}
		}
		w.wantWallet(t, 0, 1000, 0)
		if got := w.operatorCases(store.CaseAccount); len(got) != 1 || got[0] != fault {
			t.Fatalf("the connection has the cases %q, want one", got)
		}
		w.way.set(nil, nil)
		time.Sleep(5 * time.Second)
		if p := w.payout(before); p.Status != till.PayoutSuccess {
			t.Fatalf("the first is %s", p.Status)
		}
		if got := w.operatorCases(store.CaseAccount); len(got) != 1 {
			t.Errorf("after the success of one that was sent before: %q, want the case still", got)
		}
		after := w.create("4567").ID
		time.Sleep(5 * time.Second)
		if p := w.payout(after); p.Status != till.PayoutSuccess {
			t.Fatalf("the last is %s", p.Status)
		}
		if got := w.operatorCases(store.CaseAccount); len(got) != 0 {
			t.Errorf("after a success: %q, want none", got)
		}
		w.wantWallet(t, 2000, 0, 0)
	})
}
