package money

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/internal/logs"
	"till/operators"
	"till/reconcile"
	"till/store"
)

// reconcileOptions are the flags of till reconcile.
type reconcileOptions struct {
	database, secretFile           string
	connection, statement, mapping string
	config                         string
	keys                           []string
	period                         cli.Period
	slack                          time.Duration
	output                         string
	all, apply                     bool
	by                             string
	asJSON                         bool
}

func NewReconcile() *cobra.Command {
	var o reconcileOptions
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Compare an operator's statement with our books",
		Long: `Compare an operator's statement, a CSV file, with the payments and payouts of a
connection and with the ledger. Use it to close each day. It prints what matches
and what does not, and with --output writes each difference to a file.

Without --apply it changes nothing in the books; it records when the statement was
compared and how much is left, for alerts and 'till doctor'. With --apply, a line
settles a payment or payout that is open here, each contradiction opens a case, and
a line with a reference of our form that is not here is kept as a stray ('till
strays'). What was applied once is not applied again.

The exit code is 0 if all matches or was settled, 1 if differences are left or
a line could not be read, 2 if the command failed.`,
		Example: `  till reconcile --connection mtn-cg --statement 2026-11-15.csv --config till.toml
  till reconcile --connection mtn-cg --statement 2026-11-15.csv --config till.toml --apply --by "Awa N."`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.apply && o.by == "" {
				return errors.New("--by must name who applies the statement")
			}
			// The lines fill the memory: allow little garbage.
			defer debug.SetGCPercent(debug.SetGCPercent(reconcileGC))
			return cli.WithDatabase(cmd.Context(), o.database, func(s *store.Store) error { return o.run(cmd, s) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.connection, "connection", "", "the connection that the statement belongs to (required)")
	f.StringVar(&o.statement, "statement", "", "the operator's statement, a CSV file (required)")
	f.StringVar(&o.config, "config", "", "the TOML file of connections; its [connection.statement] describes the statement's columns")
	f.StringVar(&o.mapping, "mapping", "", "a TOML file with the statement's columns; its keys win over those of --config")
	f.StringArrayVar(&o.keys, "map", nil, `one key of the mapping in TOML, such as 'receipt = "Receipt No."'`)
	cli.AddPeriod(cmd, &o.period, "the time that the statement covers, if it is not from its first to its last line:", "the mapping's time_zone, or UTC")
	f.DurationVar(&o.slack, "slack", time.Minute, "the largest difference between the operator's clock and ours")
	f.StringVar(&o.output, "output", "", "a CSV file to write the differences to (default none)")
	f.BoolVar(&o.all, "all", false, "also write what matches")
	f.BoolVar(&o.apply, "apply", false, "settle open payments and payouts, open a case for each contradiction, and keep strays")
	cli.AddBy(cmd, &o.by, "the person who applies the statement (required with --apply)")
	f.StringVar(&o.secretFile, "secret-file", "", "the installation's secret, for --apply (default till.secret beside the database)")
	for _, name := range []string{"connection", "statement"} {
		cmd.MarkFlagRequired(name)
	}
	cli.AddDatabase(cmd, &o.database)
	cli.AddJSON(cmd, &o.asJSON)
	return cmd
}

const (
	// reconcileGC is how much garbage may pile up, in per cent of live memory.
	reconcileGC = 50
	// maxMapping is the size of a mapping file in bytes.
	maxMapping = 64 << 10
	// maxSlack is how far two clocks may be apart.
	maxSlack = 24 * time.Hour
)

// readMapping reads the mapping: the configuration of the connection, then the
// mapping file, then the keys on the command line. Later ones win.
func (o *reconcileOptions) readMapping() (m reconcile.Mapping, err error) {
	decode := func(text, where string) error {
		meta, err := toml.Decode(text, &m)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		if unknown := meta.Undecoded(); len(unknown) > 0 {
			return fmt.Errorf("%s: there is no key %s", where, unknown[0])
		}
		return nil
	}
	if o.config != "" {
		text, err := o.configured()
		if err != nil {
			return m, err
		}
		if err := decode(text, "[connection.statement] of "+o.connection); err != nil {
			return m, err
		}
	}
	if o.mapping != "" {
		f, err := os.Open(o.mapping)
		if err != nil {
			return m, fmt.Errorf("read the mapping: %w", err)
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, maxMapping+1))
		switch {
		case err != nil:
			return m, fmt.Errorf("read the mapping: %w", err)
		case len(text) > maxMapping:
			return m, fmt.Errorf("the mapping %s is larger than %d KiB", o.mapping, maxMapping>>10)
		}
		if err := decode(string(text), o.mapping); err != nil {
			return m, err
		}
	}
	for _, text := range o.keys {
		if err := decode(text, "--map "+text); err != nil {
			return m, err
		}
	}
	return m, m.Validate()
}

// configured returns the connection's statement settings of the configuration,
// as TOML.
func (o *reconcileOptions) configured() (string, error) {
	file, err := operators.LoadConfig(o.config, nil)
	if err != nil {
		return "", err
	}
	for _, c := range file.Connections {
		if c.Name == o.connection {
			text, err := toml.Marshal(c.Statement)
			return string(text), err
		}
	}
	names := make([]string, len(file.Connections))
	for i, c := range file.Connections {
		names[i] = c.Name
	}
	return "", fmt.Errorf("%s has no connection %q; there are %s", o.config, o.connection, strings.Join(names, ", "))
}

func (o *reconcileOptions) run(cmd *cobra.Command, s *store.Store) (err error) {
	ctx := cmd.Context()
	c := reconcile.Options{Connection: o.connection, Slack: o.slack, All: o.all, Plan: o.apply}
	if c.Mapping, err = o.readMapping(); err != nil {
		return err
	}
	if o.slack < 0 || o.slack > maxSlack {
		return fmt.Errorf("--slack must be between 0 and %s", maxSlack)
	}
	zone, err := c.Mapping.Zone()
	if err != nil {
		return err
	}
	if c.From, c.To, err = o.period.Read(zone); err != nil {
		return err
	}
	if err := cli.CheckConnection(ctx, s, o.connection); err != nil {
		return err
	}
	file, err := os.Open(o.statement)
	if err != nil {
		return fmt.Errorf("read the statement: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("the statement %s is not a file", o.statement)
	}
	c.File = file
	out, err := o.newOutput(info)
	if err != nil {
		return err
	}
	defer out.discard()
	c.Found = out.found
	p := &reconcileProgress{w: cmd.ErrOrStderr(), size: info.Size(), began: time.Now(), last: time.Now()}
	c.Progress = p.compared

	r, err := reconcile.Compare(ctx, s, c)
	if err != nil {
		return err
	}
	if err := out.keep(); err != nil {
		return err
	}
	var applied *reconcile.ApplyResult
	var refused error
	if o.apply {
		applied, refused = o.applyTo(cmd, s, r, p)
	}
	// What is left is for the alerts and for 'till doctor'. The comparison is good without it.
	if err := reconcile.Note(ctx, s, o.connection, r, applied); err != nil {
		cli.Printf(cmd.ErrOrStderr(), "The result was not recorded: %v\n", err)
	}
	if err := errors.Join(o.print(cmd.OutOrStdout(), r, out, applied), refused); err != nil {
		return err
	}
	if unresolvedCount(r, applied) > 0 {
		return cli.ErrProblems
	}
	return nil
}

// unresolvedCount returns how many differences are left.
func unresolvedCount(r *reconcile.Result, a *reconcile.ApplyResult) int64 {
	n := r.Differences()
	if a != nil {
		n -= a.Settled + a.Unchanged
	}
	return n
}

// applyTo applies the statement.
func (o *reconcileOptions) applyTo(cmd *cobra.Command, s *store.Store, r *reconcile.Result, p *reconcileProgress) (a *reconcile.ApplyResult, err error) {
	err = cli.WithProcessors(cmd, s, o.database, o.secretFile, func(d cli.Processors) (err error) {
		a, err = reconcile.Apply(cmd.Context(), s, r, reconcile.ApplyOptions{
			By: o.by, Name: logs.Redact(filepath.Base(o.statement)), Payments: d.Payments.ResolveAll, Payouts: d.Payouts.ResolveAll, Progress: p.applied,
		})
		return err
	})
	return a, err
}

// reconcileProgress shows the progress every few seconds.
type reconcileProgress struct {
	w           io.Writer
	size        int64
	began, last time.Time
}

const progressEvery = 2 * time.Second

func (p *reconcileProgress) printf(format string, args ...any) {
	if now := time.Now(); now.Sub(p.last) >= progressEvery {
		p.last = now
		cli.Printf(p.w, "till: "+format+", %d s\n", append(args, int(now.Sub(p.began).Seconds()))...)
	}
}

func (p *reconcileProgress) compared(at reconcile.Progress) {
	if at.Bytes > 0 {
		p.printf("read %s (%d %%)", cli.Count(at.Lines, "line", "lines"), 100*at.Bytes/max(p.size, 1))
		return
	}
	p.printf("compared %s, found those of %d of %d lines (%d %%)", cli.Count(at.Rows, "payment or payout", "payments and payouts"), at.Claimed, at.Lines, 100*at.Claimed/max(at.Lines, 1))
}

func (p *reconcileProgress) applied(done, total int) { p.printf("applied %d of %d", done, total) }
