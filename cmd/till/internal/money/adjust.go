package money

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
)

// maxReason is the longest reason of an adjustment, in characters.
const maxReason = 255

func NewAdjust() *cobra.Command {
	var currency, amount, id string
	var a books.Adjustment
	cmd := &cobra.Command{
		Use:   "adjust",
		Short: "Correct the balance of a client's wallet",
		Long: `Correct a client's wallet by an amount in minor units: a credit, or a debit with
a minus sign. Use it when a person has decided that a balance is wrong.

An adjustment is a line of the wallet's statement and never changes; another
adjustment corrects a mistake. You choose its id, so the same command run twice
adjusts once. A debit is limited to what is available. A credit first repays
what the client owes.`,
		Example: `  till adjust --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --id 6f1c1a52-0d0c-4d5a-9a62-51f9a6f0a3c1 \
    --amount -500 --currency XAF --reason "credited twice by mistake" --by "Awa N."`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	cli.AddClient(cmd, &a.Client, "the client's id (required)")
	f.StringVar(&currency, "currency", "", "the wallet's currency (required)")
	f.StringVar(&amount, "amount", "", "in minor units: 500 credits, -500 debits (required)")
	f.StringVar(&a.Reason, "reason", "", "why, for the audit log; the client does not see it (required)")
	cli.AddBy(cmd, &a.By, "the person who decides (required)")
	f.StringVar(&id, "id", "", "a UUID of your own for this adjustment; the same id adjusts once (required)")
	cli.Require(cmd, "client", "currency", "amount", "reason", "by")
	return cli.OnDatabase(cmd, func(c *cli.Call) (err error) {
		if a.ID, err = till.ParseID(id); err != nil || a.ID.IsZero() {
			return fmt.Errorf("--id must be a UUID of your own, such as %s; the same id adjusts once", till.NewID(till.TimeOf(time.Now())))
		}
		if a.Amount, err = parseSigned(amount, currency); err != nil {
			return err
		}
		if !cli.IsPlainLine(a.Reason, maxReason) {
			return fmt.Errorf("--reason must say why, in at most %d characters", maxReason)
		}
		done, err := books.Adjust(c.Context(), c.Store, a)
		if err != nil {
			return err
		}
		return printAdjusted(c, &done)
	})
}

// parseSigned reads an amount with an optional minus sign. It rejects two
// minus signs, a plus, a leading zero and "-0".
func parseSigned(text, currency string) (till.Money, error) {
	digits, negative := strings.CutPrefix(text, "-")
	minor, ok := till.ParseMinor(digits)
	if !ok || minor == 0 {
		return till.Money{}, fmt.Errorf("--amount is minor units that are not 0, such as 500 or -500")
	}
	if negative {
		minor = -minor
	}
	return till.Money{Minor: minor, Currency: currency}, nil
}

func printAdjusted(c *cli.Call, a *books.AdjustResult) error {
	what := "made"
	if a.Before {
		what = "was made before, nothing was done now"
	}
	return c.Say(cli.Object{"adjustment_id", a.ID, "amount", a.Amount.Value(), "balance", cli.Minor(a.Wallet.Balance), "client_id", a.ClientID,
		"created_at", a.CreatedAt, "currency", a.Amount.Currency, "made_before", a.Before, "owed", cli.Minor(a.Wallet.Owed), "transaction_id", a.EntryID},
		"adjustment %s of %s %s: %s\nbalance %d %s, owed %d\n", a.ID, a.Amount.Value(), a.Amount.Currency, what, a.Wallet.Balance, a.Amount.Currency, a.Wallet.Owed)
}
