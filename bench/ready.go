package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"till/internal/load"
)

// readyStarts is how often Till is started on the large database.
const readyStarts = 5

// topUpStep is how many payments are made between two lines of progress.
const topUpStep = 100_000

// measureReady fills the database up to so many payments and measures how
// long Till takes from the start of its process to its first good answer to
// a request with a key, and how much memory it holds when idle.
func measureReady(ctx context.Context, o options, in *installation, progress io.Writer) (*readiness, error) {
	r := &readiness{}
	var err error
	if r.Payments, err = topUp(ctx, o, in, progress); err != nil {
		return nil, err
	}
	r.DatabaseBytes = in.db.size()
	var times, memory []float64
	for i := range readyStarts {
		p, err := in.serve(ctx, o.role)
		if err != nil {
			return nil, err
		}
		err = p.settle(ctx)
		p.stop()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, "start %d: ready in %.0f ms, %s idle\n", i+1, ms(p.readyIn), megabytes(p.idle))
		times = append(times, ms(p.readyIn))
		memory = append(memory, float64(p.idle))
	}
	r.ReadyMs, r.IdleMemoryBytes = spreadOf(times), spreadOf(memory)
	return r, nil
}

// topUp makes payments until the database has enough, through the API like
// any other, so that the file is what a real one would be.
func topUp(ctx context.Context, o options, in *installation, progress io.Writer) (int64, error) {
	p, err := in.serve(ctx, "api")
	if err != nil {
		return 0, err
	}
	defer p.stop()
	have, err := p.total(ctx, "")
	if err != nil {
		return 0, err
	}
	for have < int64(o.payments) {
		began := time.Now()
		r, err := load.Closed{
			Addr: p.addr, APIKey: p.apiKey, Connections: o.connections,
			Requests: min(topUpStep, o.payments-int(have)),
		}.Run(ctx)
		if err != nil {
			return 0, fmt.Errorf("till: %w%s", err, p.tail())
		}
		have += r.Accepted
		fmt.Fprintf(progress, "%d payments (%.0f/s)\n", have, float64(r.Accepted)/time.Since(began).Seconds())
	}
	return p.total(ctx, "")
}
