package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/engine"
	"till/store"
)

func newPayout() *cobra.Command {
	return newGroup("payout", "Look at a payout, take one back, or end one on evidence", newPayoutShow(), newPayoutCancel(), newPayoutResolve())
}

// findPayout returns a payout, looking with every client unless one is named.
// It returns CodePayoutNotFound.
func findPayout(ctx context.Context, s *store.Store, text, client string) (p *store.PayoutRow, err error) {
	id, err := parseID(text, "payout")
	if err != nil {
		return nil, err
	}
	look := func(owner till.ID) error {
		return s.View(ctx, func(tx *store.Tx) (err error) {
			p, err = tx.Payout(ctx, store.Ref{Client: owner, ID: id})
			return err
		})
	}
	if client != "" {
		owner, err := parseID(client, "client")
		if err != nil {
			return nil, err
		}
		err = look(owner)
		return p, err
	}
	found := false
	err = eachClient(ctx, s, func(c *till.Client) (bool, error) {
		err := look(c.ID)
		if till.ErrorCode(err) == till.CodePayoutNotFound {
			return true, nil
		}
		found = err == nil
		return false, err
	})
	if err == nil && !found {
		err = till.Errorf(till.CodePayoutNotFound, "there is no such payout")
	}
	return p, err
}

func newPayoutShow() *cobra.Command {
	var client, database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a payout with its money and every call made for it",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				p, err := findPayout(cmd.Context(), s, args[0], client)
				if err != nil {
					return err
				}
				f, err := books.SubjectDetail(cmd.Context(), s, store.Ref{Client: p.ClientID, ID: p.ID})
				if err != nil {
					return err
				}
				return printSubject(cmd.OutOrStdout(), f, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "the client's id, to find it faster")
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func newPayoutResolve() *cobra.Command {
	var client, database, secretFile, as, evidence, by, receipt string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "resolve ID",
		Short: "End a payout on the operator's word that you bring",
		Long: `End a payout on the operator's word that a person brings: a statement, a
letter, a screen shot. As success, its reserve is posted; as failed, its
reserve is released. A payout that has failed keeps its status: money that left
for it is debited as a late payout, whatever the wallet holds.`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if as != "success" && as != "failed" {
				return errors.New("--as is success or failed")
			}
			if receipt != "" && !isPlainLine(receipt, maxReceipt) {
				return fmt.Errorf("--receipt must be plain text of at most %d characters", maxReceipt)
			}
			shown, err := readEvidence(evidence)
			if err != nil {
				return err
			}
			r := engine.Resolution{Success: as == "success", Receipt: receipt, By: by, Evidence: shown.String(), Digest: shown.digest}
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				p, err := findPayout(cmd.Context(), s, args[0], client)
				if err != nil {
					return err
				}
				ref := store.Ref{Client: p.ClientID, ID: p.ID}
				err = withDesks(cmd, s, database, secretFile, func(d desks) error { return d.payouts.Resolve(cmd.Context(), ref, r) })
				if err != nil {
					return err
				}
				return printResolvedPayout(cmd, s, ref, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&as, "as", "", "success or failed (required)")
	f.StringVar(&evidence, "evidence", "", "file that shows it, at most 64 MiB; its SHA-256 is recorded (required)")
	addByFlag(cmd, &by, "who says so (required)")
	f.StringVar(&receipt, "receipt", "", "the operator's receipt, where the evidence shows one")
	f.StringVar(&client, "client", "", "the client's id, to find the payout faster")
	f.StringVar(&secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	for _, name := range []string{"as", "evidence", "by"} {
		cmd.MarkFlagRequired(name)
	}
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

func printResolvedPayout(cmd *cobra.Command, s *store.Store, ref store.Ref, asJSON bool) error {
	var p *store.PayoutRow
	err := s.View(cmd.Context(), func(tx *store.Tx) (err error) {
		p, err = tx.Payout(cmd.Context(), ref)
		return err
	})
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if asJSON {
		return printJSON(w, map[string]any{"payout_id": p.ID.String(), "client_id": p.ClientID.String(), "status": p.Status})
	}
	if p.LateEvent != 0 {
		_, err = printf(w, "payout %s: stays %s; its money was debited late\n", p.ID, p.Status)
		return err
	}
	_, err = printf(w, "payout %s: %s\n", p.ID, p.Status)
	return err
}
