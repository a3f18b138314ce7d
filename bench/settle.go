package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/collect"
	"till/engine"
	"till/internal/dev/loadgen"
	"till/internal/jsonx"
	"till/provider"
	"till/store"
)

// How answers are recorded.
const (
	settleBatch    = 256 // as many as the engine gives to one commit
	settleBatches  = 16  // in a round
	settleSingly   = 768 // answers of a round, one to a commit
	settleWriters  = 16  // that record one by one, on PostgreSQL
	settleCreators = 256 // that make the payments
	settleTurns    = 4   // times as many rounds: one takes half a second
)

// settlement is how fast the successes of one client are recorded.
type settlement struct {
	Batch         int    `json:"batch"`
	Writers       int    `json:"single_writers"`
	BatchedPerSec spread `json:"batched_per_second"`
	SinglePerSec  spread `json:"single_per_second"`
}

// measureSettle records that payments of one client succeeded: status, wallet,
// entries, tallies, event, step. It calls collect in this process: no HTTP,
// no operator.
func measureSettle(ctx context.Context, r *engineRun) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	defer debug.SetGCPercent(debug.SetGCPercent(servedGCPercent))
	bed, err := r.newTestbed(ctx, "settle")
	if err != nil {
		return err
	}
	s, client, err := bed.openForClient(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	h := newHotClient(s, client)
	defer h.c.Close(ctx)
	writers := 1
	if r.db.engine == enginePostgres {
		writers = settleWriters
	}
	var batched, single []float64
	side := func(name string, rates *[]float64, answers, batch, writers int) func(context.Context, bool) error {
		return func(ctx context.Context, counts bool) error {
			rate, err := h.round(ctx, answers, batch, writers)
			if counts && err == nil {
				*rates = append(*rates, rate)
				r.logf("%-28s %8.0f/s", name, rate)
			}
			return err
		}
	}
	err = inTurns(ctx, settleTurns*r.rounds,
		side("settled one by one", &single, settleSingly, 1, writers),
		side("settled in batches", &batched, settleBatch*settleBatches, settleBatch, 1))
	if err != nil {
		return err
	}
	r.record(goalSettle, ratios(batched, single))
	r.report.Settlement = &settlement{Batch: settleBatch, Writers: writers, BatchedPerSec: spreadOf(batched), SinglePerSec: spreadOf(single)}
	return h.check(ctx)
}

// hotClient is the client whose payments succeed.
type hotClient struct {
	s       *store.Store
	c       *collect.Collector
	client  *till.Client
	settled int64
}

func newHotClient(s *store.Store, client *till.Client) *hotClient {
	return &hotClient{s: s, client: client, c: collect.New(engine.Config{
		Store: s, Secret: make([]byte, 32), AcceptOnly: true, Connections: map[string]provider.Provider{"bench": &operatorClient{}},
		Routes: engine.ByMode(func(till.Mode, string, string, string) string { return "bench" }),
	})}
}

// round makes payments, then records that they succeeded, so many answers to
// a commit. Only the recording is timed.
func (h *hotClient) round(ctx context.Context, answers, batch, writers int) (rate float64, err error) {
	all, err := h.answers(ctx, answers)
	if err != nil {
		return 0, err
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range writers {
		wg.Go(func() {
			for ctx.Err() == nil {
				at := int(next.Add(int64(batch))) - batch
				if at >= len(all) {
					return
				}
				h.c.Apply(ctx, all[at:min(at+batch, len(all))])
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	for _, a := range all {
		if a.RecordErr != nil {
			return 0, a.RecordErr
		}
	}
	h.settled += int64(len(all))
	return float64(len(all)) / took.Seconds(), ctx.Err()
}

// answers makes payments and what an operator says of each: success.
func (h *hotClient) answers(ctx context.Context, n int) ([]*engine.Answer, error) {
	all, errs := make([]*engine.Answer, n), make([]error, settleCreators)
	who := engine.Client{Client: h.client, Enabled: func(string) bool { return true }}
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range settleCreators {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				all[i], errs[w] = h.answer(ctx, who)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("create a payment: %w", err)
		}
	}
	return all, nil
}

func (h *hotClient) answer(ctx context.Context, who engine.Client) (*engine.Answer, error) {
	var r collect.Request
	if err := jsonx.Decode([]byte(strings.Replace(loadgen.Body, loadgen.KeyPlaceholder, loadgen.NewKey(), 1)), &r); err != nil {
		return nil, err
	}
	made, err := h.c.Create(ctx, who, &r)
	if err != nil {
		return nil, err
	}
	p, now := made.Payment, h.s.Now()
	reference := h.c.ReferenceOf(p)
	return &engine.Answer{
		Ref: store.Ref{Client: p.ClientID, ID: p.ID}, Action: engine.Check, Connection: p.Connection, Reference: reference,
		Started: now, Ended: now, Result: successOf(reference),
	}, nil
}

// check compares the list with what was recorded.
func (h *hotClient) check(ctx context.Context) error {
	var total int64
	err := h.s.View(ctx, func(tx *store.Tx) (err error) {
		_, total, err = tx.ListPayments(ctx, h.client.ID, store.PaymentFilter{Status: till.Success}, store.Page{Limit: 1})
		return err
	})
	if err == nil && total != h.settled {
		err = fmt.Errorf("the list counts %d successes; %d were recorded", total, h.settled)
	}
	return err
}
