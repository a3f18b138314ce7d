package server_test

import (
	"context"
	"testing"

	"till/provider"
)

// decided is an operator that says success at once, under any number.
type decided struct{ provider.Provider }

func (decided) Submit(_ context.Context, r provider.Request) (provider.Result, error) {
	return provider.Result{Outcome: provider.Success, Receipt: "D" + r.ID.String()}, nil
}

func (decided) Traits() provider.Traits {
	return provider.Traits{ClientReference: true, ApprovalWindow: 3e9, SubmitTimeout: 1e9, CheckTimeout: 1e9, Poll: 1e8, PollMax: 1e9}
}

func (decided) Fingerprint() string { return "decided" }

// A benchmark's operator stands in the sandbox's place, and batches of one do
// what larger ones do.
func TestAnotherOperatorForTestClients(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.Operator, c.MaxBatch = decided{}, 1
	r := start(t, c)
	r.await(r.create("242061230002"), "success") // the sandbox's customer would decline
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	verify(t, c.Database)
}
