package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"till/internal/load"
)

// side is one of the two servers, with what all its rounds found.
type side struct {
	server    *process
	rates     []float64
	latency   load.Histogram
	accepted  int64 // in all rounds, the warm-up apart
	cpu       time.Duration
	database  time.Duration // the database server's CPU time
	db        *database     // behind the server; nil if there is none
	generator time.Duration // the load generator's own CPU time in its rounds
}

// compare loads both servers in turns and returns what it found. It checks
// that the database has a payment for each answer 202, no more and no fewer.
func compare(ctx context.Context, o options, in *installation, progress io.Writer) (*comparison, error) {
	till, err := in.serve(ctx, o.role)
	if err != nil {
		return nil, err
	}
	defer till.stop()
	plain, err := in.serveBase(ctx)
	if err != nil {
		return nil, err
	}
	defer plain.stop()
	sides := []*side{{server: plain}, {server: till, db: in.db}}
	for _, s := range sides {
		if err := s.server.settle(ctx); err != nil {
			return nil, err
		}
	}
	before, err := till.total(ctx, "")
	if err != nil {
		return nil, err
	}

	// The warm-up is a round like the others that does not count: caches fill,
	// heaps and the write-ahead log grow to their size.
	var sent int64
	for round := range o.rounds + 1 {
		for _, s := range sides {
			accepted, err := s.round(ctx, o, round > 0)
			if s.server == till {
				sent += accepted
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w%s", s.server.name, err, s.server.tail())
			}
		}
		if round > 0 {
			fmt.Fprintf(progress, "round %d: base %.0f/s, till %.0f/s\n", round, sides[0].rates[round-1], sides[1].rates[round-1])
		}
	}

	c := &comparison{Base: sides[0].figures(), Till: sides[1].figures(), PaymentsBefore: before}
	c.Ratio = c.Till.RatePerSec.Median / c.Base.RatePerSec.Median
	return c, c.check(ctx, in, till, before+sent)
}

// round runs one round against the side's server and returns how many
// requests it accepted; with counts, the figures are kept.
func (s *side) round(ctx context.Context, o options, counts bool) (int64, error) {
	server, generator, database := s.server.cpu(), selfCPU(), s.db.cpu()
	r, err := load.Closed{
		Addr: s.server.addr, APIKey: s.server.apiKey,
		Connections: o.connections, Duration: time.Duration(o.seconds * float64(time.Second)),
	}.Run(ctx)
	if err != nil || !counts {
		return r.Accepted, err
	}
	s.cpu += s.server.cpu() - server
	s.generator += selfCPU() - generator
	s.database += s.db.cpu() - database
	s.rates = append(s.rates, r.Rate())
	s.latency.Merge(r.Latency)
	s.accepted += r.Accepted
	return r.Accepted, nil
}

func (s *side) figures() figures {
	n := time.Duration(max(s.accepted, 1))
	return figures{
		Requests:        s.accepted,
		RatePerSec:      spreadOf(s.rates),
		P50Ms:           ms(s.latency.Quantile(0.50)),
		P99Ms:           ms(s.latency.Quantile(0.99)),
		MaxMs:           ms(s.latency.Max),
		Quantiles:       quantilesOf(&s.latency),
		CPUMicros:       micros(s.cpu / n),
		DatabaseMicros:  micros(s.database / n),
		GeneratorMicros: micros(s.generator / n),
		IdleMemoryBytes: s.server.idle,
		PeakMemoryBytes: s.server.memory("VmHWM"),
		ReadyMs:         ms(s.server.readyIn),
	}
}

// check compares the payments in the list with the answers 202. With a worker
// behind, it also tells how many of them have succeeded by now.
func (c *comparison) check(ctx context.Context, in *installation, till *process, want int64) error {
	var err error
	if c.Payments, err = till.total(ctx, ""); err != nil {
		return err
	}
	if c.Payments != want {
		return fmt.Errorf("the list counts %d payments; the answers 202 make it %d", c.Payments, want)
	}
	if c.Settled, err = till.total(ctx, "&status=success"); err != nil {
		return err
	}

	// Only a clean stop brings the write-ahead log home into the file.
	till.stop()
	c.DatabaseBytes = in.db.size()
	return nil
}

// spread is what several rounds found of one figure.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(v []float64) spread {
	if len(v) == 0 {
		return spread{}
	}
	v = slices.Sorted(slices.Values(v))
	return spread{Median: (v[(len(v)-1)/2] + v[len(v)/2]) / 2, Min: v[0], Max: v[len(v)-1]}
}

// plotQuantiles are the shares whose latencies are drawn.
var plotQuantiles = []float64{0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1}

func quantileNames() (names []string) {
	for _, q := range plotQuantiles {
		names = append(names, "p"+strconv.FormatFloat(q*100, 'g', 4, 64))
	}
	return names
}

func quantilesOf(h *load.Histogram) (values []float64) {
	for _, q := range plotQuantiles {
		values = append(values, ms(h.Quantile(q)))
	}
	return values
}

func selfCPU() time.Duration { return statOf(os.Getpid()).ticks(11, 12) }

func ms(d time.Duration) float64     { return float64(d.Microseconds()) / 1000 }
func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
