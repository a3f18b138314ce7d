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
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"till/internal/dev/loadgen"
)

// options are the flags.
type options struct {
	rounds      int
	seconds     float64
	connections int
	rows        int64
	only        []string
	report      string
	engines     []string
	dir         string
	till        string
	plain       string // URL of an empty database on one PostgreSQL, for the scenario citus
	citus       string // and of one on a cluster
	command     string // the call to repeat, without the flags that name a place
}

// length is that of a round.
func (o *options) length() time.Duration { return time.Duration(o.seconds * float64(time.Second)) }

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
	if len(args) > 0 {
		if serve := helperServers[args[0]]; serve != nil {
			return serve(untilOrphaned(ctx), args[1:])
		}
	}
	o, err := parseOptions(args)
	if err != nil {
		return err
	}

	// One thread is plenty for the generator; a second would only look for
	// work on the core that the server needs.
	runtime.GOMAXPROCS(1)

	in, err := install(ctx, o)
	if err != nil {
		return err
	}
	defer in.remove()
	r := newReport(o)
	began := time.Now()
	for _, engine := range o.engines {
		e, err := measureEngine(ctx, o, in, engine, out)
		if err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
		r.Engines = append(r.Engines, e)
	}
	r.Minutes = time.Since(began).Minutes()
	fmt.Fprintf(out, "\n%s", r.tables())
	if o.report != "" {
		return r.write("bench", o.report)
	}
	return nil
}

var reportName = regexp.MustCompile(`^[a-z0-9-]*$`)

func parseOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 5, "rounds that count, of each side")
	f.Float64Var(&o.seconds, "seconds", 3, "length of a round")
	f.IntVar(&o.connections, "connections", 64, "connections that ask at once")
	f.Int64Var(&o.rows, "rows", 1_000_000, "payments of the client whose list is measured")
	engine := f.String("engine", "both", "sqlite, postgres or both")
	only := f.String("only", "", "scenarios to run, with commas between them: "+strings.Join(scenarioNames(), ", ")+" (default all)")
	f.StringVar(&o.report, "report", "", "name of the report to write into bench/, such as report (default: only print it)")
	f.StringVar(&o.dir, "dir", "", "folder to make the run's own folder in (default bench/out)")
	f.StringVar(&o.till, "till", "", "program to measure (default: built from ./cmd/till)")
	f.StringVar(&o.plain, "plain", "", "for the scenario citus: URL of an empty database on one PostgreSQL (default: citus is left out)")
	f.StringVar(&o.citus, "citus", "", "and URL of the coordinator's empty database of a Citus cluster")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	if err := o.check(f); err != nil {
		return o, err
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
		if fl.Name != "dir" && fl.Name != "till" && fl.Name != "plain" && fl.Name != "citus" {
			command = append(command, "-"+fl.Name+"="+fl.Value.String())
		}
	})
	o.command = strings.Join(command, " ")
	return o, nil
}

// check refuses what has no bounds or makes no sense.
func (o *options) check(f *flag.FlagSet) error {
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.rounds < 1 || o.rounds > 100 || o.seconds <= 0 || o.seconds > 60:
		return errors.New("-rounds must be 1 to 100 and -seconds more than 0 and at most 60")
	case o.connections < 2 || o.connections > loadgen.MaxConnections:
		return fmt.Errorf("-connections must be 2 to %d", loadgen.MaxConnections)
	case o.rows < smallRows || o.rows > loadgen.MaxRequests:
		return fmt.Errorf("-rows must be %d to %d", smallRows, loadgen.MaxRequests)
	case (o.plain == "") != (o.citus == ""):
		return errors.New("-plain and -citus go together")
	case !reportName.MatchString(o.report):
		return errors.New("-report is a name of small letters and digits")
	}
	for _, name := range o.only {
		if !slices.Contains(scenarioNames(), name) {
			return fmt.Errorf("-only: there is no scenario %q; there are %s", name, strings.Join(scenarioNames(), ", "))
		}
	}
	return nil
}
