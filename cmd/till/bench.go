package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/internal/dev/loadgen"
)

func newBench() *cobra.Command {
	var l loadgen.Open
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a service answers under load",
		Long: `Create payments at a fixed rate and show how fast the service answers. Use it to
size a machine before customers come.

Each request is due at a fixed time, whether or not the service keeps up, and
its latency counts from that time. Each request has its own idempotency key, so
each answer 202 is a new payment. Only a test client's key is accepted: a live
client's payments would ask people for money.`,
		Example: `  TILL_API_KEY=till_test_... till bench --rate 200 --duration 30s`,
		Args:    cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&l.BaseURL, "base-url", "http://"+cli.DefaultListen+"/v1", "the URL of the API, ending in /v1")
	f.StringVar(&l.APIKey, "api-key", "", "the key of a test client (required; better given as TILL_API_KEY)")
	f.Float64Var(&l.Rate, "rate", 100, fmt.Sprintf("requests per second, at most %d", loadgen.MaxRate))
	f.DurationVar(&l.Duration, "duration", 10*time.Second, fmt.Sprintf("how long the load lasts, at most %v", loadgen.MaxTime))
	f.IntVar(&l.Connections, "connections", 64, fmt.Sprintf("how many connections to use, at most %d", loadgen.MaxConnections))
	return cli.Run(cmd, func(c *cli.Call) error {
		if !strings.HasPrefix(l.APIKey, "till_test_") {
			return errors.New("--api-key must be the key of a test client (till_test_...)")
		}
		l.Progress = func(r loadgen.OpenResult) {
			cli.Printf(c.ErrOrStderr(), "%3.0f s  %d of %d accepted  %.0f/s  p50 %s  p99 %s%s\n", r.Elapsed.Seconds(),
				r.Accepted, r.Due, r.Rate(), round(r.Latency.Quantile(0.5)), round(r.Latency.Quantile(0.99)), failures(&r))
		}
		r, err := l.Run(c.Context())
		if err != nil {
			return err
		}
		return cli.Problems(printBench(c, &l, r), r.Accepted < r.Due)
	})
}

// benchQuantiles are the percentiles that are shown.
var benchQuantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}

func printBench(c *cli.Call, l *loadgen.Open, r *loadgen.OpenResult) error {
	latency := map[string]float64{"max": millis(r.Latency.Max)}
	for _, p := range benchQuantiles {
		latency[p.name] = millis(r.Latency.Quantile(p.q))
	}
	return c.Lines(cli.Object{"rate", l.Rate, "achieved_rate", r.Rate(), "seconds", r.Elapsed.Seconds(), "due", r.Due, "sent", r.Sent, "accepted", r.Accepted,
		"failures", r.Failures, "latency_ms", latency}, func(row func(...any)) {
		row("due", fmt.Sprintf("%s, %g per second over %s", cli.Count(r.Due, "request", "requests"), l.Rate, cli.Count(l.Connections, "connection", "connections")))
		row("accepted", fmt.Sprintf("%d, %.1f per second", r.Accepted, r.Rate()))
		for _, status := range slices.Sorted(maps.Keys(r.Failures)) {
			row("failed", fmt.Sprintf("%d: %s", r.Failures[status], status))
		}
		if never := r.Due - r.Sent; never > 0 {
			row("never sent", never)
		}
		for _, p := range benchQuantiles {
			row(p.name, round(r.Latency.Quantile(p.q)))
		}
		row("max", round(r.Latency.Max))
	})
}

// failures prints how many requests failed, "" if none did.
func failures(r *loadgen.OpenResult) string {
	var n int64
	for _, f := range r.Failures {
		n += f
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("  %d failed", n)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// round keeps three digits of a latency.
func round(d time.Duration) time.Duration {
	unit := time.Microsecond
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}
