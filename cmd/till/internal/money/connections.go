package money

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"till/books"
	"till/cmd/till/internal/cli"
	"till/operators"
	"till/store"
)

func NewConnections() *cobra.Command {
	var source operators.Source
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
	}
	cmd.Flags().StringVar(&source.SecretFile, "secret-file", "", "the file of the installation's secret (default till.secret beside the SQLite file)")
	cli.AddOperatorFlags(cmd, &source.Config, &source.BaseURL)
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		source.Database = c.Database
		list, err := operators.ListConnections(c.Context(), c.Store, &source)
		if err != nil {
			return err
		}
		return PrintConnections(c, list)
	})
}

// connectionObject is a connection. Its operator is null where no configuration was read.
func connectionObject(x *operators.ConnectionStatus) cli.Object {
	return cli.Object{"name", x.Name, "operator", cli.OrNull(x.Operator), "configured", x.Configured, "payments", x.Payments, "payouts", x.Payouts,
		"state", x.State, "retry_at", x.RetryAt, "operations", cli.Objects(x.Operations, operationObject),
		"callback_url", cli.OrNull(x.CallbackURL), "case", cli.OrNull(x.Case)}
}

// operationObject is how the calls of an operation went; milliseconds are those of a call
// that was answered, on average.
func operationObject(o books.OperationCalls) cli.Object {
	return cli.Object{"name", o.Name, "answered", o.Answered, "unanswered", o.Unanswered, "refused", o.AuthRefused, "milliseconds", o.MeanLatency().Milliseconds()}
}

// reportOperatorCases prints the problems of connections before the cases of
// payments: they belong to no client.
func reportOperatorCases(c *cli.Call) error {
	var cases []*store.OperatorCase
	err := c.View(func(tx *store.Tx) (err error) {
		cases, err = tx.OperatorCases(c.Context(), false)
		return err
	})
	for _, x := range cases {
		if c.JSON {
			c.Note("the connection %s: %s", x.Connection, x.Detail)
		} else if err == nil {
			err = c.Print("The connection %s, since %s: %s.\n", x.Connection, x.OpenedAt, x.Detail)
		}
	}
	return err
}

var connectionColumns = cli.Columns[*operators.ConnectionStatus]{
	None:  "There are no connections.",
	Heads: []any{"CONNECTION", "OPERATOR", "STATE", "LAST MINUTE", "CASE"},
	Row: func(x *operators.ConnectionStatus) []any {
		return []any{x.Name, cli.OrNull(x.Operator), x.State, operations(x.Operations), cli.OrNull(x.Case)}
	},
}

func PrintConnections(c *cli.Call, list []*operators.ConnectionStatus) error {
	err := cli.List(c, list, connectionObject, connectionColumns)
	for _, x := range list {
		if err == nil && !c.JSON && x.CallbackURL != "" {
			err = c.Print("%s calls %s\n", x.Name, x.CallbackURL)
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
