package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"till"
	"till/internal/dev/loadgen"
	"till/store"
	"till/webhook"
)

// allowLoopback lets Till send to the receiver.
var allowLoopback = []string{"--webhook-allow", "127.0.0.0/8"}

// register makes an endpoint of the client whose key it is, through the API.
func (p *process) register(ctx context.Context, apiKey, url string) (webhook.Secret, error) {
	asked, err := json.Marshal(map[string]any{"url": url, "events": []string{"*"}})
	if err != nil {
		return nil, err
	}
	var made struct {
		Secret string `json:"secret"`
	}
	as := *p
	as.apiKey = apiKey
	if err := as.call(ctx, http.MethodPost, "/v1/webhook-endpoints", asked, http.StatusCreated, &made); err != nil {
		return nil, err
	}
	return webhook.ParseSecret(made.Secret)
}

// webhookRun is a contender: Till with an endpoint that is sent a
// backlog of events.
type webhookRun struct {
	name     string
	r        *engineRun
	testbed  *testbed
	s        *store.Store
	h        *hotClient
	receiver *process
	secret   webhook.Secret

	from, to int64 // the events of the last backlog
	costs    postCosts
	rates    []float64
	again    int
	memory   int64

	waits    loadgen.Histogram // on the idle system
	p50, p99 []float64
}

// postCosts are the CPU times of those that take part in posting.
type postCosts struct {
	n                        int
	sender, database, taking time.Duration
}

// newWebhookRun makes a database with an endpoint at the receiver. If deadEvents is
// not 0, another client has so many events and an endpoint that nobody listens
// at.
func (r *engineRun) newWebhookRun(ctx context.Context, name, folder string, receiver *process, deadEvents int) (*webhookRun, error) {
	bed, err := r.newTestbed(ctx, folder)
	if err != nil {
		return nil, err
	}
	t := &webhookRun{name: name, r: r, testbed: bed, receiver: receiver}
	if t.s, err = bed.open(ctx); err != nil {
		return nil, err
	}
	client, err := bed.client(ctx, t.s)
	if err != nil {
		return t, err
	}
	t.h = newHotClient(t.s, client)
	p, err := bed.serve(ctx, "till", allowLoopback...)
	if err != nil {
		return t, err
	}
	defer p.stop()
	if t.secret, err = p.register(ctx, bed.apiKey, hooksURL(receiver.addr)); err != nil || deadEvents == 0 {
		return t, err
	}
	return t, t.addDead(ctx, p, deadEvents)
}

// addDead adds the other client.
func (t *webhookRun) addDead(ctx context.Context, p *process, events int) error {
	id, apiKey, err := t.testbed.newClient(ctx, "dead")
	if err != nil {
		return err
	}
	nowhere, err := freeAddr()
	if err != nil {
		return err
	}
	if _, err := p.register(ctx, apiKey, hooksURL(nowhere)); err != nil {
		return err
	}
	var client *till.Client
	if err := t.s.View(ctx, func(tx *store.Tx) (err error) {
		client, err = tx.Client(ctx, id)
		return err
	}); err != nil {
		return err
	}
	began := time.Now()
	if err := newHotClient(t.s, client).fill(ctx, events); err != nil {
		return err
	}
	t.r.logf("%d events of a dead endpoint in %.0f s", events, time.Since(began).Seconds())
	return t.testbed.db.vacuum(ctx, t.testbed.name)
}

func (t *webhookRun) close(ctx context.Context) {
	if t == nil {
		return
	}
	if t.h != nil {
		t.h.c.Close(ctx)
	}
	t.s.Close()
}

// fill makes payments that succeeded, two events each. They are final, so that
// an instance that is started on them has nothing to do but to send webhooks.
func (h *hotClient) fill(ctx context.Context, events int) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	for left := (events + 1) / 2; left > 0; {
		n := min(left, settleBatch*settleBatches)
		if _, err := h.round(ctx, n, settleBatch, 1); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// logEnd returns the sequence of the client's last event.
func (t *webhookRun) logEnd(ctx context.Context) (last int64, err error) {
	err = t.s.View(ctx, func(tx *store.Tx) (err error) {
		last, _, err = tx.LogEnd(ctx, t.h.client.ID)
		return err
	})
	return last, err
}

// round makes a backlog while nobody works, then starts Till, as it is
// shipped, and waits until the receiver has it all. In a round that counts the
// idle system is measured then.
func (t *webhookRun) round(ctx context.Context, counts bool) (err error) {
	if t.from, err = t.logEnd(ctx); err != nil {
		return err
	}
	if err := t.h.fill(ctx, t.r.backlog()); err != nil {
		return err
	}
	if t.to, err = t.logEnd(ctx); err != nil {
		return err
	}
	if err := t.receiver.resetArrivals(ctx); err != nil {
		return err
	}
	database, taking := t.r.db.cpu(), t.receiver.cpu()
	p, err := t.testbed.serve(ctx, "till", append([]string{"--role", "all"}, allowLoopback...)...)
	if err != nil {
		return err
	}
	defer p.stop()
	want := int(t.to - t.from)
	b, err := t.receiver.awaitArrivals(ctx, want)
	if err != nil {
		return fmt.Errorf("%s: %w%s", t.name, err, p.tail())
	}
	if !counts {
		return nil
	}
	t.again += b.Again
	t.costs.add(want, p.cpu(), t.r.db.cpu()-database, t.receiver.cpu()-taking)
	t.rates = append(t.rates, b.rate(want))
	t.r.logf("%-28s %8.0f/s", t.name, b.rate(want))
	err = t.idle(ctx, p)
	t.memory = max(t.memory, p.memory("VmHWM"))
	return err
}

func (c *postCosts) add(n int, sender, database, taking time.Duration) {
	c.n += n
	c.sender += sender
	c.database += database
	c.taking += taking
}

// idle makes payments one at a time, with pauses, and measures how long each
// event takes from the time in it to its first byte at the receiver.
func (t *webhookRun) idle(ctx context.Context, p *process) error {
	if err := t.receiver.resetArrivals(ctx); err != nil {
		return err
	}
	before, err := t.logEnd(ctx)
	if err != nil {
		return err
	}
	for range idleCreates {
		res, err := loadgen.Closed{Addr: p.addr, APIKey: p.apiKey, Connections: 1, Requests: 1}.Run(ctx)
		t.h.settled += res.Accepted
		if err != nil {
			return err
		}
		time.Sleep(idlePause)
	}
	if err := p.awaitSuccess(ctx, t.h.settled); err != nil {
		return err
	}
	after, err := t.logEnd(ctx)
	if err != nil {
		return err
	}
	if _, err := t.receiver.awaitArrivals(ctx, int(after-before)); err != nil {
		return fmt.Errorf("%s, idle: %w%s", t.name, err, p.tail())
	}
	var b arrivals
	if err := t.receiver.call(ctx, http.MethodGet, "/book?waits=1", nil, http.StatusOK, &b); err != nil {
		return err
	}
	var h loadgen.Histogram
	for _, w := range b.Waits {
		h.Record(time.Duration(w) * time.Microsecond)
	}
	t.again += b.Again
	t.waits.Merge(&h)
	t.p50, t.p99 = append(t.p50, ms(h.Quantile(0.5))), append(t.p99, ms(h.Quantile(0.99)))
	t.r.logf("%-28s p50 %.2f ms, p99 %.2f ms, %d events", t.name+", idle", ms(h.Quantile(0.5)), ms(h.Quantile(0.99)), h.N)
	return nil
}
