package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"till"
	"till/account"
	"till/cmd/till/internal/cli"
	"till/config"
	"till/store"
)

func newClient() *cobra.Command {
	return cli.NewGroup("client", "Create and manage clients", newClientCreate(), newClientList(), newClientMethods(), newClientFees(),
		newClientSuspend("suspend", "suspended", "Suspend a client", suspendHelp, (*account.Accounts).Suspend),
		newClientSuspend("resume", "resumed", "Resume a suspended client", resumeHelp, (*account.Accounts).Resume))
}

func newClientCreate() *cobra.Command {
	var name, mode, database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a client with a default key",
		Long: `Create a client and print its id and its default API key. Use it for each shop
or system that shall have its own wallets. The key is shown only once.`,
		Example: `  till client create --name "Marché Total" --mode live`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				c, key, err := account.New(s, nil).CreateClient(cmd.Context(), name, till.Mode(mode), cli.Actor())
				if err != nil {
					return err
				}
				w := cmd.OutOrStdout()
				if asJSON {
					return cli.PrintJSON(w, struct {
						ClientID string `json:"client_id"`
						APIKey   string `json:"api_key"`
					}{c.ID.String(), key})
				}
				_, err = cli.Printf(w, "client   %s\nAPI key  %s\n\nThe key is not shown again.\n", c.ID, key)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the client's name (required)")
	cmd.Flags().StringVar(&mode, "mode", string(till.Test), "test (served by the sandbox) or live")
	cmd.MarkFlagRequired("name")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// clientJSON is a client as the commands print it.
type clientJSON struct {
	ClientID  string    `json:"client_id"`
	Name      string    `json:"name"`
	Mode      till.Mode `json:"mode"`
	Suspended bool      `json:"suspended"`
	CreatedAt string    `json:"created_at"`
}

func newClientList() *cobra.Command {
	var database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all clients",
		Long: `List all clients with their mode and whether they are suspended. Use it to find
a client's id.`,
		Example: `  till client list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				items := []clientJSON{}
				err := s.EachClient(cmd.Context(), func(c *till.Client) (bool, error) {
					items = append(items, clientJSON{c.ID.String(), c.Name, c.Mode, c.Suspended, c.CreatedAt.String()})
					return true, nil
				})
				if err != nil {
					return err
				}
				return printClients(cmd.OutOrStdout(), items, asJSON)
			})
		},
	}
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

func printClients(w io.Writer, items []clientJSON, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w, map[string]any{"items": items})
	}
	return cli.Table(w, func(row func(...any)) {
		row("CLIENT", "MODE", "STATE", "CREATED", "NAME")
		for _, c := range items {
			state := "active"
			if c.Suspended {
				state = "suspended"
			}
			row(c.ClientID, c.Mode, state, c.CreatedAt, c.Name)
		}
	})
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
	var database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Long:    long,
		Example: "  till client " + verb + " 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11",
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := cli.ParseID(args[0], "client")
			if err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				if err := act(account.New(s, nil), cmd.Context(), id, cli.Actor()); err != nil {
					return err
				}
				w := cmd.OutOrStdout()
				if asJSON {
					return cli.PrintJSON(w, map[string]any{"client_id": id.String(), "suspended": verb == "suspend"})
				}
				_, err := cli.Printf(w, "client %s: %s\n", id, done)
				return err
			})
		},
	}
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
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
	var database, configFile string
	var enable, disable []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "methods ID",
		Short: "Show or change a client's payment methods",
		Long: `Show the payment methods that a client may use, or enable and disable some. Use
it when a client signs a contract for another operator.`,
		Example: `  till client methods 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --enable airtel_money`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := cli.ParseID(args[0], "client")
			if err != nil {
				return err
			}
			if err := extendMethods(configFile); err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				if err := changeMethods(cmd.Context(), s, id, enable, disable); err != nil {
					return err
				}
				codes, err := methodsOf(cmd.Context(), s, id)
				if err != nil {
					return err
				}
				w := cmd.OutOrStdout()
				if asJSON {
					return cli.PrintJSON(w, map[string]any{"client_id": id.String(), "methods": codes})
				}
				for _, code := range codes {
					cli.PrintLine(w, code)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringSliceVar(&enable, "enable", nil, "methods to enable, by their codes, separated by commas")
	cmd.Flags().StringSliceVar(&disable, "disable", nil, "methods to disable, by their codes, separated by commas")
	addMethodsFlag(cmd, &configFile)
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
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
