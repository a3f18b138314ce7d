package money

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/engine"
	"till/store"
)

// subjectCommands is what the commands about payments, and those about payouts,
// say and do differently.
type subjectCommands struct {
	name     string // "payment" or "payout"
	names    string // what it is about: "payment", or "payout or a refund"
	notFound till.Code
	// read returns one with what became of its money after it had ended, "" if
	// nothing did.
	read func(ctx context.Context, tx *store.Tx, ref store.Ref) (p store.Subject, after string, err error)
	// endings are the values of --as when one is resolved, endingsText the same in
	// words, and long is the help.
	endings     []string
	endingsText string
	long        string
	resolve     func(ctx context.Context, d cli.Processors, ref store.Ref, r engine.Resolution) error
}

var paymentCommands = subjectCommands{
	name: "payment", names: "payment", notFound: till.CodePaymentNotFound,
	read: func(ctx context.Context, tx *store.Tx, ref store.Ref) (s store.Subject, after string, err error) {
		p, err := tx.Payment(ctx, ref)
		switch {
		case err != nil:
			return s, "", err
		case p.ReversedEvent != 0:
			after = "its money was taken back"
		case p.LateEvent != 0:
			after = "its money was credited late"
		}
		return p.Subject(), after, nil
	},
	endings: []string{"success", "failed", "reversed"}, endingsText: "success, failed or reversed",
	long: `End a payment on evidence from the operator: a statement, a letter, a screen
shot. Use it when the operator does not answer Till's checks. Your name and the
SHA-256 of the evidence are recorded. The file itself is not stored, so keep it.

A final status stays. Money for a payment that had ended is credited as late
money. Money that the operator took back (reversed) is debited from the client's
wallet; what the wallet lacks is owed.`,
	resolve: func(ctx context.Context, d cli.Processors, ref store.Ref, r engine.Resolution) error {
		return d.Payments.Resolve(ctx, ref, r)
	},
}

var payoutCommands = subjectCommands{
	name: "payout", names: "payout or a refund", notFound: till.CodePayoutNotFound,
	read: func(ctx context.Context, tx *store.Tx, ref store.Ref) (s store.Subject, after string, err error) {
		p, err := tx.Payout(ctx, ref)
		switch {
		case err != nil:
			return s, "", err
		case p.LateEvent != 0:
			after = "its money was debited late"
		}
		return p.Subject(), after, nil
	},
	endings: []string{"success", "failed"}, endingsText: "success or failed",
	long: `End a payout or a refund on evidence from the operator: a statement, a letter, a
screen shot. Use it when the operator does not answer Till's checks. Success posts
the reserve, failed releases it. Your name and the SHA-256 of the evidence are
recorded. The file itself is not stored, so keep it.

A final status stays. Money that left for a failed payout or refund is debited as
late, whatever the wallet holds.`,
	resolve: func(ctx context.Context, d cli.Processors, ref store.Ref, r engine.Resolution) error {
		return d.Payouts.Resolve(ctx, ref, r)
	},
}

func NewPayment() *cobra.Command {
	c := &paymentCommands
	return cli.NewGroup("payment", "Find or show a payment, or end it on evidence", c.newFind(), c.newShow(), c.newResolve())
}

func NewPayout() *cobra.Command {
	c := &payoutCommands
	return cli.NewGroup("payout", "Find, show, cancel or resolve a payout or a refund", c.newFind(), c.newShow(), newPayoutCancel(), c.newResolve())
}

// find returns a payment or payout, looking with every client unless one is
// named. It returns CodePaymentNotFound or CodePayoutNotFound.
func (k *subjectCommands) find(c *cli.Call, text string, client till.ID) (ref store.Ref, err error) {
	if ref.ID, err = cli.ParseID(text, k.name); err != nil {
		return ref, err
	}
	exists := func(owner till.ID) error {
		ref.Client = owner
		return c.View(func(tx *store.Tx) error {
			_, _, err := k.read(c.Context(), tx, ref)
			return err
		})
	}
	if !client.IsZero() {
		return ref, exists(client)
	}
	found := false
	err = c.Store.EachClient(c.Context(), func(owner *till.Client) (bool, error) {
		err := exists(owner.ID)
		if till.ErrorCode(err) == k.notFound {
			return true, nil
		}
		found = err == nil
		return false, err
	})
	if err == nil && !found {
		err = till.Errorf(k.notFound, "there is no such %s", strings.Replace(k.names, " a ", " ", 1))
	}
	return ref, err
}

func (k *subjectCommands) newShow() *cobra.Command {
	var client till.ID
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a " + k.names + " with its money and its calls",
		Long: `Show a ` + k.names + ` with its money, its open cases, the reference sent to the
operator, and each call to the operator. Use it to answer a client's question.`,
		Example: "  till " + k.name + " show 0197a3d2-5b20-7d11-8c4e-0a9b7c6d5e4f",
		Args:    cli.OneArg,
	}
	cli.AddAnyClient(cmd, &client, "the client's id, to find it faster")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		ref, err := k.find(c, c.Args[0], client)
		if err != nil {
			return err
		}
		f, err := books.SubjectDetail(c.Context(), c.Store, ref)
		if err != nil {
			return err
		}
		return printSubject(c, f)
	})
}
