package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"till/certificates"
	"till/cmd/till/internal/cli"
	"till/config"
	"till/internal/logs"
	"till/journal"
	"till/operators"
	"till/server"
)

// The defaults of what both dev and serve have.
const (
	defaultRateLimit = 100
	defaultTestQuota = 10 << 10 // MiB
	defaultWindow    = time.Minute
)

// stepLease is the Lease of what dev and serve start; 0 means the engine's own. Only tests,
// which kill programs and wait for what they held, set it.
var stepLease time.Duration

func newServe() *cobra.Command { return serveOf(nil) }

// serveOf makes the command with other adapters than Builtin; nil means
// Builtin.
func serveOf(adapters operators.Adapters) *cobra.Command {
	s := &serve{c: server.Config{Adapters: adapters, Version: cli.VersionText(), Lease: stepLease}}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the service",
		Long: `Run the service until SIGINT or SIGTERM. Use it in production; 'till dev' is for
a first try.

Give the URL of a PostgreSQL as TILL_DATABASE: others can read command lines. The
operators in the file of --config serve live clients. The built-in sandbox
operator serves test clients.`,
		Example: `  till serve --config till.toml --base-url https://pay.example.com/v1`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&s.c.Listen, "listen", cli.DefaultListen, "address to serve the API on")
	f.StringVar(&s.c.AdminListen, "admin-listen", "127.0.0.1:8081", "address to serve health and metrics on; empty for none")
	f.StringVar(&s.c.AdminTokenFile, "admin-token-file", "", "a file with the bearer token by which other machines read metrics, log and profiles (default none: they read health only)")
	f.StringVar(&s.consoleMode, "console", "on", "on or off: serve the console's pages")
	f.StringVar(&s.c.ConsoleListen, "console-listen", "", "an address of the console's own, for an inner network (default beside the API)")
	f.StringVar(&s.c.ConsoleURL, "console-url", "", "where browsers open the console, as in https://console.example.com (default the origin of --base-url)")
	f.StringVar(&s.pagesMode, "pages", "on", "on or off: serve the pages that customers pay on, at /p/; without --base-url or --pay-url they are off")
	f.StringVar(&s.c.PayListen, "pay-listen", "", "an address of those pages' own (default beside the API)")
	f.StringVar(&s.c.PayURL, "pay-url", "", "where customers open them, as in https://pay.example.com (default the origin of --base-url)")
	f.BoolVar(&s.docs, "docs", true, "serve the pages for developers at /docs/; --docs=false leaves them out")
	f.StringVar(&s.c.BaseURL, "base-url", "", "the URL at which clients reach the API, ending in /v1 (default the address of --listen)")
	f.StringVar(&s.c.Database, "database", cli.DefaultDatabase, cli.DatabaseUsage)
	f.StringVar(&s.configFile, "config", "", cli.ConfigUsage)
	f.StringVar(&s.role, "role", string(server.RoleAll), "all, api (serves requests only) or worker (calls operators only)")
	f.Float64Var(&s.c.RateLimit, "rate-limit", defaultRateLimit, "requests per second for each client; 0 for no limit")
	f.Int64Var(&s.quota, "test-quota", defaultTestQuota, "MiB that each test client may store; 0 for no limit")
	f.StringVar(&s.c.SecretFile, "secret-file", "", "the file of the installation's secret (default till.secret beside the SQLite file)")
	f.StringVar(&s.c.SandboxPath, "sandbox", "", cli.SandboxUsage)
	f.DurationVar(&s.c.ApprovalWindow, "approval-window", defaultWindow, "how long a customer of the sandbox has to approve, at least 3s")
	f.StringArrayVar(&s.c.PhonePatterns, "phone-pattern", nil, "another range of mobile numbers, as CG=06\\d{7}: country and pattern of the national number; may be repeated")
	f.BoolVar(&s.c.PlainSQL, "plain-sql", false, "send the statements for a distributed PostgreSQL")
	f.MarkDeprecated("plain-sql", "a start sees by itself that Citus has distributed the database")
	f.BoolVar(&s.c.NoNotify, "no-notify", false, "do not use PostgreSQL's NOTIFY; other instances' work is noticed up to 250ms later")
	f.DurationVar(&s.c.Drain, "drain", 0, "how long a stop goes on serving after /readyz has begun to fail, at most 5m (default 0s)")
	f.BoolVar(&s.asJSON, "json", false, "print one line of JSON when ready")
	addJournalFlags(cmd, &s.c, &s.journalMax)
	addTLSFlags(cmd, &s.c)
	addWebhookFlags(cmd, &s.c)
	addLogFlags(cmd, &s.format, &s.level, "info")
	s.traces.add(cmd)
	f.StringVar(&s.logEnded, "log-ended", "all", "all, or sample:100 for one line of a hundred payments and payouts that end as planned")
	return cmd
}

// serve is a run of 'till serve'.
type serve struct {
	c                 server.Config
	role              string
	format, level     string
	configFile        string
	consoleMode       string
	pagesMode         string
	logEnded          string
	asJSON, docs      bool
	quota, journalMax int64 // MiB
	traces            traceFlags
}

func (s *serve) run(cmd *cobra.Command) error {
	s.c.LogRing = logs.NewRing(cmd.ErrOrStderr())
	log, logLevel, err := newLog(s.c.LogRing, s.format, s.level)
	if err != nil {
		return err
	}
	s.c.Log = log
	if err := s.configure(logLevel); err != nil {
		return err
	}
	started, err := server.New(cmd.Context(), s.c)
	if err != nil {
		return err
	}
	if s.asJSON {
		if err := cli.PrintJSON(cmd.OutOrStdout(), cli.Object{"base_url", started.BaseURL()}); err != nil {
			started.Close()
			return err
		}
	}
	go boundMemory(cmd.Context())
	defer onHangup(func() {
		log.Info("reloading")
		if err := rereadLogLevel(logLevel, s.configFile, s.level); err != nil {
			log.Warn("log level not read", "error", err)
		}
		started.Reload()
	})()
	return started.Run(cmd.Context())
}

// configure completes the configuration from the flags.
func (s *serve) configure(logLevel *slog.LevelVar) (err error) {
	if s.c.LogEnded, err = parseSample(s.logEnded); err != nil {
		return err
	}
	s.c.Role, s.c.TestQuota, s.c.JournalMax, s.c.NoDocs = server.Role(s.role), s.quota<<20, s.journalMax<<20, !s.docs
	if s.c.Trace, err = s.traces.config(); err != nil {
		return err
	}
	if s.c.NoConsole = s.consoleMode == "off"; !s.c.NoConsole && s.consoleMode != "on" {
		return fmt.Errorf("--console %q is not on or off", s.consoleMode)
	}
	if s.c.NoPages = s.pagesMode == "off"; !s.c.NoPages && s.pagesMode != "on" {
		return fmt.Errorf("--pages %q is not on or off", s.pagesMode)
	}
	if s.configFile != "" {
		if s.c.Operators, err = operators.LoadConfig(s.configFile, s.c.Adapters); err != nil {
			return err
		}
		setLogLevel(logLevel, s.c.Operators.LogLevel, s.level)
	}
	return nil
}

// addJournalFlags adds the flags of the journal of creates.
func addJournalFlags(cmd *cobra.Command, c *server.Config, maxMiB *int64) {
	f := cmd.Flags()
	f.StringVar(&c.Journal, "journal", "", "a folder, on another disk than the database, for a sealed record of each create (default none)")
	f.BoolVar(&c.JournalSync, "journal-sync", false, "write the record to the disk before the create is committed and answered, not within a second after it")
	f.DurationVar(&c.JournalKeep, "journal-keep", journal.DefaultKeep, "for how long records are kept, at least 1h; longer than the time between two backups")
	f.Int64Var(maxMiB, "journal-max", journal.DefaultMax>>20, "MiB of records that are kept, at least 128; the oldest go first")
}

// addTLSFlags adds the flags of TLS.
func addTLSFlags(cmd *cobra.Command, c *server.Config) {
	f := cmd.Flags()
	f.StringVar(&c.TLSCert, "tls-cert", "", "the PEM file of the certificate and its chain, to serve the API and the console by TLS; read again once a minute (default none)")
	f.StringVar(&c.TLSKey, "tls-key", "", "the PEM file of the certificate's key (default none)")
	f.StringArrayVar(&c.ACME.Hosts, "acme-host", nil, "a name, as pay.example.com, to obtain a certificate for by ACME; may be repeated (default none)")
	f.StringVar(&c.ACME.Directory, "acme-directory", certificates.DefaultDirectory, "the address of the certificate authority's directory")
	f.StringVar(&c.ACME.Email, "acme-email", "", "where the certificate authority may write to (default none)")
	f.StringVar(&c.HTTPListen, "http-listen", "", "address for plain HTTP, as :80: redirects to HTTPS, and answers the certificate authority (default none)")
}

// onHangup calls f for each SIGHUP until the returned function is called.
func onHangup(f func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for range signals {
			f()
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
	}
}

// parseSample reads --log-ended: how many ends share one line.
func parseSample(text string) (int, error) {
	if text == "all" {
		return 1, nil
	}
	number, found := strings.CutPrefix(text, "sample:")
	n, err := strconv.Atoi(number)
	if !found || err != nil || n < 1 || n > 1_000_000 {
		return 0, fmt.Errorf("--log-ended %q is not all, or sample:N with N from 1 to 1000000", text)
	}
	return n, nil
}

// addWebhookFlags adds the flags that limit where webhooks go.
func addWebhookFlags(cmd *cobra.Command, c *server.Config) {
	cmd.Flags().StringArrayVar(&c.WebhookAllow, "webhook-allow", nil, "a private network that webhooks may be sent to, as 10.1.0.0/16; may be repeated (default none)")
	cmd.Flags().StringVar(&c.WebhookProxy, "webhook-proxy", "", "the proxy that webhooks go through, as http://proxy:3128 (default none, HTTPS_PROXY is not read)")
}

func addLogFlags(cmd *cobra.Command, format, level *string, defaultLevel string) {
	cmd.Flags().StringVar(format, "log-format", "text", "text or json")
	cmd.Flags().StringVar(level, "log-level", defaultLevel, "debug, info, warn or error")
}

// newLog returns the logger of the flags, whose level can be changed. It writes to w.
func newLog(w io.Writer, format, level string) (*slog.Logger, *slog.LevelVar, error) {
	l := new(slog.LevelVar)
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, nil, fmt.Errorf("--log-level %q is not debug, info, warn or error", level)
	}
	if format != "text" && format != "json" {
		return nil, nil, fmt.Errorf("--log-format %q is not text or json", format)
	}
	return logs.New(w, format == "json", l), l, nil
}

// setLogLevel sets the level of the configuration, or that of the flag if it has none. Both
// were checked.
func setLogLevel(l *slog.LevelVar, ofFile, ofFlag string) {
	if ofFile == "" {
		ofFile = ofFlag
	}
	_ = l.UnmarshalText([]byte(ofFile))
}

// rereadLogLevel reads the log level of the configuration again.
func rereadLogLevel(l *slog.LevelVar, configFile, ofFlag string) error {
	if configFile == "" {
		return nil
	}
	text, err := config.LoadLogLevel(configFile)
	if err == nil {
		setLogLevel(l, text, ofFlag)
	}
	return err
}
