package money

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/store"
)

func NewPayouts() *cobra.Command {
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
	var client till.ID // unset: all
	var by, reason string
	cmd := &cobra.Command{
		Use:     verb,
		Short:   short,
		Long:    long,
		Example: "  till payouts " + verb + " --reason \"key of the shop leaked\" --by \"Awa N.\"",
		Args:    cobra.NoArgs,
	}
	cli.AddAnyClient(cmd, &client, "only this client, by its id (default all)")
	cli.AddReason(cmd, &reason, "why, for the audit log"+map[bool]string{true: " (required)"}[why])
	cli.AddBy(cmd, &by, "the person who decides (required)")
	cli.Require(cmd, "by")
	if why {
		cli.Require(cmd, "reason")
	}
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		if err := act(c.Context(), c.Store, client, by, reason); err != nil {
			return err
		}
		held, err := books.HeldPayouts(c.Context(), c.Store, client)
		if err != nil {
			return err
		}
		return printHolds(c, held, nil)
	})
}

func newPayoutsHeld() *cobra.Command {
	var client till.ID // unset: all
	var after string
	var limit int
	cmd := &cobra.Command{
		Use:   "held",
		Short: "List payout holds and the payouts that wait",
		Long: `List what holds payouts, and the payouts that wait because of it. Use it before
'till payouts release'.`,
		Example: `  till payouts held`,
		Args:    cobra.NoArgs,
	}
	cli.AddAnyClient(cmd, &client, "only this client, by its id (default all)")
	cli.AddLimit(cmd, &limit, books.MaxHeld, "how many payouts to list")
	cmd.Flags().StringVar(&after, "after", "", "list from after this payout: the last id of the page before")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		held, err := books.HeldPayouts(c.Context(), c.Store, client)
		if err != nil {
			return err
		}
		waiting, err := waitingPayouts(c, client, after, limit)
		if err != nil {
			return err
		}
		if len(waiting) == limit {
			c.Note("%s shown; those after: --after %s", cli.Count(limit, "payout is", "payouts are"), waiting[limit-1].ID)
		}
		return printHolds(c, held, waiting)
	})
}

// waitingPayout is a payout that waits because payouts are held.
type waitingPayout struct {
	*store.PayoutRow
	HeldAt till.Time
}

func waitingPayouts(c *cli.Call, client till.ID, after string, limit int) ([]waitingPayout, error) {
	var last store.Ref
	if after != "" {
		var err error
		if last, err = payoutCommands.find(c, after, till.ID{}); err != nil {
			return nil, err
		}
	}
	out := []waitingPayout{}
	err := c.View(func(tx *store.Tx) error {
		out = out[:0]
		held, err := tx.HeldPayouts(c.Context(), client, last, limit)
		if err != nil {
			return err
		}
		refs := make([]store.Ref, len(held))
		for i, h := range held {
			refs[i] = h.Ref
		}
		rows, err := tx.Payouts(c.Context(), refs)
		for _, h := range held {
			if p := rows[h.Ref]; p != nil {
				out = append(out, waitingPayout{p, h.Since})
			}
		}
		return err
	})
	return out, err
}

func holdObject(h store.Hold) cli.Object {
	return cli.Object{"client_id", h.Client, "cause", h.Cause, "since", h.At, "by", h.By, "reason", cli.OrNull(h.Reason)}
}

func waitingObject(p waitingPayout) cli.Object {
	return cli.Object{"payout_id", p.ID, "kind", p.Noun(), "client_id", p.ClientID, "status", p.Status, "amount", p.Amount.Value(), "currency", p.Amount.Currency,
		"created_at", p.CreatedAt, "held_at", p.HeldAt}
}

// printHolds prints the holds, and the waiting payouts if there are any.
func printHolds(c *cli.Call, held books.PayoutsHeld, waiting []waitingPayout) error {
	out := cli.Object{"holds", cli.Objects(held.Holds, holdObject)}
	if waiting != nil {
		out = out.With("items", cli.Objects(waiting, waitingObject))
	}
	return c.Show(out.With("waiting", held.Waiting), func(w io.Writer) error { return printHeld(w, held, waiting) })
}

func printHeld(w io.Writer, held books.PayoutsHeld, waiting []waitingPayout) error {
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
		row("PAYOUT", "CLIENT", "AMOUNT", "CREATED", "HELD SINCE", "KIND")
		for _, p := range waiting {
			row(p.ID, p.ClientID, p.Amount.Value()+" "+p.Amount.Currency, p.CreatedAt, p.HeldAt, p.Noun())
		}
	})
}
