package money

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/engine"
	"till/store"
	"till/store/refunds"
)

func (k *subjectCommands) newResolve() *cobra.Command {
	var client till.ID
	var secretFile, as, evidence, by, receipt string
	cmd := &cobra.Command{
		Use:     "resolve ID",
		Short:   "End a " + k.names + " on evidence from the operator",
		Long:    k.long,
		Example: "  till " + k.name + " resolve 0197a3d2-5b20-7d11-8c4e-0a9b7c6d5e4f --as success --evidence letter.pdf --by \"Awa N.\"",
		Args:    cli.OneArg,
	}
	f := cmd.Flags()
	f.StringVar(&as, "as", "", k.endingsText+" (required)")
	f.StringVar(&evidence, "evidence", "", "the file with the evidence, at most 64 MiB; its SHA-256 is recorded (required)")
	cli.AddBy(cmd, &by, "the person who decides (required)")
	f.StringVar(&receipt, "receipt", "", "the operator's receipt, if the evidence shows one")
	cli.AddAnyClient(cmd, &client, "the client's id, to find the "+k.name+" faster")
	cli.AddSecretFile(cmd, &secretFile, "")
	cli.Require(cmd, "as", "evidence", "by")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		if !slices.Contains(k.endings, as) {
			return errors.New("--as is " + k.endingsText)
		}
		if receipt != "" && !cli.IsPlainLine(receipt, maxReceipt) {
			return fmt.Errorf("--receipt must be plain text of at most %d characters", maxReceipt)
		}
		shown, err := cli.ReadEvidence(evidence)
		if err != nil {
			return err
		}
		r := engine.Resolution{Success: as == "success", Reversed: as == "reversed", Receipt: receipt, By: by, Evidence: shown.String(), Digest: shown.Digest}
		ref, err := k.find(c, c.Args[0], client)
		if err != nil {
			return err
		}
		err = c.Processors(secretFile, func(d cli.Processors) error { return k.resolve(c.Context(), d, ref, r) })
		if err != nil {
			return err
		}
		return k.printStatus(c, ref)
	})
}

// maxReceipt is how long a receipt may be that a resolution names.
const maxReceipt = 128

// printStatus prints what has become of a payment or payout.
func (k *subjectCommands) printStatus(c *cli.Call, ref store.Ref) error {
	var p store.Subject
	var after string
	var sums map[store.Ref]till.RefundSums
	err := c.View(func(tx *store.Tx) (err error) {
		if p, after, err = k.read(c.Context(), tx, ref); err != nil || p.PaymentID.IsZero() {
			return err
		}
		sums, err = refunds.Sums(c.Context(), tx, []store.Ref{{Client: ref.Client, ID: p.PaymentID}})
		return err
	})
	if err != nil {
		return err
	}
	text := p.Status
	if after != "" {
		text = "stays " + p.Status + "; " + after
	}
	out, name := cli.Object{"client_id", ref.Client, string(p.Noun) + "_id", ref.ID, "status", p.Status}, string(p.Noun)+" "+ref.ID.String()
	for payment, s := range sums {
		out = out.With("payment_id", payment.ID, "refunds", refundsObject(s))
		name += " of payment " + payment.ID.String()
		text += "; " + givenBack(s, p.Amount.Currency)
	}
	return c.Say(out, "%s: %s\n", name, text)
}
