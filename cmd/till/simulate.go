package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till/config"
	"till/provider/airtel"
	"till/provider/mpesa"
	"till/provider/mtnmomo"
	"till/provider/pawapay"
	"till/provider/simulator"
	"till/server"
)

// simulation is an operator's side that can be played on this machine.
type simulation struct {
	name string // of the operator, as a configuration names it
	// open returns the operator's side. Its book is kept in a file, or in
	// memory if path is "". An io.Closer is closed at the end.
	open func(f simulator.Faults, path string) (http.Handler, error)
	// settings is what stands in [connection.NAME] for it, and secrets are the
	// variables that the credentials in it come from.
	settings string
	secrets  map[string]string
	// routes are what it serves: a method and its countries.
	routes map[string][]string
}

// simulations are all that can be simulated, the preferred one of a market
// first.
var simulations = []simulation{
	{
		name: "mtnmomo", settings: mtnmomo.SimSettings, secrets: mtnmomo.SimSecrets,
		open: func(f simulator.Faults, path string) (http.Handler, error) {
			return mtnmomo.NewSimulator(mtnmomo.SimConfig{Faults: f, Path: path})
		},
		routes: map[string][]string{"mtn_momo": {"CG"}},
	},
	{
		name: "airtel", settings: airtel.SimSettings, secrets: airtel.SimSecrets,
		open: func(f simulator.Faults, path string) (http.Handler, error) {
			return airtel.NewSimulator(airtel.SimConfig{Faults: f, Path: path})
		},
		routes: map[string][]string{"airtel_money": {"CG"}},
	},
	{
		name: "mpesa", settings: mpesa.SimSettings, secrets: mpesa.SimSecrets,
		open: func(f simulator.Faults, path string) (http.Handler, error) {
			return mpesa.NewSimulator(mpesa.SimConfig{Faults: f, Path: path})
		},
		routes: map[string][]string{"mpesa": {"KE"}},
	},
	{
		name: "pawapay", settings: pawapay.SimSettings, secrets: pawapay.SimSecrets,
		open: func(f simulator.Faults, path string) (http.Handler, error) {
			return pawapay.NewSimulator(pawapay.SimConfig{Faults: f, Path: path})
		},
		routes: map[string][]string{"mtn_momo": {"CG", "CM", "UG", "GH", "RW", "ZM", "CI", "BJ"}, "airtel_money": {"CG", "UG", "ZM", "GA"}},
	},
}

func newSimulate() *cobra.Command { return simulateOf(simulations) }

func simulateOf(all []simulation) *cobra.Command {
	var listen, book string
	var f simulator.Faults
	var asJSON bool
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.name
	}
	cmd := &cobra.Command{
		Use:   "simulate OPERATOR",
		Short: "Play an operator's side",
		Long: `Play an operator's side as an HTTP server, until SIGINT or SIGTERM: its tokens,
its book, its documented test numbers and, by flag, what goes wrong: each fault is
a probability from 0 to 1. It needs no database and can be used by other
software, too.

Operators: ` + strings.Join(names, ", "),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.Index(names, args[0])
			if i < 0 {
				return fmt.Errorf("there is no simulation of %q; there are: %s", args[0], strings.Join(names, ", "))
			}
			if err := checkFaults(f); err != nil {
				return err
			}
			url, done, err := play(cmd.Context(), &all[i], f, book, listen)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), map[string]any{"operator": args[0], "base_url": url})
			} else {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is simulated at %s\n\n%s\nStop with Ctrl-C.\n", args[0], url, all[i].connection(url))
			}
			if err != nil {
				return err
			}
			return done()
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&listen, "listen", "127.0.0.1:9400", "address to serve on; port 0 takes a free one")
	fl.StringVar(&book, "book", "", "the file that the operator keeps its book in (default memory alone)")
	fl.Float64Var(&f.LostRequest, "lost-request", 0, "the connection ends before the operator has read the request")
	fl.Float64Var(&f.LostResponse, "lost-response", 0, "the operator has acted, and the connection ends")
	fl.Float64Var(&f.ServerError, "server-error", 0, "it answers 500 or 503, before or after it has acted")
	fl.Float64Var(&f.LostCallback, "lost-callback", 0, "no callback")
	fl.Float64Var(&f.DuplicateCallback, "duplicate-callback", 0, "the callback comes five times")
	fl.Float64Var(&f.LateSuccess, "late-success", 0, "it fails or expires, and succeeds a little later")
	fl.Float64Var(&f.Slow, "slow", 0, "the answer takes as long as --slow-by")
	fl.DurationVar(&f.SlowBy, "slow-by", 3*time.Second, "how long a slow answer takes")
	fl.BoolVar(&f.Tokens, "fault-tokens", false, "what goes wrong goes wrong with tokens, too")
	fl.Uint64Var(&f.Seed, "seed", 0, "makes what goes wrong the same each time")
	fl.BoolVar(&asJSON, "json", false, "print one line of JSON when ready")
	return cmd
}

func checkFaults(f simulator.Faults) error {
	for _, p := range []float64{f.LostRequest, f.LostResponse, f.ServerError, f.LostCallback, f.DuplicateCallback, f.LateSuccess, f.Slow} {
		if p < 0 || p > 1 {
			return errors.New("a fault is a probability from 0 to 1")
		}
	}
	return nil
}

// connection is the configuration of a connection to the simulation.
func (s *simulation) connection(url string) string {
	return fmt.Sprintf("[[connection]]\nname = %q\noperator = %q\nbase_url = %q\n[connection.%s]\n%s\n", s.name, s.name, url, s.name, strings.TrimSpace(s.settings))
}

// play serves a simulation until ctx ends. done waits for the end.
func play(ctx context.Context, s *simulation, f simulator.Faults, book, listen string) (url string, done func() error, err error) {
	h, err := s.open(f, book)
	if err != nil {
		return "", nil, err
	}
	finish := func() error {
		if c, ok := h.(io.Closer); ok {
			return c.Close()
		}
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return "", nil, errors.Join(err, finish())
	}
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(l) }()
	return "http://" + l.Addr().String(), func() error {
		var err error
		select {
		case err = <-failed:
		case <-ctx.Done():
		}
		return errors.Join(err, web.Close(), finish())
	}, nil
}

// simulateAll plays every operator and writes connections and routes to them
// into a server's configuration.
func simulateAll(ctx context.Context, how string, all []simulation, adapters server.Adapters, c *server.Config) (stop func(), err error) {
	if how != "simulated" {
		return nil, fmt.Errorf("--operators is simulated or nothing, not %q", how)
	}
	ctx, cancel := context.WithCancel(ctx)
	var ends []func() error
	stop = func() {
		cancel()
		for _, end := range ends {
			_ = end() // they are simulations
		}
	}
	var text strings.Builder
	secrets := map[string]string{}
	ways := map[[2]string][]string{}
	var order [][2]string
	for i := range all {
		s := &all[i]
		url, done, err := play(ctx, s, simulator.Faults{}, "", "127.0.0.1:0")
		if err != nil {
			stop()
			return nil, fmt.Errorf("simulate %s: %w", s.name, err)
		}
		ends = append(ends, done)
		text.WriteString(s.connection(url))
		for k, v := range s.secrets {
			secrets[k] = v
		}
		for method, countries := range s.routes {
			for _, country := range countries {
				way := [2]string{method, country}
				if ways[way] == nil {
					order = append(order, way)
				}
				ways[way] = append(ways[way], s.name)
			}
		}
	}
	for _, way := range order {
		fmt.Fprintf(&text, "[[route]]\nmethod = %q\ncountries = [%q]\nconnections = [\"%s\"]\n", way[0], way[1], strings.Join(ways[way], `", "`))
	}
	o := adapters.Options()
	o.Env = func(name string) (string, bool) { v, ok := secrets[name]; return v, ok }
	if c.Operators, err = config.Parse("(simulated operators)", []byte(text.String()), o); err != nil {
		stop()
		return nil, err
	}
	c.Adapters = adapters
	return stop, nil
}
