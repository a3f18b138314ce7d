package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/internal/jsonx"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
)

// service is one instance of the service on a store, with the sandbox operator.
type service struct {
	collector *collect.Collector
	operator  *sandbox.Operator
	client    *till.Client
	submits   atomic.Int64 // calls that this instance made
	taken     atomic.Int64 // those of them that the operator answered
}

// counted is the operator with a count of what is sent to it.
type counted struct {
	*sandbox.Operator
	sv *service
}

func (p counted) Submit(ctx context.Context, r provider.Request) (provider.Result, error) {
	p.sv.submits.Add(1)
	res, err := p.Operator.Submit(ctx, r)
	if err == nil {
		p.sv.taken.Add(1)
	}
	return res, err
}

// newService starts an instance, which works unless it is idle.
func newService(t *testing.T, s *store.Store, o *sandbox.Operator, client *till.Client, work bool) *service {
	t.Helper()
	sv := newCreator(t, s, o, client, work)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); sv.collector.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return sv
}

// newCreator is an instance that looks for no due steps: if it works, it sends
// what it created itself.
func newCreator(t *testing.T, s *store.Store, o *sandbox.Operator, client *till.Client, work bool) *service {
	t.Helper()
	sv := &service{operator: o, client: client}
	sv.collector = collect.New(engine.Config{
		Store: s, Secret: []byte("a secret for tests"), AcceptOnly: !work, PollInterval: 20 * time.Millisecond,
		Connections: map[string]provider.Provider{"sandbox": counted{o, sv}},
		Routes:      engine.ByMode(func(till.Mode, string, string, string) string { return "sandbox" }),
	})
	t.Cleanup(func() {
		drain, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := sv.collector.Close(drain); err != nil {
			t.Error(err)
		}
	})
	return sv
}

// as is the same instance, asked by another client.
func (sv *service) as(client *till.Client) *service {
	return &service{collector: sv.collector, operator: sv.operator, client: client}
}

func newOperator(t *testing.T, now func() till.Time) *sandbox.Operator {
	t.Helper()
	o, err := sandbox.Open(t.Context(), sandbox.Config{
		Path: filepath.Join(t.TempDir(), "sandbox.db"), Window: time.Hour, Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func newKey() string { return till.NewID(till.TimeOf(time.Now())).String() }

func (sv *service) create(key string) (collect.Created, error) {
	r := &collect.Request{}
	body := `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"` + key + `","customer":{"phone":"242061234567"}}`
	if err := jsonx.Decode([]byte(body), r); err != nil {
		return collect.Created{}, err
	}
	return sv.collector.Create(context.Background(), engine.Client{Client: sv.client, Enabled: func(string) bool { return true }}, r)
}

// isAway answers whether a refusal tells the client to try again.
func isAway(err error) bool {
	var e *till.Error
	return errors.As(err, &e) && e.Code == till.CodeServiceUnavailable
}

// awaitSuccess waits until a client has so many successes, and holds them
// against the operator's book: one debit for each.
func (sv *service) awaitSuccess(t *testing.T, s *store.Store, want int) {
	t.Helper()
	var success, total int64
	for deadline := time.Now().Add(60 * time.Second); success < int64(want); time.Sleep(20 * time.Millisecond) {
		err := s.View(t.Context(), func(tx *store.Tx) (err error) {
			if _, success, err = tx.ListPayments(t.Context(), sv.client.ID, store.PaymentFilter{Status: till.Success}, store.Page{Limit: 1}); err != nil {
				return err
			}
			_, total, err = tx.ListPayments(t.Context(), sv.client.ID, store.PaymentFilter{}, store.Page{Limit: 1})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d payments have ended in success; want %d", success, total, want)
		}
	}
	if total != int64(want) {
		t.Errorf("there are %d payments, want %d", total, want)
	}
	debits, err := sv.operator.Debits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[till.ID]bool{}
	for _, d := range debits {
		if !sv.owns(t, s, d.Payment) {
			continue
		}
		if seen[d.Reference] {
			t.Errorf("payment %s was debited twice", d.Payment)
		}
		seen[d.Reference] = true
	}
	if len(seen) != want {
		t.Errorf("%d payments were debited, want %d", len(seen), want)
	}
}

// owns answers whether a payment is of the service's client. One that nobody
// has was sent without having been committed.
func (sv *service) owns(t *testing.T, s *store.Store, payment till.ID) (own bool) {
	t.Helper()
	err := s.View(t.Context(), func(tx *store.Tx) error {
		clients, err := tx.Clients(t.Context(), till.ID{}, 100)
		if err != nil {
			return err
		}
		refs := make([]store.Ref, len(clients))
		for i, c := range clients {
			refs[i] = store.Ref{Client: c.ID, ID: payment}
		}
		rows, err := tx.Payments(t.Context(), refs)
		if err == nil && len(rows) == 0 {
			t.Errorf("the operator debited payment %s, which is not in the database", payment)
		}
		own = rows[store.Ref{Client: sv.client.ID, ID: payment}] != nil
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return own
}
