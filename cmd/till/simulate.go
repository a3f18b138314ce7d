package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/config"
	"till/operators"
	"till/provider/airtel"
	"till/provider/mpesa"
	"till/provider/mtnmomo"
	"till/provider/pawapay"
	"till/provider/simulator"
	"till/server"
)

// simulation is an operator that can be simulated.
type simulation struct {
	name string // of the operator, as a configuration names it
	// open returns the simulated operator. Its book is a file, or memory if
	// path is "". callbackURL is the address of its portal, "" for none;
	// requests may have addresses of their own. An io.Closer is closed at the
	// end.
	open func(f simulator.Faults, path, callbackURL string) (http.Handler, error)
	// settings is the text of [connection.NAME], and secrets are the
	// environment variables of its credentials.
	settings string
	secrets  map[string]string
	// routes are the methods and countries that it serves.
	routes map[string][]string
}

// simulations are all simulated operators, the preferred one of a market
// first.
var simulations = []simulation{
	{
		name: "mtnmomo", settings: mtnmomo.SimSettings, secrets: mtnmomo.SimSecrets,
		open: func(f simulator.Faults, path, _ string) (http.Handler, error) {
			return mtnmomo.NewSimulator(mtnmomo.SimConfig{Faults: f, Path: path})
		},
		routes: map[string][]string{"mtn_momo": {"CG"}},
	},
	{
		name: "airtel", settings: airtel.SimSettings, secrets: airtel.SimSecrets,
		open: func(f simulator.Faults, path, callbackURL string) (http.Handler, error) {
			return airtel.NewSimulator(airtel.SimConfig{Faults: f, Path: path, CallbackURL: callbackURL})
		},
		routes: map[string][]string{"airtel_money": {"CG"}},
	},
	{
		name: "mpesa", settings: mpesa.SimSettings, secrets: mpesa.SimSecrets,
		open: func(f simulator.Faults, path, _ string) (http.Handler, error) {
			return mpesa.NewSimulator(mpesa.SimConfig{Faults: f, Path: path})
		},
		routes: map[string][]string{"mpesa": {"KE"}},
	},
	{
		name: "pawapay", settings: pawapay.SimSettings, secrets: pawapay.SimSecrets,
		open: func(f simulator.Faults, path, callbackURL string) (http.Handler, error) {
			return pawapay.NewSimulator(pawapay.SimConfig{Faults: f, Path: path, DepositCallback: callbackURL, PayoutCallback: callbackURL, RefundCallback: callbackURL})
		},
		routes: map[string][]string{
			"mtn_momo":     {"CG", "CM", "UG", "GH", "RW", "ZM", "CI", "BJ", "NG"},
			"airtel_money": {"CG", "UG", "ZM", "GA"},
			"orange_money": {"CM", "CI", "SN"},
			"moov_money":   {"BJ", "BF"},
		},
	},
}

func newSimulate() *cobra.Command { return simulateOf(simulations) }

func simulateOf(all []simulation) *cobra.Command {
	var listen, book, callbackURL string
	var f simulator.Faults
	var asJSON bool
	var markets []string
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.name
	}
	cmd := &cobra.Command{
		Use:   "simulate OPERATOR",
		Short: "Simulate an operator's side",
		Long: `Simulate an operator as an HTTP server, until SIGINT or SIGTERM: its tokens, its
book and its documented test numbers. Use it to test against an operator without
an account. It needs no database, and other software can use it too. Flags make
calls fail: each fault is a probability from 0 to 1.

Operators: ` + strings.Join(names, ", "),
		Example: `  till simulate mtnmomo --lost-response 0.1`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.Index(names, args[0])
			if i < 0 {
				return fmt.Errorf("there is no simulation of %q; there are: %s", args[0], strings.Join(names, ", "))
			}
			if err := checkFaults(f); err != nil {
				return err
			}
			st, err := startSimulator(cmd.Context(), &all[i], listen)
			if err != nil {
				return err
			}
			url := st.url
			if err := errors.Join(st.begin(f, book, callbackURL), st.setMarkets(markets)); err != nil {
				return errors.Join(err, st.end())
			}
			if asJSON {
				err = cli.PrintJSON(cmd.OutOrStdout(), cli.Object{"base_url", url, "operator", args[0]})
			} else {
				_, err = cli.Printf(cmd.OutOrStdout(), simulated, args[0], url, cli.TrustedText(all[i].connection(url)), cli.TrustedText(all[i].exports()), cli.TrustedText(all[i].ways()))
			}
			if err != nil {
				return errors.Join(err, st.end())
			}
			return st.wait(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&listen, "listen", "127.0.0.1:9400", "address to serve on; port 0 takes a free one")
	fl.StringVar(&book, "book", "", "the file that keeps the operator's book (default none, memory only)")
	fl.StringVar(&callbackURL, "callback-url", "", "the callback address of the operator's portal, for operators that call one address for all payments")
	fl.Float64Var(&f.LostRequest, "lost-request", 0, "probability that the connection ends before the operator reads the request (default 0)")
	fl.Float64Var(&f.LostResponse, "lost-response", 0, "probability that the connection ends after the operator acted (default 0)")
	fl.Float64Var(&f.ServerError, "server-error", 0, "probability of an answer 500 or 503, before or after the operator acted (default 0)")
	fl.Float64Var(&f.LostCallback, "lost-callback", 0, "probability that no callback is sent (default 0)")
	fl.Float64Var(&f.DuplicateCallback, "duplicate-callback", 0, "probability that the callback is sent five times (default 0)")
	fl.Float64Var(&f.LateSuccess, "late-success", 0, "probability that a payment fails or expires and succeeds a little later (default 0)")
	fl.Float64Var(&f.Slow, "slow", 0, "probability that an answer takes as long as --slow-by (default 0)")
	fl.DurationVar(&f.SlowBy, "slow-by", 3*time.Second, "how long a slow answer takes")
	fl.StringArrayVar(&markets, "market", nil, "what the account may do, of an operator that says so: \"PROVIDER OPERATION STATUS\" or \"PROVIDER OPERATION MIN-MAX\"; repeatable (default everything)")
	fl.BoolVar(&f.Tokens, "fault-tokens", false, "also apply the faults to calls for tokens")
	fl.Uint64Var(&f.Seed, "seed", 0, "makes the faults the same in each run (default 0, other faults in each run)")
	fl.BoolVar(&asJSON, "json", false, "print one line of JSON when ready")
	return cmd
}

// simulated is what the command prints when the operator is ready.
const simulated = `%[1]s is simulated at %[2]s

Its credentials, for whoever runs 'till serve' and 'till doctor':

%[4]s
In the file that they read with --config:

%[3]s
%[5]s
Stop with Ctrl-C.
`

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

// exports sets the variables of its credentials in a shell. They are valid
// only here.
func (s *simulation) exports() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.secrets)) {
		b.WriteString(fmt.Sprintf("export %s='%s'\n", name, s.secrets[name]))
	}
	return b.String()
}

// ways are the routes of all that it serves.
func (s *simulation) ways() string {
	var b strings.Builder
	for _, method := range slices.Sorted(maps.Keys(s.routes)) {
		b.WriteString(fmt.Sprintf("[[route]]\nmethod = %q\ncountries = [\"%s\"]\nconnections = [%q]\n", method, strings.Join(s.routes[method], `", "`), s.name))
	}
	return b.String()
}

// simulatorServer serves one simulated operator: a listening address, and the
// operator once it is open.
type simulatorServer struct {
	simulation *simulation
	url        string
	book       string // the file of the operator's book, where it is kept
	listener   net.Listener
	web        *http.Server
	side       atomic.Pointer[http.Handler]
	failed     chan error
}

// startSimulator listens on an address for a simulation.
func startSimulator(ctx context.Context, s *simulation, listen string) (*simulatorServer, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return nil, err
	}
	st := &simulatorServer{simulation: s, listener: l, url: "http://" + l.Addr().String(), failed: make(chan error, 1)}
	st.web = &http.Server{Handler: st, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	go func() { st.failed <- st.web.Serve(l) }()
	return st, nil
}

// ServeHTTP implements http.Handler.
func (st *simulatorServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if side := st.side.Load(); side != nil {
		(*side).ServeHTTP(w, r)
		return
	}
	http.Error(w, "the operator is not open yet", http.StatusServiceUnavailable)
}

// begin lets the operator's side answer.
func (st *simulatorServer) begin(f simulator.Faults, book, callbackURL string) error {
	h, err := st.simulation.open(f, book, callbackURL)
	if err != nil {
		return fmt.Errorf("simulate %s: %w", st.simulation.name, err)
	}
	st.side.Store(&h)
	return nil
}

// setMarkets says what the account may do.
func (st *simulatorServer) setMarkets(texts []string) error {
	side := st.side.Load()
	if len(texts) == 0 || side == nil {
		return nil
	}
	setter, ok := (*side).(interface{ SetMarkets(texts []string) error })
	if !ok {
		return fmt.Errorf("--market: %s does not say what an account may do", st.simulation.name)
	}
	return setter.SetMarkets(texts)
}

// wait serves until ctx ends.
func (st *simulatorServer) wait(ctx context.Context) error {
	var err error
	select {
	case err = <-st.failed:
	case <-ctx.Done():
	}
	return errors.Join(err, st.end())
}

func (st *simulatorServer) end() error {
	err := st.web.Close()
	_ = st.listener.Close() // if it was not served yet; an error says that it is closed
	if side := st.side.Load(); side != nil {
		if c, ok := (*side).(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// simulatorServers are all simulated operators.
type simulatorServers []*simulatorServer

// simulateAll starts all simulated operators and adds their connections and
// routes to a server's configuration. They open with begin, because only the
// server knows their callback addresses. What they need after a restart is in
// a folder.
func simulateAll(ctx context.Context, how, folder string, all []simulation, adapters operators.Adapters, c *server.Config) (out simulatorServers, err error) {
	if how != "simulated" {
		return nil, fmt.Errorf("--operators is simulated or nothing, not %q", how)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			out.end()
		}
	}()
	var text strings.Builder
	secrets := map[string]string{}
	ways := map[[2]string][]string{}
	var order [][2]string
	for i := range all {
		s := &all[i]
		st, err := restartSimulator(ctx, s, folder)
		if err != nil {
			return out, err
		}
		out = append(out, st)
		text.WriteString(s.connection(st.url))
		maps.Copy(secrets, s.secrets)
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
		text.WriteString(fmt.Sprintf("[[route]]\nmethod = %q\ncountries = [%q]\nconnections = [\"%s\"]\n", way[0], way[1], strings.Join(ways[way], `", "`)))
	}
	o := adapters.Options()
	o.Env = func(name string) (string, bool) { v, ok := secrets[name]; return v, ok }
	c.Operators, err = config.Parse("(simulated operators)", []byte(text.String()), o)
	c.Adapters = adapters
	return out, err
}

// restartSimulator listens on the address of the last start, which the folder
// has, or on a free one. The address is part of a connection's fingerprint,
// and payments on it may be open.
func restartSimulator(ctx context.Context, s *simulation, folder string) (*simulatorServer, error) {
	file := filepath.Join(folder, "simulated-"+s.name+".addr")
	listen := "127.0.0.1:0"
	b, err := os.ReadFile(file)
	switch {
	case err == nil:
		listen = strings.TrimSpace(string(b))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	st, err := startSimulator(ctx, s, listen)
	if err != nil {
		return nil, fmt.Errorf("simulate %s where it was before (remove %s to let it take another address): %w", s.name, file, err)
	}
	st.book = filepath.Join(folder, "simulated-"+s.name+".book")
	if err := os.WriteFile(file, []byte(strings.TrimPrefix(st.url, "http://")+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, st.end())
	}
	return st, nil
}

// begin opens every operator, with the address to call that its connection has.
func (all simulatorServers) begin(callbackURL func(connection string) string) error {
	for _, st := range all {
		if err := st.begin(simulator.Faults{}, st.book, callbackURL(st.simulation.name)); err != nil {
			return err
		}
	}
	return nil
}

func (all simulatorServers) end() {
	for _, st := range all {
		_ = st.end() // they are simulations
	}
}
