package money

import (
	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
)

func newPayoutCancel() *cobra.Command {
	var client till.ID
	var secretFile, by, reason string
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a payout or a refund that was not sent",
		Long: `Cancel a payout or a refund of any client, also of a suspended one. Use it to free
the reserve of one that waits. The client receives payout.cancelled or
refund.cancelled.

One that may have been sent is refused. Till checks it until the operator decides
it.`,
		Example: `  till payout cancel 0197a3d2-5b20-7d11-8c4e-0a9b7c6d5e4f --reason "client closed the order" --by "Awa N."`,
		Args:    cli.OneArg,
	}
	cli.AddBy(cmd, &by, "the person who decides (required)")
	cli.AddReason(cmd, &reason, "why, for the audit log (required)")
	cli.AddAnyClient(cmd, &client, "the client's id, to find the payout faster")
	cli.AddSecretFile(cmd, &secretFile, "")
	cli.Require(cmd, "by", "reason")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		ref, err := payoutCommands.find(c, c.Args[0], client)
		if err != nil {
			return err
		}
		err = c.Processors(secretFile, func(d cli.Processors) error {
			_, err := d.Payouts.CancelFor(c.Context(), ref, by, reason)
			return err
		})
		if err != nil {
			return err
		}
		return payoutCommands.printStatus(c, ref)
	})
}
