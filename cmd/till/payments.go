package main

import (
	"context"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/store"
)

func newPayment() *cobra.Command {
	return newGroup("payment", "Look at a payment, or end one on evidence", newPaymentShow(), newPaymentResolve())
}

// findPayment returns a payment, looking with every client unless one is
// named. It returns CodePaymentNotFound.
func findPayment(ctx context.Context, s *store.Store, text, client string) (p *store.PaymentRow, err error) {
	id, err := parseID(text, "payment")
	if err != nil {
		return nil, err
	}
	look := func(owner till.ID) error {
		return s.View(ctx, func(tx *store.Tx) (err error) {
			p, err = tx.Payment(ctx, store.Ref{Client: owner, ID: id})
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
		if till.ErrorCode(err) == till.CodePaymentNotFound {
			return true, nil
		}
		found = err == nil
		return false, err
	})
	if err == nil && !found {
		err = till.Errorf(till.CodePaymentNotFound, "there is no such payment")
	}
	return p, err
}

func newPaymentShow() *cobra.Command {
	var client, database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a payment with its money and every call made for it",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				p, err := findPayment(cmd.Context(), s, args[0], client)
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
