package main

import (
	"os"

	"github.com/spf13/cobra"

	"till/internal/trace"
)

// traceFlags say where spans are sent.
type traceFlags struct {
	endpoint string
	ratio    float64
}

func (t *traceFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.endpoint, "otlp-endpoint", "", "the OpenTelemetry collector that traces are sent to, as http://127.0.0.1:4318 (default that of OTEL_EXPORTER_OTLP_ENDPOINT, else none)")
	cmd.Flags().Float64Var(&t.ratio, "trace-ratio", trace.DefaultRatio, "the part of payments and payouts that is traced, 0 to 1; those with trouble are traced from then on")
}

func (t *traceFlags) config() (trace.Config, error) {
	return trace.FromEnvironment(t.endpoint, t.ratio, os.Getenv)
}
