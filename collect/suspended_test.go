package collect_test

import (
	"context"
	"testing"
	"time"

	"till"
	accounting "till/account"
	"till/collect"
	"till/engine"
	"till/provider/sandbox"
	"till/store"
	"till/store/storetest"
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

// Suspension is decided in the commit of a create, whatever a door in front of it
// believed: nothing is written and nothing is sent. A key that has made a payment before
// still gets its answer.
func TestASuspendedClientMakesNoPayment(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		client, other, c := storetest.NewClient(t, s, till.Test), storetest.NewClient(t, s, till.Test), storetest.NewCollector(t, s)
		who := func(c *till.Client) engine.Client { // as it was read before the suspension
			return engine.Client{Client: c, Enabled: func(string) bool { return true }, Actor: "person:Brice"}
		}
		before := requestOf(till.NewID(s.Now()).String(), "5000")
		first, err := c.Create(t.Context(), who(client), before)
		if err != nil {
			t.Fatal(err)
		}
		accounts := accounting.New(s, nil)
		if err := accounts.Suspend(t.Context(), client.ID, "cli:awa"); err != nil {
			t.Fatal(err)
		}
		person, after := till.NewID(s.Now()), requestOf(till.NewID(s.Now()).String(), "5000")
		for name, create := range map[string]func() (collect.Created, error){
			"by a program":   func() (collect.Created, error) { return c.Create(t.Context(), who(client), after) },
			"at the counter": func() (collect.Created, error) { return c.CreateAtCounter(t.Context(), who(client), person, after) },
		} {
			if made, err := create(); till.ErrorCode(err) != till.CodeClientSuspended {
				t.Errorf("%s: %+v, %v", name, made.Payment, err)
			}
		}
		if again, err := c.Create(t.Context(), who(client), before); err != nil || !again.Replayed || again.Payment.ID != first.Payment.ID {
			t.Errorf("a payment from before: %+v, %v", again, err)
		}
		if _, err := c.Create(t.Context(), who(other), requestOf(till.NewID(s.Now()).String(), "5000")); err != nil {
			t.Errorf("another client: %v", err)
		}
		if err := accounts.Resume(t.Context(), client.ID, "cli:awa"); err != nil {
			t.Fatal(err)
		}
		if made, err := c.Create(t.Context(), who(client), after); err != nil || made.Replayed {
			t.Errorf("resumed: %+v, %v", made, err)
		}
	})
}
