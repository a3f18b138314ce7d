package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"till"
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
		Short: "Show a payment with the calls made for it",
		Args:  oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				p, err := findPayment(cmd.Context(), s, args[0], client)
				if err != nil {
					return err
				}
				var attempts []*store.Attempt
				err = s.View(cmd.Context(), func(tx *store.Tx) (err error) {
					attempts, err = tx.Attempts(cmd.Context(), store.Ref{Client: p.ClientID, ID: p.ID})
					return err
				})
				if err != nil {
					return err
				}
				return printPayment(cmd.OutOrStdout(), p, attempts, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "the client's id, to find it faster")
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// attemptJSON is a call to an operator as the command prints it.
type attemptJSON struct {
	Kind                string  `json:"kind"`
	Connection          string  `json:"connection"`
	SubmissionReference string  `json:"submission_reference"`
	Outcome             string  `json:"outcome"`
	ProviderCode        string  `json:"provider_code"`
	Detail              string  `json:"detail"`
	StartedAt           string  `json:"started_at"`
	EndedAt             *string `json:"ended_at"`
	Repeats             int     `json:"repeats"`
}

func attemptsOut(attempts []*store.Attempt) []attemptJSON {
	out := make([]attemptJSON, len(attempts))
	for i, a := range attempts {
		out[i] = attemptJSON{a.Kind, a.Connection, a.Reference.String(), a.Outcome, a.Code, a.Detail,
			a.StartedAt.String(), timeOrNull(a.EndedAt), a.Repeats}
	}
	return out
}

func printPayment(w io.Writer, p *store.PaymentRow, attempts []*store.Attempt, asJSON bool) error {
	if asJSON {
		return printJSON(w, map[string]any{
			"client_id": p.ClientID.String(), "payment": json.RawMessage(p.AppendJSON(nil)), "attempts": attemptsOut(attempts),
		})
	}
	return table(w, func(row func(...any)) {
		row("payment", p.ID)
		row("client", p.ClientID)
		row("status", p.Status)
		row("resolution", p.Resolution.State)
		row("amount", fmt.Sprint(p.Amount.Minor, " ", p.Amount.Currency, " (minor units)"))
		row("fee", p.Fee)
		row("method", p.Method+" "+p.Country)
		row("phone", till.MaskPhone(p.Phone))
		row("reference", p.Reference)
		row("receipt", p.ProviderReference)
		row("failure", p.FailureReason)
		row("created", p.CreatedAt)
		row("updated", p.UpdatedAt)
		row("expires", p.ExpiresAt)
		row("next check", timeOr(p.Resolution.NextCheckAt, "-"))
		for _, a := range attempts {
			row("call", fmt.Sprintf("%s  %s to %s: %s %s %s", a.StartedAt, a.Kind, a.Connection, a.Outcome, a.Code, a.Detail))
		}
	})
}
