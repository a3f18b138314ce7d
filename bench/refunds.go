package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"till"
	"till/books"
	"till/engine"
	"till/internal/dev/loadgen"
	"till/internal/jsonx"
	"till/payout"
	"till/provider"
	"till/store"
)

// How refunds are measured.
const (
	refundShare = 10    // one payment in so many is given back
	refundBurst = 2_000 // refunds, and as many payouts, of a round, at most
	refundTurns = 2     // times as many rounds: one takes less than a second
)

// measureRefunds compares creates of refunds with those of payouts, pages of payments that were
// given back with pages of payments that were not, and what verify takes for either.
func measureRefunds(ctx context.Context, r *engineRun) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	defer debug.SetGCPercent(debug.SetGCPercent(servedGCPercent))
	bed, err := r.newTestbed(ctx, "refunds")
	if err != nil {
		return err
	}
	if _, err := bed.seedBooks(ctx, r.rows, r.logf); err != nil {
		return err
	}
	var running processes
	defer running.stop()
	if _, err := running.add(bed.serve(ctx, "till")); err != nil { // the first start sets the level
		return err
	}
	running.stop()
	s, client, err := bed.openForClient(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	g := newGivingBack(s, client)
	defer g.m.Close(ctx)
	if err := g.creates(ctx, r); err != nil {
		return err
	}
	if err := g.verifies(ctx, r, bed.name, max(r.rows/refundShare-g.refunds, r.rows/refundShare/2)); err != nil {
		return err
	}
	server, err := running.add(bed.serve(ctx, "till"))
	if err != nil {
		return err
	}
	return refundLists(ctx, r, server)
}

// givingBack makes payouts and refunds of a client.
type givingBack struct {
	s       *store.Store
	m       *payout.Disburser
	client  *till.Client
	refunds int64          // that were made
	open    []*till.Payout // refunds and payouts that nobody has paid yet
}

func newGivingBack(s *store.Store, client *till.Client) *givingBack {
	return &givingBack{s: s, client: client, m: payout.New(engine.Config{
		Store: s, Secret: make([]byte, 32), AcceptOnly: true, Connections: map[string]provider.Provider{"bench": &operatorClient{}},
		Routes:  engine.ByMode(func(till.Mode, string, string, string) string { return "bench" }),
		Refunds: engine.Refunds{Origins: map[string]engine.Origin{seedConnection: {Fingerprint: seedConnection}}},
	})}
}

// creates makes payouts and refunds in turns, the same amounts to the same numbers.
func (g *givingBack) creates(ctx context.Context, r *engineRun) error {
	var payouts, refunds []float64
	turns := refundTurns * r.rounds
	burst := min(refundBurst, int(r.rows)/4/(turns+1))
	side := func(name string, rates *[]float64, make func(context.Context, *engineRun, int) (float64, error)) func(context.Context, bool) error {
		return func(ctx context.Context, counts bool) error {
			rate, err := make(ctx, r, burst)
			if counts && err == nil {
				*rates = append(*rates, rate)
				r.logf("%-28s %8.0f/s", name, rate)
			}
			return err
		}
	}
	err := inTurns(ctx, turns, side("payouts created", &payouts, g.payouts), side("refunds created", &refunds, g.giveBack))
	if err != nil {
		return err
	}
	r.record(goalRefundCreate, ratios(payouts, refunds))
	return nil
}

// verifies measures how much of the processors verify takes before and after so many payouts that were paid, and
// again after as many refunds.
func (g *givingBack) verifies(ctx context.Context, r *engineRun, database string, n int64) error {
	var took [3]time.Duration
	for i, more := range []func(context.Context, *engineRun, int) (float64, error){nil, g.payouts, g.giveBack} {
		if more != nil {
			if _, err := more(ctx, r, int(n)); err != nil {
				return err
			}
		}
		if err := g.settle(ctx); err != nil {
			return err
		}
		if err := r.db.vacuum(ctx, database); err != nil { // so that a plan does not depend on when the server last counted
			return err
		}
		before := selfCPU() + r.db.cpu() // not the time: a difference of differences shows every stall of the machine
		report, err := books.Verify(ctx, g.s, books.Options{})
		if err != nil {
			return err
		}
		for _, p := range report.Problems {
			if p.Invariant != "I14" { // seeded audit rows are older than the client's own
				return fmt.Errorf("the books are wrong: %+v", p)
			}
		}
		took[i] = selfCPU() + r.db.cpu() - before
		r.logf("verified %d payouts, of which %d are refunds, in %.2f s of CPU", report.Payouts, report.Refunds, took[i].Seconds())
	}
	more := (took[2] - took[1]) - (took[1] - took[0])
	r.record(goalRefundVerify, []float64{max(0, ms(more)*1e6/float64(n))})
	return nil
}

// payouts makes so many payouts at once and returns how many a second.
func (g *givingBack) payouts(ctx context.Context, r *engineRun, n int) (float64, error) {
	rows, err := g.paid(ctx, n)
	if err != nil {
		return 0, err
	}
	return g.timed(ctx, r, n, func(i int, who engine.Client) func() (payout.Created, error) {
		p, q := rows[i], &payout.Request{}
		err := jsonx.Decode(fmt.Appendf(nil, `{"method":%q,"country":%q,"amount":{"value":"%d","currency":%q},"idempotency_key":%q,"recipient":{"phone":%q}}`,
			p.Method, p.Country, p.Amount.Minor, p.Amount.Currency, loadgen.NewKey(), phones[p.Method]), q)
		return func() (payout.Created, error) {
			if err != nil {
				return payout.Created{}, err
			}
			return g.m.Create(ctx, who, q)
		}
	})
}

// phones are numbers of the methods of seeded payments, whose own are all of one method.
var phones = map[string]string{"mtn_momo": "242061234567", "airtel_money": "242051234567", "mpesa": "254711550015"}

// giveBack gives so many payments back at once and returns how many a second.
func (g *givingBack) giveBack(ctx context.Context, r *engineRun, n int) (float64, error) {
	rows, err := g.paid(ctx, n)
	if err != nil {
		return 0, err
	}
	g.refunds += int64(n)
	return g.timed(ctx, r, n, func(i int, who engine.Client) func() (payout.Created, error) {
		q := &payout.RefundRequest{}
		err := jsonx.Decode(fmt.Appendf(nil, `{"payment_id":%q,"idempotency_key":%q}`, rows[i].ID, loadgen.NewKey()), q)
		return func() (payout.Created, error) {
			if err != nil {
				return payout.Created{}, err
			}
			return g.m.Refund(ctx, who, q)
		}
	})
}

// paid returns payments that were paid and not given back yet, the newest first.
func (g *givingBack) paid(ctx context.Context, n int) (rows []*store.PaymentRow, err error) {
	err = g.s.View(ctx, func(tx *store.Tx) (err error) {
		rows, _, err = tx.ListPayments(ctx, g.client.ID, store.PaymentFilter{Status: till.Success}, store.Page{Limit: n, Offset: int(g.refunds)})
		return err
	})
	if err == nil && len(rows) < n {
		err = fmt.Errorf("there are %d payments to give back, not %d", len(rows), n)
	}
	return rows, err
}

// timed makes calls ready, then makes them from as many connections as a server would have, and
// returns how many a second.
func (g *givingBack) timed(ctx context.Context, r *engineRun, n int, ready func(i int, who engine.Client) func() (payout.Created, error)) (float64, error) {
	who := engine.Client{Client: g.client, Actor: "api:bench", Enabled: func(string) bool { return true }}
	calls, made, errs := make([]func() (payout.Created, error), n), make([]*till.Payout, n), make([]error, r.connections)
	for i := range calls {
		calls[i] = ready(i, who)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for w := range r.connections {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				var got payout.Created
				got, errs[w] = calls[i]()
				made[i] = got.Payout
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	g.open = append(g.open, made...)
	return float64(n) / took.Seconds(), ctx.Err()
}

// settle records that everything that is open was paid.
func (g *givingBack) settle(ctx context.Context) error {
	for len(g.open) > 0 {
		some := g.open[:min(settleBatch, len(g.open))]
		g.open = g.open[len(some):]
		answers := make([]*engine.Answer, len(some))
		for i, p := range some {
			reference, now := g.m.ReferenceOf(p), g.s.Now()
			answers[i] = &engine.Answer{Ref: store.Ref{Client: p.ClientID, ID: p.ID}, Action: engine.Check, Connection: p.Connection, Reference: reference,
				Started: now, Ended: now, Result: successOf(reference)}
		}
		g.m.Apply(ctx, answers)
		for _, a := range answers {
			if a.RecordErr != nil {
				return a.RecordErr
			}
		}
	}
	return nil
}

// refundLists asks for pages of paid payments, which show what went back of each, and for pages
// of failed ones, of which nothing is looked up.
func refundLists(ctx context.Context, r *engineRun, server *process) error {
	var with, without []float64
	side := func(query string, found *[]float64) func(context.Context, bool) error {
		return func(ctx context.Context, counts bool) error {
			var times []float64
			for range listBlocks * listAsks {
				began := time.Now()
				if _, err := server.page(ctx, query, 0); err != nil {
					return err
				}
				times = append(times, ms(time.Since(began)))
			}
			if counts {
				*found = append(*found, spreadOf(times).Median)
			}
			return nil
		}
	}
	err := inTurns(ctx, r.rounds, side(fmt.Sprintf("limit=%d&status=failed", listLimit), &without), side(fmt.Sprintf("limit=%d&status=success", listLimit), &with))
	if err != nil {
		return err
	}
	r.logf("a page of failed payments takes %.2f ms, one of payments that were given back %.2f ms", spreadOf(without).Median, spreadOf(with).Median)
	r.record(goalRefundLists, ratios(with, without))
	return nil
}
