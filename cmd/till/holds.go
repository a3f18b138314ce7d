package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/server"
	"till/store"
)

func newPayouts() *cobra.Command {
	return cli.NewGroup("payouts", "Hold payouts, release them, and list those that wait", newPayoutsHold(), newPayoutsRelease(), newPayoutsHeld())
}

func newPayoutsHold() *cobra.Command {
	return newHold("hold", "Stop payouts until they are released",
		`Stop the payouts of a client or, without --client, of all clients. Use it when
payouts must not go out: a leaked key, a wrong route. The hold is in force on each
instance when the command returns.

New payouts are answered 503 payouts_held. A payout that was not sent waits, with
its reserve and a case 'held'; its time does not run. 'till payout cancel' cancels
it. What was sent before is checked as always. 'till payouts release' ends the
hold.`, true, books.HoldPayouts)
}

func newPayoutsRelease() *cobra.Command {
	return newHold("release", "Release held payouts",
		`End the hold of a client or, without --client, of all clients. Use it when the
reason for 'till payouts hold' is gone. Payouts that waited are sent, each with a
whole new window, unless something else still holds them: a hold of the client or
of all clients, a restore ('till restored --release'), or the client's suspension
('till client resume').`, false, books.ReleasePayouts)
}

// newHold makes the command that holds payouts or releases them.
func newHold(verb, short, long string, why bool, act func(ctx context.Context, s *store.Store, client till.ID, by, reason string) error) *cobra.Command {
	var database, client, by, reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     verb,
		Short:   short,
		Long:    long,
		Example: "  till payouts " + verb + " --reason \"key of the shop leaked\" --by \"Awa N.\"",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := clientOrAll(client)
			if err != nil {
				return err
			}
			if why || reason != "" {
				if err := cli.CheckReason(reason); err != nil {
					return err
				}
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				if err := act(cmd.Context(), s, id, by, server.Redact(reason)); err != nil {
					return err
				}
				held, err := books.HeldPayouts(cmd.Context(), s, id)
				if err != nil {
					return err
				}
				return printHolds(cmd.OutOrStdout(), held, nil, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "only this client, by its id (default all)")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit log"+map[bool]string{true: " (required)"}[why])
	cli.AddBy(cmd, &by, "the person who decides (required)")
	cmd.MarkFlagRequired("by")
	if why {
		cmd.MarkFlagRequired("reason")
	}
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// clientOrAll reads a client's id; "" means all clients.
func clientOrAll(client string) (till.ID, error) {
	if client == "" {
		return store.EveryClient, nil
	}
	return cli.ParseID(client, "client")
}

func newPayoutsHeld() *cobra.Command {
	var database, client, after string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "held",
		Short: "List payout holds and the payouts that wait",
		Long: `List what holds payouts, and the payouts that wait because of it. Use it before
'till payouts release'.`,
		Example: `  till payouts held`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := clientOrAll(client)
			if err != nil {
				return err
			}
			if limit < 1 || limit > books.MaxHeld {
				return fmt.Errorf("--limit is from 1 to %d", books.MaxHeld)
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				held, err := books.HeldPayouts(cmd.Context(), s, id)
				if err != nil {
					return err
				}
				waiting, err := waitingPayouts(cmd.Context(), s, id, after, limit)
				if err != nil {
					return err
				}
				if len(waiting) == limit {
					cli.Printf(cmd.ErrOrStderr(), "till: %s shown; those after: --after %s\n", cli.Count(limit, "payout is", "payouts are"), waiting[limit-1].PayoutID)
				}
				return printHolds(cmd.OutOrStdout(), held, waiting, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "only this client, by its id (default all)")
	cmd.Flags().IntVar(&limit, "limit", 200, fmt.Sprintf("how many payouts to list, at most %d", books.MaxHeld))
	cmd.Flags().StringVar(&after, "after", "", "list from after this payout: the last id of the page before")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// waitingPayout is a payout that waits because payouts are held.
type waitingPayout struct {
	PayoutID  string            `json:"payout_id"`
	ClientID  string            `json:"client_id"`
	Status    till.PayoutStatus `json:"status"`
	Amount    string            `json:"amount"`
	Currency  string            `json:"currency"`
	CreatedAt string            `json:"created_at"`
	HeldAt    string            `json:"held_at"`
}

func waitingPayouts(ctx context.Context, s *store.Store, client till.ID, after string, limit int) ([]waitingPayout, error) {
	var last store.Ref
	if after != "" {
		var err error
		if last, err = payoutCommands.find(ctx, s, after, ""); err != nil {
			return nil, err
		}
	}
	out := []waitingPayout{}
	err := s.View(ctx, func(tx *store.Tx) error {
		out = out[:0]
		held, err := tx.HeldPayouts(ctx, client, last, limit)
		if err != nil {
			return err
		}
		refs := make([]store.Ref, len(held))
		for i, h := range held {
			refs[i] = h.Ref
		}
		rows, err := tx.Payouts(ctx, refs)
		for _, h := range held {
			if p := rows[h.Ref]; p != nil {
				out = append(out, waitingPayout{p.ID.String(), p.ClientID.String(), p.Status, p.Amount.Value(), p.Amount.Currency,
					p.CreatedAt.String(), h.Since.String()})
			}
		}
		return err
	})
	return out, err
}

// holdJSON is a hold as the commands print it.
type holdJSON struct {
	ClientID *string `json:"client_id"` // null: all
	Cause    string  `json:"cause"`     // restored, person or suspended
	Since    string  `json:"since"`
	By       string  `json:"by"`
	Reason   *string `json:"reason"`
}

// printHolds prints the holds, and the waiting payouts if there are any.
func printHolds(w io.Writer, held books.PayoutsHeld, waiting []waitingPayout, asJSON bool) error {
	if asJSON {
		holds := make([]holdJSON, len(held.Holds))
		for i, h := range held.Holds {
			holds[i] = holdJSON{cli.IDOrNull(h.Client), h.Cause, h.At.String(), h.By, cli.TextOrNull(h.Reason)}
		}
		out := map[string]any{"holds": holds, "waiting": held.Waiting}
		if waiting != nil {
			out["items"] = waiting
		}
		return cli.PrintJSON(w, out)
	}
	err := cli.Table(w, func(row func(...any)) {
		for _, h := range held.Holds {
			row("held", books.HoldScope(h), "since "+h.At.String(), "by "+h.By, books.HoldReason(h))
		}
	})
	if len(held.Holds) == 0 {
		_, err = cli.PrintLine(w, "Nothing holds payouts.")
	}
	_, told := cli.Printf(w, "%s.\n", cli.Count(held.Waiting, "payout waits", "payouts wait"))
	if err = errors.Join(err, told); err != nil || len(waiting) == 0 {
		return err
	}
	cli.PrintLine(w, "")
	return cli.Table(w, func(row func(...any)) {
		row("PAYOUT", "CLIENT", "AMOUNT", "CREATED", "HELD SINCE")
		for _, p := range waiting {
			row(p.PayoutID, p.ClientID, p.Amount+" "+p.Currency, p.CreatedAt, p.HeldAt)
		}
	})
}
