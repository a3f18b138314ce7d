package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"till/books"
	"till/cmd/till/internal/cli"
	"till/operators"
	"till/store"
)

func newConnections() *cobra.Command {
	var source operators.Source
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "connections",
		Aliases: []string{"connection"},
		Short:   "List the connections to operators and their health",
		Long: `List the connections to operators: how their calls of the last minute went,
whether new payments go out, and what a person has to look at. Use it when an
operator seems to be down. With --config the list also has connections that were
never used, and the addresses that operators call back.`,
		Example: `  till connections --config till.toml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WithDatabase(cmd.Context(), source.Database, func(s *store.Store) error {
				list, err := operators.ListConnections(cmd.Context(), s, &source)
				if err != nil {
					return err
				}
				return printConnections(cmd.OutOrStdout(), list, asJSON)
			})
		},
	}
	cli.AddDatabase(cmd, &source.Database)
	cmd.Flags().StringVar(&source.SecretFile, "secret-file", "", "the file of the installation's secret (default till.secret beside the SQLite file)")
	addOperatorFlags(cmd, &source.Config, &source.BaseURL)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// addOperatorFlags adds --config and --base-url.
func addOperatorFlags(cmd *cobra.Command, configFile, baseURL *string) {
	cmd.Flags().StringVar(configFile, "config", "", cli.ConfigUsage)
	cmd.Flags().StringVar(baseURL, "base-url", "", "the URL at which operators reach the API, ending in /v1, as for 'till serve'")
}

// connectionJSON is a connection as the command prints it.
type connectionJSON struct {
	Name        string          `json:"name"`
	Operator    *string         `json:"operator"` // null where no configuration was read
	Configured  bool            `json:"configured"`
	Payments    bool            `json:"payments"`
	Payouts     bool            `json:"payouts"`
	State       string          `json:"state"` // passing, stopped, probing
	RetryAt     *string         `json:"retry_at"`
	Operations  []operationJSON `json:"operations"`
	CallbackURL *string         `json:"callback_url"`
	Case        *string         `json:"case"`
}

type operationJSON struct {
	Name         string `json:"name"`
	Answered     int64  `json:"answered"`
	Unanswered   int64  `json:"unanswered"`
	Refused      int64  `json:"refused"`
	Milliseconds int64  `json:"milliseconds"` // a call that was answered, on average
}

func connectionOut(c *operators.ConnectionStatus) *connectionJSON {
	out := &connectionJSON{Name: c.Name, Operator: cli.TextOrNull(c.Operator), Configured: c.Configured, Payments: c.Payments, Payouts: c.Payouts,
		State: string(c.State), RetryAt: cli.TimeOrNull(c.RetryAt), Operations: []operationJSON{}, CallbackURL: cli.TextOrNull(c.CallbackURL), Case: cli.TextOrNull(c.Case)}
	for _, o := range c.Operations {
		out.Operations = append(out.Operations, operationJSON{o.Name, o.Answered, o.Unanswered, o.AuthRefused, o.MeanLatency().Milliseconds()})
	}
	return out
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
			cli.Printf(cmd.ErrOrStderr(), "till: the connection %s: %s\n", c.Connection, c.Detail)
		} else if err == nil {
			_, err = cli.Printf(cmd.OutOrStdout(), "The connection %s, since %s: %s.\n", c.Connection, c.OpenedAt, c.Detail)
		}
	}
	return err
}

func printConnections(w io.Writer, list []*operators.ConnectionStatus, asJSON bool) error {
	if asJSON {
		items := make([]*connectionJSON, len(list))
		for i, c := range list {
			items[i] = connectionOut(c)
		}
		return cli.PrintJSON(w, map[string]any{"items": items})
	}
	if len(list) == 0 {
		_, err := cli.PrintLine(w, "There are no connections.")
		return err
	}
	err := cli.Table(w, func(row func(...any)) {
		row("CONNECTION", "OPERATOR", "STATE", "LAST MINUTE", "CASE")
		for _, c := range list {
			row(c.Name, cmp.Or(c.Operator, "-"), c.State, operations(c.Operations), cmp.Or(c.Case, "-"))
		}
	})
	for _, c := range list {
		if err == nil && c.CallbackURL != "" {
			_, err = cli.Printf(w, "%s calls %s\n", c.Name, c.CallbackURL)
		}
	}
	return err
}

func operations(list []books.OperationCalls) string {
	var out []string
	for _, o := range list {
		text := fmt.Sprintf("%s: %d of %d answered, %d ms", o.Name, o.Answered, o.Answered+o.Unanswered, o.MeanLatency().Milliseconds())
		if o.AuthRefused > 0 {
			text += fmt.Sprintf(", %d refused our credentials", o.AuthRefused)
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "no calls"
	}
	return strings.Join(out, "; ")
}
