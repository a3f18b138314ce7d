package main

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/checkout"
	"till/cmd/till/internal/cli"
	"till/privacy"
	"till/store"
	"till/store/checkouts"
	"till/store/lookup"
)

// personRecordJSON is a payment, payout or checkout about a person, as the command prints it.
type personRecordJSON struct {
	Kind     string            `json:"kind"`
	ClientID string            `json:"client_id"`
	Payment  json.RawMessage   `json:"payment,omitempty"`
	Payout   json.RawMessage   `json:"payout,omitempty"`
	Checkout json.RawMessage   `json:"checkout,omitempty"`
	Asked    []askedJSON       `json:"asked,omitempty"` // by the checkout, at this number
	Events   []json.RawMessage `json:"events"`
}

// askedJSON is an ask of a checkout.
type askedJSON struct {
	N       int    `json:"n"`
	AskedAt string `json:"asked_at"`
}

func newPersonData() *cobra.Command {
	var secretFile string
	cmd := &cobra.Command{
		Use:   "person-data PHONE",
		Short: "Show all that is stored about a phone number",
		Long: `Show every payment and payout of a phone number, of all clients, oldest first, and
the checkouts that name it or have asked it, and whether 'till pages block' has
blocked it. With --json each is a line with all
its members, and payments and payouts with all their events. Use it when
somebody asks what is stored about them.

The phone is looked up in an index under the installation's secret, from
--secret-file or from till.secret beside the database.`,
		Example: "  till person-data 242061234567 --json",
		Args:    cli.OneArg,
	}
	cmd.Flags().StringVar(&secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		phone, err := parsePhone(c.Args[0])
		if err != nil {
			return err
		}
		secret, err := cli.ReadSecret(c.Context(), c.Store, c.Database, secretFile)
		if err != nil {
			return err
		}
		key, err := lookup.NewPhoneKey(secret)
		if err != nil {
			return err
		}
		block, blocked, err := blockOf(c, secret, phone)
		if err != nil {
			return err
		}
		if c.JSON {
			err := privacy.PersonData(c.Context(), c.Store, key, phone, func(r *privacy.PersonRecord) error {
				return cli.PrintJSON(c.OutOrStdout(), personRecord(r))
			})
			if err != nil || !blocked {
				return err
			}
			return cli.PrintJSON(c.OutOrStdout(), cli.Object{"kind", "page_block", "client_id", nil, "blocked_at", block.At, "reason", block.Reason, "events", []string{}})
		}
		if err := printPersonData(c.Command, c.Store, key, phone); err != nil || !blocked {
			return err
		}
		return c.Print("No page asks this number since %s: %s\n", block.At, block.Reason)
	})
}

// blockOf returns whether the house has blocked a number on pages.
func blockOf(c *cli.Call, secret []byte, phone string) (block checkouts.Block, blocked bool, err error) {
	limits, err := checkout.NewLimits(secret)
	if err != nil {
		return block, false, err
	}
	err = c.View(func(tx *store.Tx) error {
		block, blocked, err = limits.BlockOf(c.Context(), tx, phone)
		return err
	})
	return block, blocked, err
}

// The shortest and the longest phone number in full form, in digits (E.164).
const (
	minPhoneDigits = 7
	maxPhoneDigits = 15
)

// parsePhone reads a phone number in full form. Its error does not repeat the number.
func parsePhone(text string) (string, error) {
	phone := strings.TrimPrefix(strings.ReplaceAll(text, " ", ""), "+")
	if len(phone) < minPhoneDigits || len(phone) > maxPhoneDigits || strings.Trim(phone, "0123456789") != "" {
		return "", errors.New("this is not a phone number in full form, as 242061234567")
	}
	return phone, nil
}

func personRecord(r *privacy.PersonRecord) personRecordJSON {
	out := personRecordJSON{Kind: string(till.SubjectPayment), ClientID: r.Client.String(), Events: []json.RawMessage{}}
	switch {
	case r.Payment != nil:
		out.Payment = r.Payment.AppendJSON(nil)
	case r.Payout != nil:
		out.Kind, out.Payout = string(till.SubjectPayout), r.Payout.AppendJSON(nil)
	default:
		out.Kind, out.Checkout = string(till.NounCheckout), r.Checkout.AppendJSON(nil, "", r.Asks)
		for _, a := range r.Asks {
			if a.Phone != "" {
				out.Asked = append(out.Asked, askedJSON{a.N, a.AskedAt.String()})
			}
		}
	}
	for _, e := range r.Events {
		out.Events = append(out.Events, e.AppendJSON(nil))
	}
	return out
}

// printPersonData prints a table, and how much there is.
func printPersonData(cmd *cobra.Command, s *store.Store, key lookup.PhoneKey, phone string) error {
	w := cmd.OutOrStdout()
	var payments, payouts, orders, events int
	var err error
	printed := cli.Table(w, func(row func(...any)) {
		row("CREATED", "KIND", "STATUS", "AMOUNT", "METHOD", "REFERENCE", "EVENTS", "ID", "CLIENT")
		err = privacy.PersonData(cmd.Context(), s, key, phone, func(r *privacy.PersonRecord) error {
			if c := r.Checkout; c != nil {
				orders++
				row(c.CreatedAt, till.NounCheckout, c.State, c.Amount.Value()+" "+c.Amount.Currency, "", c.Reference, "", c.ID, c.ClientID)
				return nil
			}
			kind, status := string(till.SubjectPayment), ""
			var subject store.Subject
			if r.Payment != nil {
				subject, status = r.Payment.Subject(), string(r.Payment.Status)
				payments++
			} else {
				subject, status, kind = r.Payout.Subject(), string(r.Payout.Status), string(till.SubjectPayout)
				payouts++
			}
			events += len(r.Events)
			row(subject.CreatedAt, kind, status, subject.Amount.Value()+" "+subject.Amount.Currency, subject.Method, subject.Reference, len(r.Events), subject.Ref.ID, subject.Ref.Client)
			return nil
		})
	})
	if err = errors.Join(err, printed); err != nil {
		return err
	}
	_, err = cli.Printf(w, "%s, %s, %s, %s. With --json all their members are printed.\n",
		cli.Count(payments, "payment", "payments"), cli.Count(payouts, "payout", "payouts"), cli.Count(orders, "checkout", "checkouts"), cli.Count(events, "event", "events"))
	return err
}
