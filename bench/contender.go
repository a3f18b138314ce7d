package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"till/internal/dev/loadgen"
)

// contender is one of those that are compared, with what all its rounds found:
// creates against one server, or against several that share the connections.
type contender struct {
	name        string
	servers     []*process
	db          *database // behind the servers; nil if there is none
	connections int
	length      time.Duration
	say         func(string, ...any)

	sent      int64     // accepted in all rounds, the warm-up included
	rates     []float64 // per second, of each round
	medians   []float64 // milliseconds, of each round
	latency   loadgen.Histogram
	accepted  int64 // in the rounds that count
	cpu       time.Duration
	database  time.Duration // the database server's CPU time
	generator time.Duration // the load generator's own CPU time in its rounds
}

// round runs one round; if it counts, the figures are kept.
func (s *contender) round(ctx context.Context, counts bool) error {
	server, generator, database := s.serverCPU(), selfCPU(), s.db.cpu()
	r, err := s.load(ctx)
	s.sent += r.Accepted
	if err != nil {
		return fmt.Errorf("%s: %w%s", s.name, err, s.servers[0].tail())
	}
	if !counts {
		return nil
	}
	s.cpu += s.serverCPU() - server
	s.generator += selfCPU() - generator
	s.database += s.db.cpu() - database
	s.rates = append(s.rates, r.Rate())
	s.medians = append(s.medians, ms(r.Latency.Quantile(0.5)))
	s.latency.Merge(r.Latency)
	s.accepted += r.Accepted
	s.say("%-28s %8.0f/s, p50 %.2f ms, p99 %.2f ms", s.name, r.Rate(), ms(r.Latency.Quantile(0.5)), ms(r.Latency.Quantile(0.99)))
	return nil
}

// load asks all servers at the same time.
func (s *contender) load(ctx context.Context) (loadgen.Result, error) {
	results, errs := make([]loadgen.Result, len(s.servers)), make([]error, len(s.servers))
	var wg sync.WaitGroup
	for i, p := range s.servers {
		wg.Go(func() {
			results[i], errs[i] = loadgen.Closed{
				Addr: p.addr, APIKey: p.apiKey, Connections: max(1, s.connections/len(s.servers)), Duration: s.length,
			}.Run(ctx)
		})
	}
	wg.Wait()
	sum := loadgen.Result{Latency: &loadgen.Histogram{}}
	var err error
	for i, r := range results {
		sum.Accepted += r.Accepted
		sum.Elapsed = max(sum.Elapsed, r.Elapsed)
		sum.Latency.Merge(r.Latency)
		if err == nil {
			err = errs[i]
		}
	}
	return sum, err
}

func (s *contender) serverCPU() (sum time.Duration) {
	for _, p := range s.servers {
		sum += p.cpu()
	}
	return sum
}

// figures are those of one side.
type figures struct {
	Name       string  `json:"name"`
	Requests   int64   `json:"requests"`
	RatePerSec spread  `json:"requests_per_second"`
	P50Ms      float64 `json:"p50_ms"`
	P99Ms      float64 `json:"p99_ms"`
	MaxMs      float64 `json:"max_ms"`

	// Quantiles are the latencies of plotQuantiles, for the plot.
	Quantiles []float64 `json:"quantiles_ms"`

	CPUMicros       float64 `json:"server_cpu_us_per_request"`
	DatabaseMicros  float64 `json:"database_cpu_us_per_request"`
	GeneratorMicros float64 `json:"generator_cpu_us_per_request"`
	PeakMemoryBytes int64   `json:"peak_memory_bytes"` // of the largest instance
}

func (s *contender) figures() figures {
	n := time.Duration(max(s.accepted, 1))
	f := figures{
		Name:            s.name,
		Requests:        s.accepted,
		RatePerSec:      spreadOf(s.rates),
		P50Ms:           ms(s.latency.Quantile(0.50)),
		P99Ms:           ms(s.latency.Quantile(0.99)),
		MaxMs:           ms(s.latency.Max),
		Quantiles:       quantilesOf(&s.latency),
		CPUMicros:       micros(s.cpu / n),
		DatabaseMicros:  micros(s.database / n),
		GeneratorMicros: micros(s.generator / n),
	}
	for _, p := range s.servers {
		f.PeakMemoryBytes = max(f.PeakMemoryBytes, p.memory("VmHWM"))
	}
	return f
}

// ratios divides the figures of two contenders, round by round.
func ratios(a, b []float64) []float64 {
	out := make([]float64, min(len(a), len(b)))
	for i := range out {
		out[i] = a[i] / max(b[i], 1e-9)
	}
	return out
}

// spread is a figure over several rounds: median, smallest and largest.
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

func quantilesOf(h *loadgen.Histogram) (values []float64) {
	for _, q := range plotQuantiles {
		values = append(values, ms(h.Quantile(q)))
	}
	return values
}

func ms(d time.Duration) float64     { return float64(d.Nanoseconds()) / 1e6 }
func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
