package main

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

const (
	hookPosts     = 16      // at once to one endpoint, which is what Till does by default
	hooksPerSec   = 6_000   // events of a backlog, for each second of a round
	maxDeadEvents = 100_000 // that wait for the dead endpoint, in a large run
	idleCreates   = 50      // payments of a round on the idle system
	idlePause     = 10 * time.Millisecond
	createHooks   = 3 // endpoints of the client whose creates are compared
)

// The sides of the comparison.
const (
	webhookBaselineName = "bare loop"
	webhookRunName      = "till"
	besideDeadName      = "till beside a dead one"
)

// deadEvents returns how many events wait for the dead endpoint.
func deadEvents(rows int64) int { return int(min(rows, maxDeadEvents)) }

// backlog returns how many events a round sends.
func (o *options) backlog() int { return max(1000, int(hooksPerSec*o.seconds)) }

// webhooks is how fast events are pushed.
type webhooks struct {
	Posts      int          `json:"posts_at_once"`
	Backlog    int          `json:"backlog_events"`
	DeadEvents int          `json:"dead_endpoint_events"`
	Sides      []hookSide   `json:"sides"`
	Creates    []figures    `json:"creates"`
	Waits      []hooksWaits `json:"idle"`
}

// hookSide is one of those that post.
type hookSide struct {
	Name            string  `json:"name"`
	PerSec          spread  `json:"webhooks_per_second"`
	SenderMicros    float64 `json:"sender_cpu_us_per_webhook"`
	DatabaseMicros  float64 `json:"database_cpu_us_per_webhook"`
	ReceiverMicros  float64 `json:"receiver_cpu_us_per_webhook"`
	Again           int     `json:"came_again"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes,omitempty"`
}

// hooksWaits is how long events take on the idle system.
type hooksWaits struct {
	Name   string  `json:"name"`
	Events int64   `json:"events"`
	P50Ms  spread  `json:"p50_ms"` // of the rounds
	P99Ms  spread  `json:"p99_ms"`
	MaxMs  float64 `json:"max_ms"`
}

// measureWebhooks compares Till with a bare loop that posts the same, beside a
// dead endpoint and without it, and creates with endpoints and without.
func measureWebhooks(ctx context.Context, r *engineRun) error {
	var running processes
	defer running.stop()
	receiver, err := running.add(r.in.serveHelper(ctx, "serve-receiver"))
	if err != nil {
		return err
	}
	w := &webhooks{Posts: hookPosts, Backlog: r.backlog(), DeadEvents: deadEvents(r.rows)}
	if err := w.measurePosts(ctx, r, receiver); err != nil {
		return err
	}
	if err := w.measureCreates(ctx, r, receiver); err != nil {
		return err
	}
	r.report.Webhooks = w
	return nil
}

// measurePosts compares those that post.
func (w *webhooks) measurePosts(ctx context.Context, r *engineRun, receiver *process) error {
	alone, err := r.newWebhookRun(ctx, webhookRunName, "told", receiver, 0)
	defer alone.close(ctx)
	if err != nil {
		return err
	}
	beside, err := r.newWebhookRun(ctx, besideDeadName, "beside", receiver, w.DeadEvents)
	defer beside.close(ctx)
	if err != nil {
		return err
	}
	loop := newWebhookBaseline(alone)
	defer loop.client.CloseIdleConnections()
	if err := inTurns(ctx, r.rounds, alone.round, loop.round, beside.round); err != nil {
		return err
	}
	r.record(goalHooks, ratios(alone.rates, loop.rates))
	r.record(goalHookWait, alone.p99)
	r.record(goalHookDead, ratios(beside.rates, alone.rates))
	w.Sides = append(w.Sides, loop.costs.figures(webhookBaselineName, loop.rates))
	for _, t := range []*webhookRun{alone, beside} {
		s := t.costs.figures(t.name, t.rates)
		s.Again, s.PeakMemoryBytes = t.again, t.memory
		w.Sides = append(w.Sides, s)
		w.Waits = append(w.Waits, hooksWaits{t.name, t.waits.N, spreadOf(t.p50), spreadOf(t.p99), ms(t.waits.Max)})
	}
	return nil
}

func (c *postCosts) figures(name string, rates []float64) hookSide {
	n := time.Duration(max(c.n, 1))
	return hookSide{Name: name, PerSec: spreadOf(rates),
		SenderMicros: micros(c.sender / n), DatabaseMicros: micros(c.database / n), ReceiverMicros: micros(c.taking / n)}
}

// measureCreates compares creates of a client without endpoints with those of
// one that has some. Nobody sends meanwhile.
func (w *webhooks) measureCreates(ctx context.Context, r *engineRun, receiver *process) error {
	var running processes
	defer running.stop()
	var sides []*contender
	for _, c := range []struct {
		name, folder string
		endpoints    int
	}{{"no endpoint", "untold", 0}, {fmt.Sprint(createHooks, " endpoints"), "thrice", createHooks}} {
		bed, err := r.newTestbed(ctx, c.folder)
		if err != nil {
			return err
		}
		p, err := running.add(bed.serve(ctx, "till", allowLoopback...))
		if err != nil {
			return err
		}
		for range c.endpoints {
			if _, err := p.register(ctx, bed.apiKey, hooksURL(receiver.addr)); err != nil {
				return err
			}
		}
		sides = append(sides, &contender{name: c.name, servers: []*process{p}, db: r.db, length: r.length() / 2})
	}
	if err := r.runInTurns(ctx, r.rounds, sides...); err != nil {
		return err
	}
	r.record(goalHookCreate, ratios(sides[1].rates, sides[0].rates))
	for _, s := range sides {
		w.Creates = append(w.Creates, s.figures())
		if err := s.servers[0].checkTotal(ctx, s.sent); err != nil {
			return err
		}
	}
	return nil
}

// print renders what was found.
func (w *webhooks) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "### Webhooks\n\nA backlog of %d events, %d posts at once to one endpoint; %d events of another client wait for a dead endpoint.\n\n",
		w.Backlog, w.Posts, w.DeadEvents)
	fmt.Fprintf(b, "| side | webhooks/s, median (range) | CPU µs/webhook: sender | database | receiver | came again | peak memory |\n|---|---|---|---|---|---|---|\n")
	for _, s := range w.Sides {
		memory := ""
		if s.PeakMemoryBytes > 0 {
			memory = megabytes(s.PeakMemoryBytes)
		}
		fmt.Fprintf(b, "| %s | %.0f (%.0f–%.0f) | %.1f | %.1f | %.1f | %d | %s |\n", s.Name, s.PerSec.Median, s.PerSec.Min, s.PerSec.Max,
			s.SenderMicros, s.DatabaseMicros, s.ReceiverMicros, s.Again, memory)
	}
	fmt.Fprintf(b, "\n| idle system, from event to first byte | events | p50 ms, median (range) | p99 ms, median (range) | max ms |\n|---|---|---|---|---|\n")
	for _, s := range w.Waits {
		fmt.Fprintf(b, "| %s | %d | %.2f (%.2f–%.2f) | %.2f (%.2f–%.2f) | %.1f |\n", s.Name, s.Events,
			s.P50Ms.Median, s.P50Ms.Min, s.P50Ms.Max, s.P99Ms.Median, s.P99Ms.Min, s.P99Ms.Max, s.MaxMs)
	}
	fmt.Fprintf(b, "\nCreates under full load, of a client with and without endpoints:\n\n")
	printFigures(b, w.Creates)
}
