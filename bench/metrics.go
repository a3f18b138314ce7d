package main

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// metricsCost is what counting costs: creates and whole lives with metrics, against the
// same without, in turns.
type metricsCost struct {
	Creates     spread         `json:"creates_on_to_off"`
	CreatesCPU  float64        `json:"creates_cpu_on_to_off"` // processor time of Till for each create, off / on
	Lives       spread         `json:"lives_on_to_off"`
	LivesCPU    float64        `json:"lives_cpu_on_to_off"`
	On, Off     figures        `json:"-"`
	OnCosts     lifecycleCosts `json:"lives_cpu_us_on"`
	OffCosts    lifecycleCosts `json:"lives_cpu_us_off"`
	CreatesMade int64          `json:"creates"`
	LivesMade   int64          `json:"lives"`
}

// measureMetrics compares Till with metrics and without. Both are this program's own
// server, on databases of their own.
func measureMetrics(ctx context.Context, r *engineRun) error {
	var running processes
	defer running.stop()
	operator, err := running.add(r.in.serveHelper(ctx, "serve-operator"))
	if err != nil {
		return err
	}
	var creates [2]*contender
	var lives [2]*fullLifecycle
	for i, side := range []struct{ name, off string }{{"on", "false"}, {"off", "true"}} {
		bed, err := r.newTestbed(ctx, "creates-"+side.name)
		if err != nil {
			return err
		}
		p, err := running.add(bed.serveOwnTill(ctx, "-no-metrics="+side.off))
		if err != nil {
			return err
		}
		creates[i] = &contender{name: "creates, metrics " + side.name, servers: []*process{p}, db: r.db}
		creates[i].length = r.length() / createTurns
		if lives[i], err = r.newLifecycle(ctx, "life-"+side.name, operator); err != nil {
			return err
		}
		defer lives[i].s.Close()
		if lives[i].till, err = running.add(lives[i].bed.serveOwnTill(ctx, "-no-metrics="+side.off, "-operator", "http://"+operator.addr)); err != nil {
			return err
		}
	}
	if err := r.runInTurns(ctx, createTurns*r.rounds, creates[0], creates[1]); err != nil {
		return err
	}
	if err := inTurns(ctx, lifecycleTurns*r.rounds, lives[0].round, lives[1].round); err != nil {
		return err
	}
	m := &metricsCost{
		Creates: spreadOf(ratios(creates[0].rates, creates[1].rates)), CreatesCPU: perItem(creates[1].cpu, creates[1].accepted) / perItem(creates[0].cpu, creates[0].accepted),
		Lives: spreadOf(ratios(lives[0].rates, lives[1].rates)), On: creates[0].figures(), Off: creates[1].figures(),
		OnCosts: lives[0].costs(), OffCosts: lives[1].costs(), CreatesMade: creates[0].accepted + creates[1].accepted, LivesMade: lives[0].Payments + lives[1].Payments,
	}
	m.LivesCPU = m.OffCosts.Till / m.OnCosts.Till
	r.report.Metrics = m
	r.logf("metrics on / off: creates %.3f (%.2f–%.2f), by processor time %.3f; lives %.3f (%.2f–%.2f), by processor time %.3f",
		m.Creates.Median, m.Creates.Min, m.Creates.Max, m.CreatesCPU, m.Lives.Median, m.Lives.Min, m.Lives.Max, m.LivesCPU)
	return nil
}

// perItem returns the microseconds for each of n.
func perItem(d time.Duration, n int64) float64 { return float64(d.Microseconds()) / float64(max(1, n)) }

// print renders the comparison.
func (m *metricsCost) print(b *bytes.Buffer) {
	fmt.Fprintf(b, "### Metrics\n\nWith metrics / without, in turns; 0.99 is the goal of the design.\n\n| | rate, median (range) | by processor time of Till |\n|---|---|---|\n")
	fmt.Fprintf(b, "| %d creates | %.3f (%.2f–%.2f) | %.3f |\n", m.CreatesMade, m.Creates.Median, m.Creates.Min, m.Creates.Max, m.CreatesCPU)
	fmt.Fprintf(b, "| %d whole lives | %.3f (%.2f–%.2f) | %.3f |\n\n", m.LivesMade, m.Lives.Median, m.Lives.Min, m.Lives.Max, m.LivesCPU)
}
