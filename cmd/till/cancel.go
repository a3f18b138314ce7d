package main

import (
	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/server"
	"till/store"
)

func newPayoutCancel() *cobra.Command {
	var client, database, secretFile, by, reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a payout that was not sent",
		Long: `Cancel a payout of any client, also of a suspended one. Use it to free the
reserve of a payout that waits. The client receives payout.cancelled.

A payout that may have been sent is refused. Till checks it until the operator
decides it.`,
		Example: `  till payout cancel 0197a3d2-5b20-7d11-8c4e-0a9b7c6d5e4f --reason "client closed the order" --by "Awa N."`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckReason(reason); err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				ref, err := payoutCommands.find(cmd.Context(), s, args[0], client)
				if err != nil {
					return err
				}
				err = cli.WithProcessors(cmd, s, database, secretFile, func(d cli.Processors) error {
					_, err := d.Payouts.CancelFor(cmd.Context(), ref, by, server.Redact(reason))
					return err
				})
				if err != nil {
					return err
				}
				return payoutCommands.printStatus(cmd, s, ref, asJSON)
			})
		},
	}
	f := cmd.Flags()
	cli.AddBy(cmd, &by, "the person who decides (required)")
	f.StringVar(&reason, "reason", "", "why, for the audit log (required)")
	f.StringVar(&client, "client", "", "the client's id, to find the payout faster")
	f.StringVar(&secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	cmd.MarkFlagRequired("by")
	cmd.MarkFlagRequired("reason")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}
