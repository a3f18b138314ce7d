package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/engine"
	"till/store"
)

func (c *subjectCommands) newResolve() *cobra.Command {
	var client, database, secretFile, as, evidence, by, receipt string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "resolve ID",
		Short:   "End a " + c.name + " on evidence from the operator",
		Long:    c.long,
		Example: "  till " + c.name + " resolve 0197a3d2-5b20-7d11-8c4e-0a9b7c6d5e4f --as success --evidence letter.pdf --by \"Awa N.\"",
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(c.endings, as) {
				return errors.New("--as is " + c.endingsText)
			}
			if receipt != "" && !cli.IsPlainLine(receipt, maxReceipt) {
				return fmt.Errorf("--receipt must be plain text of at most %d characters", maxReceipt)
			}
			shown, err := cli.ReadEvidence(evidence)
			if err != nil {
				return err
			}
			r := engine.Resolution{Success: as == "success", Reversed: as == "reversed", Receipt: receipt, By: by, Evidence: shown.String(), Digest: shown.Digest}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				ref, err := c.find(cmd.Context(), s, args[0], client)
				if err != nil {
					return err
				}
				err = cli.WithProcessors(cmd, s, database, secretFile, func(d cli.Processors) error { return c.resolve(cmd.Context(), d, ref, r) })
				if err != nil {
					return err
				}
				return c.printStatus(cmd, s, ref, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&as, "as", "", c.endingsText+" (required)")
	f.StringVar(&evidence, "evidence", "", "the file with the evidence, at most 64 MiB; its SHA-256 is recorded (required)")
	cli.AddBy(cmd, &by, "the person who decides (required)")
	f.StringVar(&receipt, "receipt", "", "the operator's receipt, if the evidence shows one")
	f.StringVar(&client, "client", "", "the client's id, to find the "+c.name+" faster")
	f.StringVar(&secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	for _, name := range []string{"as", "evidence", "by"} {
		cmd.MarkFlagRequired(name)
	}
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// maxReceipt is how long a receipt may be that a resolution names.
const maxReceipt = 128

// printStatus prints what has become of a payment or payout.
func (c *subjectCommands) printStatus(cmd *cobra.Command, s *store.Store, ref store.Ref, asJSON bool) error {
	var p store.Subject
	var after string
	err := s.View(cmd.Context(), func(tx *store.Tx) (err error) {
		p, after, err = c.read(cmd.Context(), tx, ref)
		return err
	})
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	switch {
	case asJSON:
		return cli.PrintJSON(w, map[string]any{c.name + "_id": ref.ID.String(), "client_id": ref.Client.String(), "status": p.Status})
	case after != "":
		_, err = cli.Printf(w, "%s %s: stays %s; %s\n", c.name, ref.ID, p.Status, after)
	default:
		_, err = cli.Printf(w, "%s %s: %s\n", c.name, ref.ID, p.Status)
	}
	return err
}
