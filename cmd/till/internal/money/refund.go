package money

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"till"
	"till/account"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/engine"
	"till/internal/request"
	"till/operators"
	"till/payout"
	"till/store"
	"till/store/refunds"
)

func NewRefund() *cobra.Command {
	return cli.NewGroup("refund", "Give a payment back to who paid it", newRefundCreate())
}

// refundOrder is what a person asks for.
type refundOrder struct {
	amount, reason, key, by string
}

func newRefundCreate() *cobra.Command {
	var client till.ID
	var o refundOrder
	var source operators.Source
	var journalFolder string
	cmd := &cobra.Command{
		Use:   "create PAYMENT",
		Short: "Give a payment back, all that is left or a part",
		Long: `Give a paid payment of any client back to the number that paid it, by the rules of
POST /refunds. Use it when a client cannot do it: no key at hand, no console.

The amount and the refund's fee are reserved in the client's wallet, and a running
server sends it. The command does not wait for the operator: it prints the refund
as it is then, as a rule 'pending'. You choose the key, so the same command run
twice makes one refund. For a live client, name the server's file of connections
with --config, and its journal with --journal if it keeps one.

'till payout show', 'cancel' and 'resolve' take refunds.`,
		Example: `  till refund create 0197a3d2-5b20-7d11-8c4e-0a9b7c6d5e4f --amount 3000 --reason not_delivered \
    --key 6f1c1a52-0d0c-4d5a-9a62-51f9a6f0a3c1 --by "Awa N."`,
		Args: cli.OneArg,
	}
	f := cmd.Flags()
	f.StringVar(&o.amount, "amount", "", "in minor units (default all that is left of the payment)")
	cli.AddChoice(cmd, &o.reason, "reason", till.RefundReasons, "why, one of the reasons of POST /refunds; the client reads it (required)")
	f.StringVar(&o.key, "key", "", "a UUID of your own for this refund; the same key refunds once (required)")
	cli.AddBy(cmd, &o.by, "the person who decides (required)")
	cli.AddAnyClient(cmd, &client, "the client's id, to find the payment faster")
	cli.AddSecretFile(cmd, &source.SecretFile, "")
	f.StringVar(&source.Config, "config", "", cli.ConfigUsage)
	f.StringVar(&journalFolder, "journal", "", "the folder of the server's journal of creates (default none)")
	cli.Require(cmd, "reason", "key", "by")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		if err := o.check(); err != nil {
			return err
		}
		ref, err := paymentCommands.find(c, c.Args[0], client)
		if err != nil {
			return err
		}
		var made payout.Created
		err = c.Disburser(&source, journalFolder, func(d *payout.Disburser) error {
			made, err = o.make(c, d, ref)
			return refusedRefund(err, ref, source.Config)
		})
		if err != nil {
			return err
		}
		return printRefund(c, ref, made)
	})
}

// check finds what is wrong before the database is read.
func (o *refundOrder) check() error {
	if id, err := till.ParseID(o.key); err != nil || id.IsZero() {
		return fmt.Errorf("--key must be a UUID of your own, such as %s; the same key refunds once", till.NewID(till.TimeOf(time.Now())))
	}
	if minor, ok := till.ParseMinor(o.amount); o.amount != "" && (!ok || minor == 0) {
		return errors.New("--amount is minor units that are not 0, such as 3000; leave it out to give all that is left back")
	}
	if o.reason == "" {
		return errors.New("--reason must not be empty")
	}
	return nil
}

// make asks for the refund by the function that the API calls.
func (o *refundOrder) make(c *cli.Call, d *payout.Disburser, ref store.Ref) (made payout.Created, err error) {
	var p *store.PaymentRow
	err = c.View(func(tx *store.Tx) (err error) {
		p, err = tx.Payment(c.Context(), ref)
		return err
	})
	if err != nil {
		return made, err
	}
	who, err := account.New(c.Store, nil).Open(c.Context(), ref.Client)
	if err != nil {
		return made, err
	}
	id := ref.ID.String()
	r := &payout.RefundRequest{PaymentID: &id, IdempotencyKey: &o.key, Reason: &o.reason}
	if o.amount != "" {
		r.Amount = &request.Amount{Value: &o.amount, Currency: &p.Amount.Currency}
	}
	return d.Refund(c.Context(), engine.Client{Client: who.Client, Enabled: who.Enabled, Fees: who.Fees(), Actor: o.by}, r)
}

// refusedRefund says in a sentence what the code of a refusal says to a program.
func refusedRefund(err error, ref store.Ref, config string) error {
	var e *till.Error
	if !errors.As(err, &e) {
		return err
	}
	say := func(format string, args ...any) error { return till.Errorf(e.Code, format, args...) }
	switch e.Code {
	case till.CodeKeyReused:
		used := "payout " + e.PayoutID.String()
		if !e.RefundID.IsZero() {
			used = "refund " + e.RefundID.String()
		}
		return say("this key made %s, which is not what is asked now; another refund needs another key", used)
	case till.CodeRefundExceeds:
		if *e.Refundable == 0 {
			return say("nothing is left of payment %s to give back", ref.ID)
		}
		return say("that is more than is left of payment %s: %d in minor units", ref.ID, *e.Refundable)
	case till.CodeRefundInProgress:
		return say("refund %s of this payment is open; there is no second one until it has ended: 'till payout show %s'", e.RefundID, e.RefundID)
	case till.CodeRefundNotPossible:
		return say("no connection pays out to the number that paid: the payment cannot be refunded; a live client's connections are read from --config")
	case till.CodeServiceUnavailable:
		if !e.Told && config == "" && !errors.Is(err, store.ErrUnavailable) {
			return say("the connection of payment %s is not known here: name the server's file of connections with --config", ref.ID)
		}
	}
	return err
}

// givenBack says what went back of a payment, what is on its way and what is left.
func givenBack(s till.RefundSums, currency string) string {
	text := fmt.Sprintf("%d of %d %s went back", s.Refunded+s.Late, s.Amount, currency)
	if s.Refunding > 0 {
		text += fmt.Sprintf(", %d on its way or not known", s.Refunding)
	}
	return text + fmt.Sprintf(", %d left (minor units)", s.Left())
}

// printRefund prints a refund as it is now: a server may have it already.
func printRefund(c *cli.Call, payment store.Ref, made payout.Created) error {
	var p *store.PayoutRow
	var sums map[store.Ref]till.RefundSums
	err := c.View(func(tx *store.Tx) (err error) {
		if p, err = tx.Payout(c.Context(), store.Ref{Client: payment.Client, ID: made.Payout.ID}); err != nil {
			return err
		}
		sums, err = refunds.Sums(c.Context(), tx, []store.Ref{payment})
		return err
	})
	if err != nil {
		return err
	}
	s := sums[payment]
	var reserved int64
	if !p.Status.Final() {
		reserved = p.Reserve()
	}
	out := cli.Object{"refund_id", p.ID, "payment_id", payment.ID, "client_id", payment.Client, "status", p.Status, "amount", p.Amount, "fee", cli.Minor(p.Fee),
		"reserved", cli.Minor(reserved), "left", cli.Minor(s.Left()), "idempotency_key", p.IdempotencyKey, "created_at", p.CreatedAt, "made_before", made.Replayed}
	return c.Lines(out, func(row func(...any)) {
		row("refund", p.ID)
		row("of payment", payment.ID)
		if made.Replayed {
			row("made", "before, at "+p.CreatedAt.String()+", with this key; nothing was done now")
		}
		row("status", p.Status)
		row("amount", minorUnits(p.Amount.Minor, p.Amount.Currency))
		row("fee", p.Fee)
		row("reserved", minorUnits(reserved, p.Amount.Currency)+" of the client's wallet")
		row("given back", givenBack(s, p.Amount.Currency))
		row("next", "'till payout show "+p.ID.String()+"' says what becomes of it")
	})
}

// refundRows says of which payment a refund is, and of a payment or refund what went back.
func refundRows(f *books.CaseDetail, row func(...any)) {
	if p := f.Payout; p != nil && p.IsRefund() {
		row("of payment", p.PaymentID)
		row("reason", p.Reason)
		row("road", map[till.Road]string{till.RoadRefund: "the operator's own refund call", till.RoadTransfer: "a transfer, as of a payout"}[p.Road])
	}
	if s := f.Refunds; s.Amount != 0 {
		row("given back", givenBack(s, currencyOf(f)))
	}
}

func currencyOf(f *books.CaseDetail) string {
	if f.Payment != nil {
		return f.Payment.Amount.Currency
	}
	return f.Payout.Amount.Currency
}

// refundsObject is what went back of a payment, nil if nothing ever did or was to.
func refundsObject(s till.RefundSums) any {
	if s.Amount == 0 {
		return nil
	}
	return cli.Object{"payment", cli.Minor(s.Amount), "refunded", cli.Minor(s.Refunded), "late", cli.Minor(s.Late), "refunding", cli.Minor(s.Refunding), "left", cli.Minor(s.Left())}
}

func minorUnits(n int64, currency string) string {
	return strconv.FormatInt(n, 10) + " " + currency + " (minor units)"
}
