package collect_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/provider"
	"till/provider/airtel"
	"till/provider/mtnmomo"
	"till/provider/providertest"
	"till/store"
)

// losing is an operator that the first request never reaches: nobody answers it
// until its time is over.
type losing struct {
	*post
	calls atomic.Int64
}

func (o *losing) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	if o.calls.Add(1) == 1 {
		<-ctx.Done()
		return provider.Result{}, ctx.Err()
	}
	return o.post.Submit(ctx, r)
}

// A payment that was lost on its way to the operator is proven lost while the
// customer still waits, and is sent again: with the times that adapters have, and
// with the tightest that may be configured.
func TestALostPaymentIsSentAgainWithinItsWindow(t *testing.T) {
	t.Parallel()
	deps := provider.Deps{Tokens: providertest.NewTokens(time.Now)}
	ofAirtel, err := airtel.New(airtel.Config{BaseURL: "https://openapi.airtel.cg", Country: "CG", Currency: "XAF", ClientID: "a", ClientSecret: "b"}, deps)
	if err != nil {
		t.Fatal(err)
	}
	c := mtnmomo.Config{BaseURL: "https://momoapi.momo.africa", TargetEnvironment: "mtncongo", APIUser: "a", APIKey: "b", CollectionKey: "c"}
	ofMTN, err := mtnmomo.New(c, deps)
	if err != nil {
		t.Fatal(err)
	}
	c.SettleSeconds, c.PollSeconds, c.ApprovalWindowSeconds = 60, 5, 165
	tight, err := mtnmomo.New(c, deps)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]provider.Provider{"Airtel": ofAirtel.Payments(), "MTN": ofMTN.Payments(), "MTN, as tight as can be": tight.Payments()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			traits := p.Traits()
			inFleet(t, traits, func(t *testing.T, f *fleet) {
				o := &losing{post: f.operator}
				i := f.start(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"post": o} })
				f.create(i)
				time.Sleep(traits.ApprovalWindow)
				if n := o.calls.Load(); n != 2 {
					t.Errorf("it was sent %d times within %s, want again once it is proven lost", n, traits.ApprovalWindow)
				}
				time.Sleep(time.Minute)
				if n := f.count(); n[till.Success] != 1 {
					t.Errorf("it ends as %v, want success", n)
				}
			})
		})
	}
}

// patient is an operator whose window was configured anew.
type patient struct{ *post }

func (o patient) Traits() provider.Traits {
	t := o.post.Traits()
	t.ApprovalWindow *= 3
	return t
}

// A window that is configured anew is that of new payments; those that are
// there keep theirs.
func TestAnotherWindowIsForNewPayments(t *testing.T) {
	t.Parallel()
	inFleet(t, habits(), func(t *testing.T, f *fleet) {
		f.operator.set(func(o *post) { o.approve = 30 * time.Second })
		first := f.start()
		before := f.create(first)
		time.Sleep(time.Second)
		first.stop()
		later := patient{f.operator}
		after := f.create(f.start(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"post": later} }))
		if got, want := after.ExpiresAt.Sub(after.CreatedAt), later.Traits().ApprovalWindow; got != want {
			t.Errorf("the window of a new payment is %s, want %s", got, want)
		}
		time.Sleep(10 * time.Second) // the first is asked about by the new habits
		err := f.store.View(context.Background(), func(tx *store.Tx) error {
			p, err := tx.Payment(context.Background(), store.Ref{Client: f.client.ID, ID: before.ID})
			if err == nil && (p.ExpiresAt != before.ExpiresAt || p.ExpiresAt.Sub(p.CreatedAt) != habits().ApprovalWindow || p.Resolution.Attempts < 2) {
				t.Errorf("the window of the first ended at %s and ends at %s, after %d calls", before.ExpiresAt, p.ExpiresAt, p.Resolution.Attempts)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
	})
}
