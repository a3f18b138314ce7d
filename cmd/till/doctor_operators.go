package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till/config"
	"till/internal/seal"
	"till/provider"
	"till/server"
	"till/store"
	"till/tokens"
)

func addOperatorFlags(cmd *cobra.Command, configFile, baseURL *string) {
	cmd.Flags().StringVar(configFile, "config", "", configUsage)
	cmd.Flags().StringVar(baseURL, "base-url", "", "the URL at which operators reach the API, ending in /v1, as for 'till serve'")
}

// operatorsOf says where an installation's connections are configured.
type operatorsOf struct {
	database, secretFile, config, baseURL string
	adapters                              server.Adapters // nil: those that come with the program
}

// open reads the configuration and opens its connections on a database. It
// uses the servers' shared tokens: some operators accept only the newest
// token.
func (o operatorsOf) open(ctx context.Context, s *store.Store) (*server.Operators, *seal.Ring, error) {
	file, err := server.LoadConfig(o.config, o.adapters)
	if err != nil {
		return nil, nil, err
	}
	if o.secretFile == "" && !store.IsPostgres(o.database) {
		o.secretFile = server.SecretFile(o.database)
	}
	if o.secretFile == "" {
		return nil, nil, errors.New("name the file of the installation's secret with --secret-file")
	}
	ring, err := server.OpenKeyring(ctx, s, o.secretFile)
	if err != nil {
		return nil, nil, fmt.Errorf("the secret in %s: %w", o.secretFile, err)
	}
	k, err := tokens.New(s, ring, nil)
	if err != nil {
		return nil, nil, err
	}
	deps := server.DepsOf(k, o.baseURL, ring, slog.New(slog.DiscardHandler))
	ops, err := server.OpenOperators(file, o.adapters, deps)
	return ops, ring, err
}

// testTimeout is how long an operator's test may take: a token alone can take
// MTN 20 s.
const testTimeout = 45 * time.Second

// examineOperators tests each configured connection without moving money.
func (d *doctor) examineOperators(ctx context.Context, o operatorsOf) error {
	return withDatabase(ctx, o.database, func(s *store.Store) error {
		ops, ring, err := o.open(ctx, s)
		var wrong *config.Error
		switch {
		case errors.As(err, &wrong):
			for _, p := range wrong.Problems {
				d.add("config", isWrong, "line %d: %s", p.Line, p.Text)
			}
			return nil
		case err != nil:
			d.add("config", isWrong, "%v", err)
			return nil
		}
		d.add("config", isFine, "%s and %s", count(len(ops.File.Connections), "connection", "connections"), count(len(ops.File.Routes), "route", "routes"))
		for _, c := range ops.File.Connections {
			d.examineConnection(ctx, ops, c.Name)
			d.reportCallback(ops, c, o.baseURL, ring)
		}
		if err := d.examineCases(ctx, s); err != nil {
			return err
		}
		return d.examineRoutes(ctx, s, ops)
	})
}

// examineConnection tests whether an operator accepts our credentials, for
// payments and for payouts.
func (d *doctor) examineConnection(ctx context.Context, ops *server.Operators, name string) {
	for _, side := range []struct {
		what string
		p    provider.Provider
	}{{"payments", ops.Payments[name]}, {"payouts", ops.Payouts[name]}} {
		if side.p == nil {
			continue
		}
		what := name + " " + side.what
		tester, ok := side.p.(provider.Tester)
		if !ok {
			d.add(what, isFine, "it has no test that moves no money")
			continue
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(ctx, testTimeout)
		err := tester.Test(ctx)
		cancel()
		unproven, unknown := errors.AsType[provider.Unproven](err)
		switch {
		case unknown:
			d.add(what, isRisky, "%s", server.Redact(string(unproven)))
		case errors.Is(err, context.DeadlineExceeded):
			d.add(what, isWrong, "the operator did not answer in %s: is its address right, and may this machine reach it?", testTimeout)
		case err != nil:
			d.add(what, isWrong, "%s", server.Redact(err.Error()))
		default:
			d.add(what, isFine, "the operator lets us in (%s)", time.Since(began).Round(time.Millisecond))
		}
	}
}

// reportCallback reports the callback address to register at an operator, and
// why callbacks cannot come.
func (d *doctor) reportCallback(ops *server.Operators, c *config.Connection, baseURL string, ring *seal.Ring) {
	address := ""
	if baseURL != "" {
		address = server.CallbackURL(baseURL, c.Name, ring)
	}
	told := ""
	for _, p := range []provider.Provider{ops.Payments[c.Name], ops.Payouts[c.Name]} {
		checker, ok := p.(provider.CallbackChecker)
		if !ok {
			continue
		}
		if err := checker.CheckCallback(address); err != nil && err.Error() != told {
			told = err.Error()
			d.add(c.Name+" callbacks", isRisky, "%s", told)
		}
	}
	_, payments := ops.Payments[c.Name].(provider.CallbackReader)
	_, payouts := ops.Payouts[c.Name].(provider.CallbackReader)
	switch {
	case !payments && !payouts:
		return
	case baseURL == "":
		d.add(c.Name+" callbacks", isRisky, "name the service's address with --base-url to see the one that the operator calls")
	case strings.HasPrefix(baseURL, "http://"):
		d.add(c.Name+" callbacks", isRisky, "operators call HTTPS only; the address would be %s", server.CallbackURL(baseURL, c.Name, ring))
	default:
		d.add(c.Name+" callbacks", isFine, "tell the operator to call %s", server.CallbackURL(baseURL, c.Name, ring))
	}
}

func (d *doctor) examineCases(ctx context.Context, s *store.Store) error {
	return s.View(ctx, func(tx *store.Tx) error {
		cases, err := tx.OperatorCases(ctx, false)
		for _, c := range cases {
			d.add(c.Connection+" case", isWrong, "since %s: %s", c.OpenedAt, c.Detail)
		}
		return err
	})
}

// reportOperatorCases prints the problems of connections before the cases of
// payments: they belong to no client.
func reportOperatorCases(cmd *cobra.Command, s *store.Store, asJSON bool) error {
	var cases []*store.OperatorCase
	err := s.View(cmd.Context(), func(tx *store.Tx) (err error) {
		cases, err = tx.OperatorCases(cmd.Context(), false)
		return err
	})
	for _, c := range cases {
		if asJSON {
			printf(cmd.ErrOrStderr(), "till: the connection %s: %s\n", c.Connection, c.Detail)
		} else if err == nil {
			_, err = printf(cmd.OutOrStdout(), "The connection %s, since %s: %s.\n", c.Connection, c.OpenedAt, c.Detail)
		}
	}
	return err
}
