package main

import (
	"testing"
	"time"

	"till"
	"till/provider"
)

// The operator knows what was submitted, says so again and again, and nothing
// else.
func TestOperator(t *testing.T) {
	addr, err := freeAddr()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serveOperator(t.Context(), []string{addr}) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	p := &process{name: "operator", addr: addr, done: make(chan struct{})}
	if err := p.awaitReady(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	o := newOperatorClient("http://" + addr)
	reference := till.NewID(1)
	check := func(want provider.Outcome) provider.Result {
		t.Helper()
		r, err := o.Check(t.Context(), provider.Query{Reference: reference})
		if err != nil || r.Outcome != want {
			t.Fatalf("check: %+v, error %v; want %s", r, err, want)
		}
		return r
	}
	check(provider.NotFound)
	for range 2 {
		r, err := o.Submit(t.Context(), provider.Request{Reference: reference, Phone: "242061234567", Amount: till.Money{Minor: 500, Currency: "XAF"}})
		if err != nil || r.Outcome != provider.Accepted {
			t.Fatalf("submit: %+v, error %v", r, err)
		}
	}
	if r := check(provider.Success); r != successOf(reference) {
		t.Errorf("got %+v, want %+v", r, successOf(reference))
	}
	if traits := o.Traits(); !traits.ClientReference || traits.ApprovalWindow == 0 {
		t.Errorf("traits %+v", traits)
	}
}
