package main

import (
	"context"

	"github.com/spf13/cobra"

	"till"
	"till/account"
	"till/cmd/till/internal/cli"
	"till/config"
	"till/store"
)

func newClient() *cobra.Command {
	return cli.NewGroup("client", "Create and manage clients", newClientCreate(), newClientList(), newClientMethods(), newClientFees(), newClientPayName(),
		newClientSuspend("suspend", "suspended", "Suspend a client", suspendHelp, (*account.Accounts).Suspend),
		newClientSuspend("resume", "resumed", "Resume a suspended client", resumeHelp, (*account.Accounts).Resume))
}

func newClientCreate() *cobra.Command {
	var name, mode string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a client with a default key",
		Long: `Create a client and print its id and its default API key. Use it for each shop
or system that shall have its own wallets. The key is shown only once.`,
		Example: `  till client create --name "Marché Total" --mode live`,
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&name, "name", "", "the client's name (required)")
	cmd.Flags().StringVar(&mode, "mode", string(till.Test), "test (served by the sandbox) or live")
	cli.Require(cmd, "name")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		client, key, err := account.New(c.Store, nil).CreateClient(c.Context(), name, till.Mode(mode), cli.Actor())
		if err != nil {
			return err
		}
		return c.Say(cli.Object{"client_id", client.ID, "api_key", key}, "client   %s\nAPI key  %s\n\nThe key is not shown again.\n", client.ID, key)
	})
}

func newClientList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all clients",
		Long: `List all clients with their mode and whether they are suspended. Use it to find
a client's id.`,
		Example: `  till client list`,
		Args:    cobra.NoArgs,
	}
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		var clients []*till.Client
		err := c.Store.EachClient(c.Context(), func(client *till.Client) (bool, error) {
			clients = append(clients, client)
			return true, nil
		})
		if err != nil {
			return err
		}
		return cli.List(c, clients, clientObject, cli.Columns[*till.Client]{
			Heads: []any{"CLIENT", "MODE", "STATE", "CREATED", "NAME"},
			Row: func(x *till.Client) []any {
				state := "active"
				if x.Suspended {
					state = "suspended"
				}
				return []any{x.ID, x.Mode, state, x.CreatedAt, x.Name}
			},
		})
	})
}

func clientObject(x *till.Client) cli.Object {
	return cli.Object{"client_id", x.ID, "name", x.Name, "mode", x.Mode, "suspended", x.Suspended, "created_at", x.CreatedAt}
}

// What the two commands of newClientSuspend do, and when.
const (
	suspendHelp = `Suspend a client until it is resumed: its keys stop working. Use it when a client
must not move money any more.

Its payouts that were not sent are held, with their reserves, until it is resumed
or a person cancels them ('till payout cancel'). What was sent goes on, payments
too: customers may have paid. A payment that was not sent is not sent any more.
Unless the client is resumed before the payment's time is over, it fails.`
	resumeHelp = `Resume a suspended client: its keys work again, and its held payouts are sent
unless another hold keeps them. Use it when the reason to suspend is gone.`
)

// newClientSuspend makes the command that suspends a client or resumes it.
func newClientSuspend(verb, done, short, long string, act func(*account.Accounts, context.Context, till.ID, string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Long:    long,
		Example: "  till client " + verb + " 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11",
	}
	return cli.OnID(cmd, "client", func(c *cli.Call) error {
		if err := act(account.New(c.Store, nil), c.Context(), c.ID, cli.Actor()); err != nil {
			return err
		}
		return c.Say(cli.Object{"client_id", c.ID, "suspended", verb == "suspend"}, "client %s: %s\n", c.ID, done)
	})
}

// addMethodsFlag adds --config for commands that need the methods of a
// configuration.
func addMethodsFlag(cmd *cobra.Command, configFile *string) {
	cmd.Flags().StringVar(configFile, "config", "", "the TOML configuration, needed if it adds methods")
}

// extendMethods adds the methods of a configuration to the built-in ones, if a
// file is named.
func extendMethods(configFile string) error {
	if configFile == "" {
		return nil
	}
	methods, err := config.Methods(configFile)
	till.ExtendMethods(methods)
	return err
}

func newClientMethods() *cobra.Command {
	var configFile string
	var enable, disable []string
	cmd := &cobra.Command{
		Use:   "methods ID",
		Short: "Show or change a client's payment methods",
		Long: `Show the payment methods that a client may use, or enable and disable some. Use
it when a client signs a contract for another operator.`,
		Example: `  till client methods 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --enable airtel_money`,
	}
	cmd.Flags().StringSliceVar(&enable, "enable", nil, "methods to enable, by their codes, separated by commas")
	cmd.Flags().StringSliceVar(&disable, "disable", nil, "methods to disable, by their codes, separated by commas")
	addMethodsFlag(cmd, &configFile)
	return cli.OnID(cmd, "client", func(c *cli.Call) error {
		if err := extendMethods(configFile); err != nil {
			return err
		}
		if err := changeMethods(c.Context(), c.Store, c.ID, enable, disable); err != nil {
			return err
		}
		codes, err := methodsOf(c.Context(), c.Store, c.ID)
		if err != nil {
			return err
		}
		w := c.OutOrStdout()
		if c.JSON {
			return cli.PrintJSON(w, cli.Object{"client_id", c.ID, "methods", codes})
		}
		for _, code := range codes {
			cli.PrintLine(w, code)
		}
		return nil
	})
}

func changeMethods(ctx context.Context, s *store.Store, id till.ID, enable, disable []string) error {
	accounts := account.New(s, nil)
	for _, code := range enable {
		if err := accounts.EnableMethod(ctx, id, code, true, cli.Actor()); err != nil {
			return err
		}
	}
	for _, code := range disable {
		if err := accounts.EnableMethod(ctx, id, code, false, cli.Actor()); err != nil {
			return err
		}
	}
	return nil
}

// methodsOf returns the codes of the methods that a client may use.
func methodsOf(ctx context.Context, s *store.Store, id till.ID) (codes []string, err error) {
	codes = []string{}
	err = s.View(ctx, func(tx *store.Tx) error {
		c, err := tx.Client(ctx, id)
		if err != nil {
			return err
		}
		if c.Mode == till.Test {
			for _, m := range till.Methods() {
				if m.InSandbox() {
					codes = append(codes, m.Code)
				}
			}
			return nil
		}
		enabled, err := tx.ClientMethods(ctx, id)
		codes = append(codes, enabled...)
		return err
	})
	return codes, err
}
