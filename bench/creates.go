package main

import (
	"context"
	"fmt"
)

// createTurns is how many times as often the sides of creates take turns, many at
// once or one, and how much shorter: so many that are only as long as a shared
// machine keeps its speed.
const createTurns = 3

// measureCreates loads servers with creates over many connections, in turns: a
// handler that stores nothing, Till with batches of one, Till, and on
// PostgreSQL two instances of it. These have a database of their own: a single
// instance that finds another's writes at the beginning of each turn would take
// itself for one of two. Each database must then have a payment for each answer
// 202, no more and no fewer.
func measureCreates(ctx context.Context, r *engineRun) error {
	var running processes
	defer running.stop()
	base, err := running.add(r.in.serveBase(ctx))
	if err != nil {
		return err
	}
	single, err := r.newTestbed(ctx, "single")
	if err != nil {
		return err
	}
	one, err := running.add(single.serveOwnTill(ctx, "-batch", "1"))
	if err != nil {
		return err
	}
	main, err := r.newTestbed(ctx, "creates")
	if err != nil {
		return err
	}
	till, err := running.add(main.serve(ctx, "till"))
	if err != nil {
		return err
	}
	all := &contender{name: "till", servers: []*process{till}, db: r.db}
	sides := []*contender{{name: "nothing stored", servers: []*process{base}}, {name: "batches of one", servers: []*process{one}, db: r.db}, all}
	if r.db.engine == enginePostgres {
		shared, err := r.newTestbed(ctx, "shared")
		if err != nil {
			return err
		}
		both := &contender{name: "two instances", db: r.db}
		for _, name := range []string{"first of two", "second of two"} {
			p, err := running.add(shared.serve(ctx, name))
			if err != nil {
				return err
			}
			both.servers = append(both.servers, p)
		}
		sides = append(sides, both)
	}
	for _, s := range sides {
		s.length = r.length() / createTurns
	}
	if err := r.runInTurns(ctx, createTurns*r.rounds, sides...); err != nil {
		return err
	}

	r.record(goalCreate, ratios(all.rates, sides[0].rates))
	r.record(goalBatch, ratios(all.rates, sides[1].rates))
	if len(sides) > 3 {
		r.record(goalInstances, ratios(sides[3].rates, all.rates))
	}
	for _, s := range sides {
		r.report.Creates = append(r.report.Creates, s.figures())
	}
	r.record(goalMemory, []float64{float64(till.memory("VmHWM")) / 1e6})
	for _, s := range sides[1:] {
		if err := s.servers[0].checkTotal(ctx, s.sent); err != nil {
			return err
		}
	}
	return nil
}

// runInTurns lets sides take so many turns over the run's connections.
func (r *engineRun) runInTurns(ctx context.Context, n int, sides ...*contender) error {
	var rounds []func(context.Context, bool) error
	for _, s := range sides {
		s.say = r.logf
		if s.connections == 0 {
			s.connections = r.connections
		}
		if s.length == 0 {
			s.length = r.length()
		}
		rounds = append(rounds, s.round)
	}
	return inTurns(ctx, n, rounds...)
}

// checkTotal checks that the list has as many payments as were accepted.
func (p *process) checkTotal(ctx context.Context, want int64) error {
	got, err := p.total(ctx, "")
	if err == nil && got != want {
		err = fmt.Errorf("%s: the list counts %d payments; the answers 202 make it %d", p.name, got, want)
	}
	return err
}
