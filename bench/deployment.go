package main

import (
	"bytes"
	"context"
	"fmt"
)

// deployment compares whole lives in the deployment that people use, api and
// worker as two processes on one PostgreSQL, with one process that does both.
type deployment struct {
	Payments    int64            `json:"payments"` // of both, in the rounds that count
	Split       spread           `json:"api_and_worker_lives_per_second"`
	One         spread           `json:"one_process_lives_per_second"`
	Ratio       spread           `json:"ratio"`
	SplitMicros lifecycleCosts   `json:"api_and_worker_cpu_us_per_payment"`
	OneMicros   lifecycleCosts   `json:"one_process_cpu_us_per_payment"`
	MemoryBytes map[string]int64 `json:"peak_memory_bytes"`
}

// measureDeployment runs on PostgreSQL only: a file has one process.
func measureDeployment(ctx context.Context, r *engineRun) error {
	if r.db.engine != enginePostgres {
		return nil
	}
	var running processes
	defer running.stop()
	operator, err := running.add(r.in.serveHelper(ctx, "serve-operator"))
	if err != nil {
		return err
	}
	address := "http://" + operator.addr
	one, err := r.newLifecycle(ctx, "one", operator)
	if err != nil {
		return err
	}
	defer one.s.Close()
	if one.till, err = running.add(one.bed.serveOwnTill(ctx, "-operator", address)); err != nil {
		return err
	}
	split, err := r.newLifecycle(ctx, "split", operator)
	if err != nil {
		return err
	}
	defer split.s.Close()
	if split.till, err = running.add(split.bed.serveOwnTill(ctx, "-role", "api", "-operator", address)); err != nil {
		return err
	}
	if split.worker, err = running.add(split.bed.serveOwnTill(ctx, "-role", "worker", "-operator", address)); err != nil {
		return err
	}
	if err := inTurns(ctx, lifecycleTurns*r.rounds, one.round, split.round); err != nil {
		return err
	}
	for _, w := range []*fullLifecycle{one, split} {
		if err := w.till.checkTotal(ctx, w.made); err != nil {
			return err
		}
	}
	r.report.Deployment = &deployment{
		Payments: one.Payments + split.Payments, Split: spreadOf(split.rates), One: spreadOf(one.rates), Ratio: spreadOf(ratios(split.rates, one.rates)),
		SplitMicros: split.costs(), OneMicros: one.costs(),
		MemoryBytes: map[string]int64{"one process": one.till.memory("VmHWM"), "api": split.till.memory("VmHWM"), "worker": split.worker.memory("VmHWM")},
	}
	return nil
}

// print renders the comparison.
func (d *deployment) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "### API and worker as two processes\n\n%d payments. Two processes / one process: **%.2f** (%.2f–%.2f); reported, no goal.\n\n", d.Payments, d.Ratio.Median, d.Ratio.Min, d.Ratio.Max)
	fmt.Fprintf(b, "| side | whole lives/s, median (range) | CPU µs/payment: Till | database | operator | peak memory |\n|---|---|---|---|---|---|\n")
	row := func(name string, s spread, c lifecycleCosts, memory string) {
		fmt.Fprintf(b, "| %s | %.0f (%.0f–%.0f) | %.0f | %.0f | %.0f | %s |\n", name, s.Median, s.Min, s.Max, c.Till, c.Database, c.Operator, memory)
	}
	row("one process", d.One, d.OneMicros, megabytes(d.MemoryBytes["one process"]))
	row("api and worker", d.Split, d.SplitMicros, megabytes(d.MemoryBytes["api"])+" and "+megabytes(d.MemoryBytes["worker"]))
	fmt.Fprintln(b)
}
