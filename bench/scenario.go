package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// scenario is one piece of the benchmark. Each has a file of its own; a new
// one needs an entry here, and one in the table of goals for each ratio.
type scenario struct {
	name    string
	measure func(ctx context.Context, r *engineRun) error
}

// scenarios are all, in the order in which they run.
var scenarios = []scenario{
	{"creates", measureCreates},       // many connections: against a handler that stores nothing, batches of one, two instances
	{"alone", measureSingleCreate},    // one create at a time, against a flush of the disk
	{"settle", measureSettle},         // one hot client: many answers in a commit, against one
	{"life", measureLifecycle},        // from create to credited wallet, with an operator in another process
	{"deployment", measureDeployment}, // the same with api and worker as two processes, on PostgreSQL
	{"metrics", measureMetrics},       // creates and whole lives with metrics, against without
	{"operators", measureOperators},   // submits to a slow operator; questions to one while another is down
	{"webhooks", measureWebhooks},     // a backlog to a receiver in another process, an idle system, a dead endpoint, creates with endpoints
	{"floods", measureFloods},         // one client while somebody tries out keys, and while another sends all it can
	{"traces", measureTraces},         // creates with traces of 1 %, against none
	{"citus", measureCitus},           // a distributed database, against one on a single PostgreSQL
	{"lists", measureLists},           // pages of a long list, against count(*) and OFFSET
	{"busy-hour", measureBusyHour},    // pages deep inside an hour with 300 000 payments
	{"refunds", measureRefunds},       // refunds against payouts: creates, verify; pages of payments with what went back of each
	{"pages", measurePages},           // pages that customers pay on: reads, forms, creates beside pages that wait
	{"console", measureConsole},       // the console's pages, creates beside 50 open tabs, starts with it and without
	{"scale", measureGrowth},          // creates in a large database, against a small one
	{"ready", measureStartup},         // starts on a large database
	{"reconcile", measureReconcile},   // a statement of a million lines; the last, because it adds to the large database
}

func scenarioNames() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// engineRun is a run on one engine: what its scenarios share.
type engineRun struct {
	options
	in     *installation
	db     *database
	report *engineReport
	out    io.Writer

	seeded   *testbed   // the large database, once somebody asked for it
	testbeds []*testbed // those of the scenario that runs
}

// measureEngine runs the scenarios on one engine.
func measureEngine(ctx context.Context, o options, in *installation, engine string, out io.Writer) (*engineReport, error) {
	db, err := openDatabase(ctx, engine, in.dir)
	if err != nil {
		return nil, err
	}
	defer db.close()
	r := &engineRun{options: o, in: in, db: db, out: out, report: &engineReport{Engine: engine}}
	for _, s := range scenarios {
		if len(o.only) > 0 && !slices.Contains(o.only, s.name) {
			continue
		}
		began := time.Now()
		fmt.Fprintf(out, "== %s on %s\n", s.name, engineNames[engine])
		if err := s.measure(ctx, r); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		if err := r.clear(ctx); err != nil {
			return nil, fmt.Errorf("clear up after %s: %w", s.name, err)
		}
		fmt.Fprintf(out, "   %.0f s\n", time.Since(began).Seconds())
	}
	return r.report, nil
}

// clear removes what a scenario leaves behind, but for the large database: a
// server has work for minutes with tables that were filled, and would do it
// while the next scenario is measured.
func (r *engineRun) clear(ctx context.Context) error {
	for _, s := range r.testbeds {
		if s == r.seeded {
			continue
		}
		if err := s.remove(ctx); err != nil {
			return err
		}
	}
	r.testbeds = nil
	return r.db.checkpoint(ctx)
}

// logf prints the progress of the run.
func (r *engineRun) logf(format string, args ...any) { fmt.Fprintf(r.out, "   "+format+"\n", args...) }

// record records a ratio of the table, with its rounds.
func (r *engineRun) record(goal string, rounds []float64) {
	r.report.Measures = append(r.report.Measures, measure{Goal: goal, Rounds: len(rounds), Found: spreadOf(rounds)})
}

// inTurns runs a round of each side that does not count, because caches fill
// and heaps grow to their size, then so many that do. Sides take turns because
// a machine's speed drifts: only figures of one round compare.
func inTurns(ctx context.Context, rounds int, sides ...func(ctx context.Context, counts bool) error) error {
	for round := range rounds + 1 {
		for _, side := range sides {
			if err := side(ctx, round > 0); err != nil {
				return err
			}
		}
	}
	return nil
}
