package main

import (
	"context"
	"fmt"
	"time"

	"till/bench/seed"
	"till/internal/dev/loadgen"
	"till/store"
)

const (
	lifecycleTimeout      = 2 * time.Minute       // for the last payment of a round to succeed
	lifecyclePollInterval = 50 * time.Millisecond // between two checks whether it has
)

// lifecycle is what whole lives of payments take: created, submitted, checked,
// succeeded, credited, delivered.
type lifecycle struct {
	Payments        int64          `json:"payments"`
	PerSec          spread         `json:"lives_per_second"`
	LoadShare       spread         `json:"share_of_time_under_load"` // the rest is waiting for the last to succeed
	Creates         figures        `json:"creates_only"`
	PeakMemoryBytes int64          `json:"peak_memory_bytes"`
	Micros          lifecycleCosts `json:"cpu_us_per_payment"`

	// What one payment leaves behind and has written.
	DatabaseBytes float64          `json:"database_bytes_per_payment"`
	LogBytes      float64          `json:"log_bytes_per_payment,omitempty"` // of PostgreSQL
	WrittenBytes  float64          `json:"written_bytes_per_payment"`       // by Till's process to the disk, 0 where unknown
	Tables        []seed.TableSize `json:"tables"`
}

type lifecycleCosts struct {
	Till     float64 `json:"till"`
	Database float64 `json:"database"`
	Operator float64 `json:"operator"`
}

// lifecycleTurns is how many times as often lives and creates take turns: on a shared
// machine one round differs much from the next. lifeLength is how many times as
// long a turn is: each ends with waiting for the last lives while the rest of
// the machine has nothing to do, and that must not count for much.
const (
	lifecycleTurns       = 2
	lifecycleRoundFactor = 2
)

// measureLifecycle compares whole lives with creates alone. The operator is a
// process of its own that decides at once.
func measureLifecycle(ctx context.Context, r *engineRun) error {
	var running processes
	defer running.stop()
	operator, err := running.add(r.in.serveHelper(ctx, "serve-operator"))
	if err != nil {
		return err
	}
	w, err := r.newLifecycle(ctx, "life", operator)
	if err != nil {
		return err
	}
	defer w.s.Close()
	if w.till, err = running.add(w.bed.serveOwnTill(ctx, "-operator", "http://"+operator.addr)); err != nil {
		return err
	}
	other, err := r.newTestbed(ctx, "births")
	if err != nil {
		return err
	}
	plain, err := running.add(other.serve(ctx, "till"))
	if err != nil {
		return err
	}
	creates := &contender{name: "creates only", servers: []*process{plain}, db: r.db, connections: r.connections, length: lifecycleRoundFactor * r.length(), say: r.logf}
	if err := inTurns(ctx, lifecycleTurns*r.rounds, creates.round, w.round); err != nil {
		return err
	}
	r.record(goalLife, ratios(w.rates, creates.rates))
	r.record(goalLifeMemory, []float64{float64(w.till.memory("VmHWM")) / 1e6})
	l := &w.lifecycle
	l.PerSec, l.LoadShare, l.Creates, l.PeakMemoryBytes = spreadOf(w.rates), spreadOf(w.shares), creates.figures(), w.till.memory("VmHWM")
	n := float64(max(l.Payments, 1))
	l.LogBytes, l.WrittenBytes = float64(w.log)/n, float64(w.written)/n
	l.Micros = w.costs()
	r.report.Life = l

	// Only a clean stop brings the write-ahead log home into the file.
	if err := w.till.checkTotal(ctx, w.made); err != nil {
		return err
	}
	w.till.stop()
	l.Tables, err = seed.Sizes(ctx, w.s)
	for _, t := range l.Tables {
		l.DatabaseBytes += float64(t.Bytes) / float64(max(w.made, 1))
	}
	return err
}

// fullLifecycle is the contender that runs payments from create to credited wallet.
type fullLifecycle struct {
	r              *engineRun
	name           string
	bed            *testbed
	s              *store.Store
	till, operator *process
	worker         *process // nil: till also works

	lifecycle
	rates, shares              []float64
	made                       int64 // in all rounds, the warm-up included
	log, written               int64
	cpu, database, operatorCPU time.Duration
}

// newLifecycle makes a database for whole lives; its servers are the caller's to start.
func (r *engineRun) newLifecycle(ctx context.Context, name string, operator *process) (*fullLifecycle, error) {
	bed, err := r.newTestbed(ctx, name)
	if err != nil {
		return nil, err
	}
	s, err := bed.open(ctx)
	return &fullLifecycle{r: r, name: name, bed: bed, s: s, operator: operator}, err
}

// tillCPU is the CPU time of Till's processes.
func (w *fullLifecycle) tillCPU() time.Duration {
	if w.worker == nil {
		return w.till.cpu()
	}
	return w.till.cpu() + w.worker.cpu()
}

// costs are those of one payment.
func (w *fullLifecycle) costs() lifecycleCosts {
	n := float64(max(w.Payments, 1))
	return lifecycleCosts{micros(w.cpu) / n, micros(w.database) / n, micros(w.operatorCPU) / n}
}

// round makes payments for some time and waits until the last has succeeded.
func (w *fullLifecycle) round(ctx context.Context, counts bool) error {
	log, err := seed.LogBytes(ctx, w.s)
	if err != nil {
		return err
	}
	cpu, database, operator, written := w.tillCPU(), w.r.db.cpu(), w.operator.cpu(), w.till.written()
	began := time.Now()
	res, err := loadgen.Closed{Addr: w.till.addr, APIKey: w.till.apiKey, Connections: w.r.connections, Duration: lifecycleRoundFactor * w.r.length()}.Run(ctx)
	w.made += res.Accepted
	if err == nil {
		err = w.till.awaitSuccess(ctx, w.made)
	}
	if err != nil {
		return fmt.Errorf("%w%s", err, w.till.tail())
	}
	took := time.Since(began)
	if !counts {
		return nil
	}
	after, err := seed.LogBytes(ctx, w.s)
	if err != nil {
		return err
	}
	w.cpu += w.tillCPU() - cpu
	w.database += w.r.db.cpu() - database
	w.operatorCPU += w.operator.cpu() - operator
	w.log += after - log
	w.written += w.till.written() - written
	w.Payments += res.Accepted
	w.rates = append(w.rates, float64(res.Accepted)/took.Seconds())
	w.shares = append(w.shares, res.Elapsed.Seconds()/took.Seconds())
	w.r.logf("%-28s %8.0f/s, the last %.1f s after the load", "whole lives: "+w.name, w.rates[len(w.rates)-1], (took - res.Elapsed).Seconds())
	return nil
}

// awaitSuccess returns when so many payments have succeeded.
func (p *process) awaitSuccess(ctx context.Context, want int64) error {
	for end := time.Now().Add(lifecycleTimeout); ; {
		n, err := p.total(ctx, "&status=success")
		switch {
		case err != nil || n == want:
			return err
		case time.Now().After(end):
			return fmt.Errorf("%d of %d payments have succeeded after %v", n, want, lifecycleTimeout)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lifecyclePollInterval):
		}
	}
}
