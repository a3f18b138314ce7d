package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

const (
	citusShards  = 8
	citusClients = 16
)

// measureCitus compares a distributed database with one on a single PostgreSQL, in turns:
// whole lives of one client, creates of one client, and creates of many. Who measures brings
// both, empty: they should be on servers with the same settings and on the same cores.
func measureCitus(ctx context.Context, r *engineRun) error {
	if r.citus == "" || r.db.engine != enginePostgres {
		return nil
	}
	plain, err := r.newTestbedAt(ctx, "plain", r.plain)
	if err != nil {
		return err
	}
	spread, err := r.newTestbedAt(ctx, "citus", r.citus)
	if err != nil {
		return err
	}
	if _, err := r.in.till(ctx, "migrate", "--database", r.citus, "--citus", "--shards", strconv.Itoa(citusShards)); err != nil {
		return err
	}
	// Lives come first: creates leave payments that nobody has worked on.
	if err := r.livesOnCitus(ctx, plain, spread); err != nil {
		return err
	}
	return r.createsOnCitus(ctx, plain, spread)
}

// newTestbedAt is newTestbed in a database that is there. It is not removed.
func (r *engineRun) newTestbedAt(ctx context.Context, name, url string) (*testbed, error) {
	s := &testbed{in: r.in, db: r.db, name: name, dir: filepath.Join(r.in.dir, "at-"+name), url: url}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	if _, err := s.in.till(ctx, "migrate", "--database", s.url); err != nil {
		return nil, err
	}
	var err error
	_, s.apiKey, err = s.newClient(ctx, "bench")
	return s, err
}

func (r *engineRun) livesOnCitus(ctx context.Context, beds ...*testbed) error {
	var running processes
	defer running.stop()
	operator, err := running.add(r.in.serveHelper(ctx, "serve-operator"))
	if err != nil {
		return err
	}
	var sides []*fullLifecycle
	for _, bed := range beds {
		s, err := bed.open(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		w := &fullLifecycle{r: r, name: bed.name, bed: bed, s: s, operator: operator}
		if w.till, err = running.add(bed.serveOwnTill(ctx, "-operator", "http://"+operator.addr)); err != nil {
			return err
		}
		sides = append(sides, w)
	}
	if err := inTurns(ctx, r.rounds, sides[0].round, sides[1].round); err != nil {
		return err
	}
	r.record(goalCitusLife, ratios(sides[1].rates, sides[0].rates))
	return nil
}

func (r *engineRun) createsOnCitus(ctx context.Context, beds ...*testbed) error {
	var running processes
	defer running.stop()
	var one, many []*contender
	for _, bed := range beds {
		p, err := running.add(bed.serve(ctx, bed.name))
		if err != nil {
			return err
		}
		all := &contender{name: fmt.Sprintf("%s, %d clients", bed.name, citusClients), length: r.length()}
		for i := range citusClients {
			_, key, err := bed.newClient(ctx, fmt.Sprint("bench ", i))
			if err != nil {
				return err
			}
			server := *p
			server.apiKey = key
			all.servers = append(all.servers, &server)
		}
		one, many = append(one, &contender{name: bed.name + ", 1 client", servers: []*process{p}}), append(many, all)
	}
	if err := r.runInTurns(ctx, r.rounds, one[0], one[1], many[0], many[1]); err != nil {
		return err
	}
	r.record(goalCitusCreate, ratios(one[1].rates, one[0].rates))
	r.record(goalCitusMany, ratios(many[1].rates, many[0].rates))
	for _, s := range append(one, many...) {
		r.report.Creates = append(r.report.Creates, s.figures())
	}
	return nil
}
