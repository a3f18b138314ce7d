package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"till/books"
	"till/provider"
	"till/server"
	"till/store"
)

func newConnections() *cobra.Command {
	var o operatorsOf
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
			return withDatabase(cmd.Context(), o.database, func(s *store.Store) error {
				list, err := listConnections(cmd.Context(), s, o)
				if err != nil {
					return err
				}
				return printConnections(cmd.OutOrStdout(), list, asJSON)
			})
		},
	}
	addDatabaseFlag(cmd, &o.database)
	cmd.Flags().StringVar(&o.secretFile, "secret-file", "", "the file of the installation's secret (default till.secret beside the SQLite file)")
	addOperatorFlags(cmd, &o.config, &o.baseURL)
	addJSONFlag(cmd, &asJSON)
	return cmd
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

func listConnections(ctx context.Context, s *store.Store, o operatorsOf) ([]*connectionJSON, error) {
	by := map[string]*connectionJSON{}
	of := func(name string) *connectionJSON {
		if by[name] == nil {
			by[name] = &connectionJSON{Name: name, State: string(store.Passing), Operations: []operationJSON{}}
		}
		return by[name]
	}
	err := s.View(ctx, func(tx *store.Tx) error {
		operators, err := books.ReadOperators(ctx, tx)
		for _, o := range operators {
			of(o.Connection).add(o)
		}
		return err
	})
	if err != nil || o.config == "" {
		return sorted(by), err
	}
	ops, ring, err := o.open(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, f := range ops.File.Connections {
		c := of(f.Name)
		c.Configured, c.Operator = true, &f.Operator
		c.Payments, c.Payouts = ops.Payments[f.Name] != nil, ops.Payouts[f.Name] != nil
		_, payments := ops.Payments[f.Name].(provider.CallbackReader)
		_, payouts := ops.Payouts[f.Name].(provider.CallbackReader)
		if (payments || payouts) && o.baseURL != "" {
			url := server.CallbackURL(o.baseURL, f.Name, ring)
			c.CallbackURL = &url
		}
	}
	return sorted(by), nil
}

// checkConnection rejects a name that was never used: all lines would be
// missing on both sides.
func checkConnection(ctx context.Context, s *store.Store, name string) error {
	return s.View(ctx, func(tx *store.Tx) error {
		known, err := tx.ConnectionFingerprint(ctx, name)
		if err == nil && known == "" {
			return noConnection(ctx, tx, name)
		}
		return err
	})
}

// noConnection is the error that no connection of this name was ever used,
// with those that were.
func noConnection(ctx context.Context, tx *store.Tx, name string) error {
	known, err := tx.Connections(ctx)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for k := range known {
		names[strings.TrimSuffix(k, books.PayoutSuffix)] = true
	}
	list := "none"
	if len(names) > 0 {
		list = strings.Join(slices.Sorted(maps.Keys(names)), ", ")
	}
	return fmt.Errorf("there is no connection %q here; there are %s", name, list)
}

func sorted(by map[string]*connectionJSON) (out []*connectionJSON) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[name])
	}
	return out
}

// add adds what the books know of a connection's payments or payouts.
func (c *connectionJSON) add(o *books.OperatorStatus) {
	c.Payouts, c.Payments = c.Payouts || o.Used && o.Payouts, c.Payments || o.Used && !o.Payouts
	if o.State != store.Passing {
		c.State, c.RetryAt = string(o.State), timeOrNull(o.RetryAt)
	}
	for _, s := range o.Operations {
		j := operationJSON{Name: s.Name, Answered: s.Answered, Unanswered: s.Unanswered, Refused: s.AuthRefused}
		if s.Answered > 0 {
			j.Milliseconds = s.TotalLatency.Microseconds() / s.Answered / 1000
		}
		c.Operations = append(c.Operations, j)
	}
	if o.Case != "" {
		detail := o.Case
		if c.Case != nil {
			detail = *c.Case + "; " + detail
		}
		c.Case = &detail
	}
}

func printConnections(w io.Writer, list []*connectionJSON, asJSON bool) error {
	for _, c := range list {
		slices.SortFunc(c.Operations, func(a, b operationJSON) int { return strings.Compare(a.Name, b.Name) })
	}
	if asJSON {
		if list == nil {
			list = []*connectionJSON{}
		}
		return printJSON(w, map[string]any{"items": list})
	}
	if len(list) == 0 {
		_, err := printLine(w, "There are no connections.")
		return err
	}
	err := table(w, func(row func(...any)) {
		row("CONNECTION", "OPERATOR", "STATE", "LAST MINUTE", "CASE")
		for _, c := range list {
			row(c.Name, textOrEmpty(c.Operator), c.State, operations(c.Operations), textOrEmpty(c.Case))
		}
	})
	for _, c := range list {
		if err == nil && c.CallbackURL != nil {
			_, err = printf(w, "%s calls %s\n", c.Name, *c.CallbackURL)
		}
	}
	return err
}

func operations(list []operationJSON) string {
	var out []string
	for _, o := range list {
		text := fmt.Sprintf("%s: %d of %d answered, %d ms", o.Name, o.Answered, o.Answered+o.Unanswered, o.Milliseconds)
		if o.Refused > 0 {
			text += fmt.Sprintf(", %d refused our credentials", o.Refused)
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "no calls"
	}
	return strings.Join(out, "; ")
}

func textOrEmpty(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}
