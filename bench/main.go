package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"till/internal/load"
)

// options are the flags.
type options struct {
	rounds      int
	seconds     float64
	connections int
	role        string
	ready       bool
	payments    int
	lists       bool
	rows        int
	seed        int
	report      bool
	engines     []string
	dir         string
	till        string
	command     string // the call to repeat, without the flags that name a place
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 2 && args[0] == "base" {
		return serveBase(ctx, args[1])
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}

	// One thread is plenty for the generator; a second would only look for
	// work on the core that the server needs.
	runtime.GOMAXPROCS(1)

	r := newReport(o)
	for _, engine := range o.engines {
		fmt.Fprintf(out, "== %s\n", engine)
		e, err := runEngine(ctx, o, engine, out)
		if err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
		r.Engines = append(r.Engines, e)
	}
	fmt.Fprintf(out, "\n%s", r.tables())
	if o.report {
		return r.write("bench")
	}
	return nil
}

// runEngine measures everything that the flags ask for on one engine.
func runEngine(ctx context.Context, o options, engine string, out io.Writer) (*engineReport, error) {
	in, err := install(ctx, o, engine)
	if err != nil {
		return nil, err
	}
	defer in.remove()
	e := &engineReport{Engine: engine}
	if o.lists {
		e.Lists, err = measureLists(ctx, o, in, out)
		return e, err
	}
	if o.seed > 0 {
		if err := in.seedFirst(ctx, int64(o.seed), out); err != nil {
			return nil, err
		}
	}
	if e.Comparison, err = compare(ctx, o, in, out); err != nil {
		return nil, err
	}
	if o.ready {
		e.Readiness, err = measureReady(ctx, o, in, out)
	}
	return e, err
}

func parseOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 5, "rounds per server that count")
	f.Float64Var(&o.seconds, "seconds", 3, "length of a round")
	f.IntVar(&o.connections, "connections", 64, "connections that ask at once")
	f.StringVar(&o.role, "role", "api", "role of till serve: api, or all to have the sandbox working behind")
	f.BoolVar(&o.ready, "ready", false, "also measure starts on a large database")
	f.IntVar(&o.payments, "payments", 1_000_000, "payments in the large database")
	f.BoolVar(&o.lists, "lists", false, "measure pages of a long list instead of creates")
	f.IntVar(&o.rows, "rows", 1_000_000, "payments of the client whose list is measured")
	f.IntVar(&o.seed, "seed", 0, "payments in the database before creates are measured")
	engine := f.String("engine", engineSQLite, "sqlite, postgres or both")
	f.BoolVar(&o.report, "report", false, "write the report into bench/")
	f.StringVar(&o.dir, "dir", "", "folder of the database, kept and used again (default: a new one under bench/out, removed)")
	f.StringVar(&o.till, "till", "", "program to measure (default: built from ./cmd/till)")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.rounds < 1 || o.rounds > 100 || o.seconds <= 0 || o.seconds > load.MaxTime.Seconds():
		return o, fmt.Errorf("-rounds must be 1 to 100 and -seconds more than 0 and at most %.0f", load.MaxTime.Seconds())
	case o.connections < 1 || o.connections > load.MaxConnections:
		return o, fmt.Errorf("-connections must be 1 to %d", load.MaxConnections)
	case o.payments < 1 || o.payments > load.MaxRequests:
		return o, fmt.Errorf("-payments must be 1 to %d", load.MaxRequests)
	case o.rows < 1000 || o.rows > load.MaxRequests:
		return o, fmt.Errorf("-rows must be 1000 to %d", load.MaxRequests)
	case o.seed < 0 || o.seed > load.MaxRequests:
		return o, fmt.Errorf("-seed must be 0 to %d", load.MaxRequests)
	case o.role != "api" && o.role != "all":
		return o, fmt.Errorf("-role must be api or all")
	}
	var err error
	if o.engines, err = enginesOf(*engine); err != nil {
		return o, err
	}
	if o.till != "" {
		if o.till, err = filepath.Abs(o.till); err != nil {
			return o, err
		}
	}
	command := []string{"go run ./bench"}
	f.Visit(func(fl *flag.Flag) {
		if fl.Name != "dir" && fl.Name != "till" {
			command = append(command, "-"+fl.Name+"="+fl.Value.String())
		}
	})
	o.command = strings.Join(command, " ")
	return o, nil
}
