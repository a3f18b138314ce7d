package collect_test

import (
	"context"
	"testing"
	"time"

	"till"
	accounting "till/account"
	"till/provider/sandbox"
)

// A suspended client's customers are asked for nothing more: a payment that was
// not sent waits until the client is resumed, and ends as failed with its window.
// What was sent before goes on, because the customer may have paid.
func TestASuspendedClientsUnsentPaymentsAreNotSent(t *testing.T) {
	t.Parallel()
	for name, resumed := range map[string]bool{"resumed in time": true, "not resumed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorldWith(t, sandbox.Config{PollInterval: time.Second}, func(t *testing.T, w *world) {
				ctx, accounts := context.Background(), accounting.New(w.store, nil)
				sent := w.create("0017")
				time.Sleep(100 * time.Millisecond)
				p := w.unsent("4567")
				if err := accounts.Suspend(ctx, w.client.ID, "cli:awa"); err != nil {
					t.Fatal(err)
				}
				w.stop()
				w.start()
				time.Sleep(window / 2)
				submits, _ := w.way.counts()
				if got := w.payment(p.ID); submits != 1 || got.Status != till.Pending || got.Resolution.State != till.Waiting || w.cases(p.ID) != "" {
					t.Errorf("suspended, it is %s, %s, and %d payments were sent; want it waiting, and the other one sent", got.Status, got.Resolution.State, submits)
				}
				if got := w.payment(sent.ID); got.Status != till.Success || w.credits(sent.ID) != "collection" {
					t.Errorf("what was sent before is %s, with the lines %q", got.Status, w.credits(sent.ID))
				}
				if resumed {
					if err := accounts.Resume(ctx, w.client.ID, "cli:awa"); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(window)
				submits, _ = w.way.counts()
				switch got := w.payment(p.ID); {
				case resumed && (submits != 2 || got.Status != till.Success || w.debits(p.ID) != 1):
					t.Errorf("resumed, it is %s after %d sends of both, debited %d times", got.Status, submits, w.debits(p.ID))
				case !resumed && (submits != 1 || got.Status != till.Failed || got.FailureReason != till.ProviderUnavailable || w.debits(p.ID) != 0):
					t.Errorf("its window over, it is %s %s after %d sends of both, debited %d times", got.Status, got.FailureReason, submits, w.debits(p.ID))
				}
			})
		})
	}
}
