package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/operators"
	"till/server"
	"till/store"
	"till/webhook"
)

func newDev() *cobra.Command {
	d := &dev{c: server.Config{Version: cli.VersionText(), Lease: stepLease}}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Try the service on this machine",
		Long: `Run everything on this machine: the service on one SQLite file, the sandbox
operator, and a demo client whose key is printed. Use it to try Till and to
develop against it. A second start on the same folder keeps the data and the
key.

With --operators simulated there is also a live demo client. Its payments go
through the real adapters to simulated operators on this machine.

With --faults a proxy that fails on purpose serves the API, as 'till proxy' does, so
that you see whether your program asks each customer once. The words are the flags of
'till proxy': lose-answers, lose-requests, cut, slow, status and seed.`,
		Example: `  till dev
  till dev --operators simulated --data ./demo-data
  till dev --faults "lose-answers=20% slow=2s:5% status=503:3% seed=7"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&d.data, "data", "./till-data", "the folder that holds the data")
	f.StringVar(&d.simulated, "operators", "", "'simulated' connects a live demo client to all simulated operators (default none)")
	f.StringVar(&d.faults, "faults", "", "fail on purpose, as \"lose-answers=20% slow=2s:5%\" (default none)")
	f.StringVar(&d.c.Listen, "listen", cli.DefaultListen, "address to serve the API on; port 0 takes a free one")
	f.BoolVar(&d.insecure, "insecure-listen", false, "allow --listen on an address that other machines reach, in plain HTTP and with a demo key")
	f.BoolVar(&d.docs, "docs", true, "serve the pages for developers at /docs/; --docs=false leaves them out")
	f.StringVar(&d.c.Database, "database", "", cli.DatabaseUsage+" (default till.db in the data folder)")
	f.StringVar(&d.c.SandboxPath, "sandbox", "", cli.SandboxUsage)
	f.DurationVar(&d.c.ApprovalWindow, "approval-window", defaultWindow, "how long a customer of the sandbox has to approve, at least 3s")
	f.StringVar(&d.role, "role", string(server.RoleAll), "all, api (serves requests only) or worker (calls operators only)")
	f.Float64Var(&d.c.RateLimit, "rate-limit", defaultRateLimit, "requests per second for each client; 0 for no limit")
	f.BoolVar(&d.asJSON, "json", false, "print one line of JSON when ready")
	addWebhookFlags(cmd, &d.c)
	addLogFlags(cmd, &d.format, &d.level, "warn")
	d.traces.add(cmd)
	return cmd
}

// dev is a run of 'till dev'.
type dev struct {
	c                server.Config
	data, role       string
	format, level    string
	simulated        string
	faults           string
	asJSON, insecure bool
	docs             bool
	traces           traceFlags
}

func (d *dev) run(cmd *cobra.Command) error {
	if err := d.configure(cmd); err != nil {
		return err
	}
	var played simulatorServers
	if d.simulated != "" {
		var err error
		if played, err = simulateAll(cmd.Context(), d.simulated, d.data, simulations, operators.Builtin, &d.c); err != nil {
			return err
		}
		defer played.end()
		d.c.LiveDemoFile = filepath.Join(d.data, "live-demo-key.json")
	}
	front, err := newDevFront(d.faults, &d.c)
	if err != nil {
		return err
	}
	s, err := server.New(cmd.Context(), d.c)
	if err != nil {
		return err
	}
	var forget func()
	err = played.begin(s.CallbackURL)
	if err == nil {
		err = front.begin(cmd, s.BaseURL(), d.asJSON)
	}
	if err == nil {
		forget, err = tellAddress(d.data, s.BaseURL())
	}
	if err == nil {
		defer forget()
		err = announce(cmd.OutOrStdout(), s, front.address(s.BaseURL()), d.data, d.c.Database, d.asJSON)
	}
	if err != nil {
		front.end()
		s.Close()
		return err
	}
	go boundMemory(cmd.Context())
	return errors.Join(s.Run(cmd.Context()), front.end())
}

// configure completes the configuration from the flags.
func (d *dev) configure(cmd *cobra.Command) error {
	log, _, err := newLog(cmd.ErrOrStderr(), d.format, d.level)
	if err != nil {
		return err
	}
	if err := chooseDevFiles(&d.c, &d.data, cmd.Flags().Changed("data")); err != nil {
		return err
	}
	d.c.Role, d.c.Log, d.c.LoopbackOnly, d.c.NoDocs = server.Role(d.role), log, !d.insecure, !d.docs
	d.c.WebhookAllow = append(d.c.WebhookAllow, webhook.Loopback...) // the receiver being written is on this machine
	d.c.Trace, err = d.traces.config()
	return err
}

// chooseDevFiles sets where the database, the secret and the demo key are.
func chooseDevFiles(c *server.Config, data *string, dataGiven bool) error {
	switch {
	case c.Database == "":
		c.Database = filepath.Join(*data, "till.db")
	case store.IsPostgres(c.Database):
		c.SecretFile = filepath.Join(*data, "till.secret")
		if err := os.MkdirAll(*data, 0o700); err != nil {
			return err
		}
	case !dataGiven:
		*data = filepath.Dir(c.Database)
	}
	c.DemoFile = filepath.Join(*data, "demo-key.json")
	return nil
}

// ready is what till dev --json prints.
type ready struct {
	BaseURL    string  `json:"base_url"`
	APIKey     string  `json:"api_key"`
	ClientID   string  `json:"client_id"`
	ConsoleURL *string `json:"console_url"` // signed in with one click; null where other machines reach it
	LiveAPIKey string  `json:"live_api_key,omitempty"`
}

// announce prints how to use the started service, which programs reach at base.
func announce(w io.Writer, s *server.Server, base, data, database string, asJSON bool) error {
	d := s.Demo()
	live := ""
	if l := s.LiveDemo(); l != nil {
		live = l.APIKey
	}
	if asJSON {
		return cli.PrintJSON(w, ready{BaseURL: base, APIKey: d.APIKey, ClientID: d.ClientID.String(), ConsoleURL: cli.TextOrNull(s.DemoConsole()), LiveAPIKey: live})
	}
	if live != "" {
		live = "\n  Live key      " + live + "   (simulated operators)"
	}
	link := ""
	if demo := s.DemoConsole(); demo != "" {
		link = "\n  Console       " + demo + "   (signed in with one click)"
	}
	if page := s.DemoPage(context.Background()); page != "" {
		link += "\n  Page to pay   " + page + "   (an order of 5 000 francs; with the number 06 123 00 00 it rings on the console's handset)"
	}
	if store.IsPostgres(database) {
		database = "" // it may hold a password, and others read command lines
	}
	where := " --database " + database
	if database == "" {
		where = "   (with the database's URL in TILL_DATABASE)"
	}
	typed := func(command string) cli.TrustedText { return cli.TrustedText(asTyped(command, runtime.GOOS)) }
	pay := fmt.Sprintf(payByCurl, base, d.APIKey, newUUID())
	_, err := cli.Printf(w, `Till is ready.

  Base address  %[1]s
  API key       %[2]s   (client Demo, test mode)%[7]s%[10]s
  Data          %[4]s

Ask a customer for 5 000 francs. The sandbox's customer approves after about a
second; other phone numbers tell other stories (…0002 declines).

  %[3]s

Sent again, it answers with the same payment; a new payment needs a new
idempotency_key. Then read the newest payment, and the wallet it is credited to:

  %[8]s
  %[9]s

To pay out of the wallet, POST /payouts with a key that may; this one may not:

  till key create --client %[5]s --scopes payouts:read,payouts:write%[6]s

Stop with Ctrl-C.
`, base, d.APIKey, typed(pay), data, d.ClientID, where, cli.TrustedText(live),
		typed("curl -s '"+base+"/payments?limit=1' -H 'X-Api-Key: "+d.APIKey+"'"),
		typed("curl -s "+base+"/wallets -H 'X-Api-Key: "+d.APIKey+"'"), cli.TrustedText(link))
	return err
}

// payByCurl creates a payment: base address, key and idempotency key.
const payByCurl = `curl -s %s/payments \
    -H 'X-Api-Key: %s' \
    -H 'Content-Type: application/json' \
    -d '{"method": "mtn_momo", "country": "CG",
         "amount": {"value": "5000", "currency": "XAF"},
         "customer": {"phone": "242061234567"}, "reference": "ORDER-1",
         "idempotency_key": "%s"}'`

// asTyped returns a shell command as it is typed on a system. The Command
// Prompt of Windows needs one line with double quotes only.
func asTyped(command, system string) string {
	if system != "windows" {
		return command
	}
	command = strings.NewReplacer(`"`, `\"`, `'`, `"`, " \\\n", " ").Replace(command)
	return strings.Join(strings.Fields(command), " ")
}

// newUUID draws a UUIDv4, as a client would for its idempotency key.
func newUUID() till.ID {
	var id till.ID
	rand.Read(id[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}
