package payout_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/internal/jsonx"
	"till/provider"
	"till/provider/sandbox"
	"till/store"
	"till/store/admin"
)

// minded is a provider whose failures count.
type minded struct{ provider.Provider }

func (m minded) Traits() provider.Traits {
	t := m.Provider.Traits()
	t.NoBreaker = false
	return t
}

// words keeps what is logged.
type words struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *words) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.b.String(), text)
}

// An operator that does not answer about payouts is closed for payouts, and
// takes payments as ever: the two have lanes, breakers and budgets apart, also
// under one name of a connection, and neither works off the other's steps.
func TestPayoutsAndPaymentsStandApart(t *testing.T) {
	t.Parallel()
	inWorldWith(t, sandbox.Config{Window: time.Minute, PollInterval: 100 * time.Millisecond}, func(t *testing.T, w *world) {
		w.stop()
		w.deaf = true
		w.way.set(func(context.Context, provider.Request, int) (provider.Result, error) {
			return provider.Result{}, errAway
		}, nil)
		w.restart(func(c *engine.Config) { c.Connections = map[string]provider.Provider{"sandbox": minded{w.way}} })
		log := &words{}
		collector := collect.New(engine.Config{
			Store: w.store, Secret: []byte("a secret for tests"), PollInterval: 100 * time.Millisecond,
			Connections: map[string]provider.Provider{"sandbox": minded{w.operator}},
			Routes:      engine.ByMode(func(till.Mode, string, string, string) string { return "sandbox" }),
			Log:         slog.New(slog.NewTextHandler(log, nil)),
		})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		for _, run := range []func(context.Context){collector.Run, collector.Watch, w.master.Watch} {
			running.Go(func() { run(ctx) })
		}
		defer func() {
			cancel()
			running.Wait()
			if err := collector.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		for range 12 {
			if _, err := w.try("4567", 100); err != nil && till.ErrorCode(err) != till.CodeMethodUnavailable {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		if _, err := w.try("4567", 100); till.ErrorCode(err) != till.CodeMethodUnavailable {
			t.Errorf("payouts are not closed: %v", err)
		}
		body := `{"method":"mtn_momo","country":"CG","amount":{"value":"5000","currency":"XAF"},"idempotency_key":"00000000-0000-4000-8000-000000000001","customer":{"phone":"242061234567"}}`
		r := &collect.Request{}
		if err := jsonx.Decode([]byte(body), r); err != nil {
			t.Fatal(err)
		}
		p, err := collector.Create(ctx, engine.Client{Client: w.client, Enabled: func(string) bool { return true }}, r)
		if err != nil {
			t.Fatalf("payments are closed with the payouts: %v", err)
		}
		w.funds += 5000
		time.Sleep(3 * time.Second)
		w.view(func(ctx context.Context, tx *store.Tx) error {
			row, err := tx.Payment(ctx, store.Ref{Client: w.client.ID, ID: p.Payment.ID})
			if err == nil && row.Status != till.Success {
				t.Errorf("the payment is %s", row.Status)
			}
			breakers, err := admin.Breakers(ctx, tx)
			for name, b := range breakers {
				if b.State != admin.Passing && name != "sandbox payouts" {
					t.Errorf("the breaker %s is %s", name, b.State)
				}
			}
			if breakers["sandbox payouts"] == nil {
				t.Error("payouts have no breaker")
			}
			return err
		})
		if log.has("cannot act on a step") {
			t.Error("payments' engine took steps of payouts")
		}
		// Once it is back, what was reserved is paid, each once.
		w.way.set(nil, nil)
		time.Sleep(2 * time.Minute)
		l := w.wallet()
		if l.Reserved != 0 {
			t.Errorf("%d is still reserved", l.Reserved)
		}
		all, err := w.operator.Credits(context.Background())
		if err != nil || int64(len(all))*100 != w.funds-l.Balance {
			t.Errorf("%d payouts were paid, and %d left the wallet: %v", len(all), w.funds-l.Balance, err)
		}
	})
}
