package collect_test

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"till"
	"till/engine"
	"till/store"
	"till/store/storetest"
)

// createAs asks an instance for a payment of a client.
func (f *fleet) createAs(i *instance, client *till.Client) *till.Payment {
	who := engine.Client{Client: client, Enabled: func(string) bool { return true }}
	made, err := i.Create(context.Background(), who, request(f.t, till.NewID(till.TimeOf(time.Now())).String(), "4567"))
	if err != nil {
		f.t.Error(err)
		return nil
	}
	return made.Payment
}

// clientElsewhere makes a client, on another node than the fleet's where there are several.
func (f *fleet) clientElsewhere() *till.Client {
	ctx := context.Background()
	for range 50 {
		if c := storetest.NewClient(f.t, f.store, till.Live); !f.store.Distributed() || f.store.Node(ctx, c.ID) != f.store.Node(ctx, f.client.ID) {
			return c
		}
	}
	f.t.Fatal("fifty clients are on one node")
	return nil
}

// manyAs makes many payments of a client, through few commits.
func (f *fleet) manyAs(i *instance, client *till.Client, n int) {
	f.t.Helper()
	var wg sync.WaitGroup
	for range 250 {
		wg.Go(func() {
			for range n / 250 {
				f.createAs(i, client)
			}
		})
	}
	wg.Wait()
	if f.t.Failed() {
		f.t.FailNow()
	}
}

func (f *fleet) successes(client *till.Client) (n int64) {
	f.t.Helper()
	err := f.store.View(context.Background(), func(tx *store.Tx) (err error) {
		_, n, err = tx.ListPayments(context.Background(), client.ID, store.PaymentFilter{Status: till.Success}, store.Page{Limit: 1})
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// F43, F45: an instance starts with a thousand steps of one client that are
// all due, at an operator that takes only so many calls a second. Another
// client's payments are sent and asked about beside them, not behind them;
// and the operator is called as often as it may be until all is done. TILL_HERD
// says how many they are.
func TestAHerdOfDueStepsIsWorkedOffFairly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("works off a thousand steps")
	}
	herd, rate, few := 1000, 50, 20
	if n, err := strconv.Atoi(os.Getenv("TILL_HERD")); err == nil {
		herd = n
	}
	traits := limitedTo(rate, rate)
	traits.ApprovalWindow = time.Hour
	inFleet(t, traits, func(t *testing.T, f *fleet) {
		accepts := f.start(onlyAccepts)
		other := f.clientElsewhere()
		f.manyAs(accepts, f.client, herd)
		time.Sleep(time.Second)
		f.start() // what was left lying is due, all at once
		begun := time.Now()
		time.Sleep(time.Second)
		for range few { // due later than all the others
			p := f.createAs(accepts, other)
			defer func() { delete(f.operator.debits, accepts.ReferenceOf(p)) }() // the book is held against one client's
		}
		time.Sleep(9 * time.Second)
		if n, all := f.successes(other), f.successes(f.client); n != int64(few) || all > int64(herd)/2 {
			t.Errorf("after %s %d of %d payments beside a herd have succeeded, and %d of the herd", time.Since(begun), n, few, all)
		}
		for f.successes(f.client) < int64(herd) && time.Since(begun) < time.Hour {
			time.Sleep(time.Second)
		}
		took := time.Since(begun)
		submits, checks := f.operator.times()
		withinRate(t, "submit", submits, traits.SubmitRate)
		withinRate(t, "check", checks, traits.CheckRate)
		// Submits and checks have a budget each; after the last submit comes a check.
		if least := time.Duration(herd/rate) * time.Second; took > least*10/9+10*time.Second {
			t.Errorf("%d payments took %s; the rate allows %s", herd, took, least)
		}
		f.operator.mu.Lock()
		defer f.operator.mu.Unlock()
		if n := len(f.operator.debits); n != herd+few {
			t.Errorf("%d debits", n)
		}
	})
}
