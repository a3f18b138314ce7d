package main

import "context"

// smallRows is how many payments the small database has at first.
const smallRows = 10_000

// measureGrowth compares creates in the large database with creates in a small
// one. The small one grows meanwhile, so its rounds are short.
func measureGrowth(ctx context.Context, r *engineRun) error {
	large, err := r.largeTestbed(ctx)
	if err != nil {
		return err
	}
	small, err := r.newTestbed(ctx, "small")
	if err != nil {
		return err
	}
	if _, err := small.seed(ctx, smallRows, r.logf); err != nil {
		return err
	}
	var running processes
	defer running.stop()
	sides := []*contender{{name: "small database"}, {name: "large database"}}
	for i, s := range []*testbed{small, large} {
		p, err := running.add(s.serve(ctx, "till"))
		if err != nil {
			return err
		}
		sides[i].servers, sides[i].db, sides[i].length = []*process{p}, r.db, r.length()/2
	}
	if err := r.runInTurns(ctx, r.rounds, sides...); err != nil {
		return err
	}
	// Cost is the inverse of the rate.
	r.record(goalScale, ratios(sides[0].rates, sides[1].rates))
	for i, before := range []int64{smallRows, r.rows} {
		r.report.Scale = append(r.report.Scale, sides[i].figures())
		if err := sides[i].servers[0].checkTotal(ctx, before+sides[i].sent); err != nil {
			return err
		}
	}
	return nil
}
