package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"till/books"
	"till/server"
	"till/store"
)

func newPayoutCancel() *cobra.Command {
	var client, database, secretFile, by, reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Take a payout back that was not sent",
		Long: `Take a payout back, whoever's it is, also a suspended client's. It works only
while nothing was sent; then the reserve is released and the client is told by
payout.cancelled. What may have been sent is refused: it is asked about, and ends
on the operator's word.`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !isPlainLine(reason, books.MaxReason) {
				return fmt.Errorf("--reason must say why on one line, in at most %d characters", books.MaxReason)
			}
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				p, err := findPayout(cmd.Context(), s, args[0], client)
				if err != nil {
					return err
				}
				ref := store.Ref{Client: p.ClientID, ID: p.ID}
				err = withDesks(cmd, s, database, secretFile, func(d desks) error {
					_, err := d.payouts.CancelFor(cmd.Context(), ref, by, server.Redact(reason))
					return err
				})
				if err != nil {
					return err
				}
				return printResolvedPayout(cmd, s, ref, asJSON)
			})
		},
	}
	f := cmd.Flags()
	addByFlag(cmd, &by, "who says so (required)")
	f.StringVar(&reason, "reason", "", "why, for the audit log (required)")
	f.StringVar(&client, "client", "", "the client's id, to find the payout faster")
	f.StringVar(&secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	cmd.MarkFlagRequired("by")
	cmd.MarkFlagRequired("reason")
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
	return cmd
}
