package money

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/store"
	"till/store/lookup"
	"till/story"
)

func (k *subjectCommands) newFind() *cobra.Command {
	var secretFile, phone string
	var q story.Search
	cmd := &cobra.Command{
		Use:   "find",
		Short: "Find " + k.name + "s by phone, reference or receipt",
		Long: `Find ` + k.name + `s of all clients, or of one, newest first, at most 50: by the
phone in full form, by the client's reference, or by the operator's receipt. Use
it when somebody who asks has no id. A reference is also taken as a beginning.
Phones are printed masked.

A phone is looked up in an index under the installation's secret, from
--secret-file or from till.secret beside the database.`,
		Example: "  till " + k.name + " find --phone 242061234567\n  till " + k.name + " find --reference ORDER-1042",
		Args:    cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar(&phone, "phone", "", "the phone number in full form, as 242061234567")
	f.StringVar(&q.Reference, "reference", "", "the client's reference")
	f.StringVar(&q.Receipt, "receipt", "", "the operator's receipt")
	cli.AddAnyClient(cmd, &q.Client, "only this client, by its id (default all)")
	cli.AddSecretFile(cmd, &secretFile, ", for --phone")
	cmd.MarkFlagsOneRequired("phone", "reference", "receipt")
	cmd.MarkFlagsMutuallyExclusive("phone", "reference", "receipt")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		if q.Phone = strings.TrimPrefix(strings.ReplaceAll(phone, " ", ""), "+"); q.Phone == "" && q.Reference == "" && q.Receipt == "" {
			return errors.New("the text to look for must not be empty")
		}
		var key lookup.PhoneKey
		if q.Phone != "" {
			secret, err := c.Secret(secretFile)
			if err != nil {
				return err
			}
			if key, err = lookup.NewPhoneKey(secret); err != nil {
				return err
			}
		}
		var all []found
		var short bool
		err := c.View(func(tx *store.Tx) (err error) {
			if q.Client != till.House {
				if _, err := tx.Client(c.Context(), q.Client); err != nil {
					return err
				}
			}
			all, short, err = k.lookFor(c, tx, key, q)
			return err
		})
		if err != nil {
			return err
		}
		return printFound(c, all, short)
	})
}

// found is a payment or payout that was found.
type found struct {
	store.Subject
	client, id till.ID
	status     string
}

func (f *found) object() cli.Object {
	return cli.Object{"client_id", f.client, "kind", f.Noun, "id", f.id, "created_at", f.CreatedAt, "status", f.status, "amount", f.Amount, "phone", till.MaskPhone(f.Phone),
		"reference", cli.OrNull(f.Reference), "provider_reference", cli.OrNull(*f.ProviderReference)}
}

var foundColumns = cli.Columns[found]{
	None:  "Nothing was found.",
	Heads: []any{"CREATED", "STATUS", "AMOUNT", "PHONE", "REFERENCE", "RECEIPT", "KIND", "ID", "CLIENT"},
	Row: func(f found) []any {
		return []any{f.CreatedAt, f.status, f.Amount.Value() + " " + f.Amount.Currency, till.MaskPhone(f.Phone), cli.OrNull(f.Reference), cli.OrNull(*f.ProviderReference), f.Noun, f.id, f.client}
	},
}

// lookFor runs the search of payments or of payouts.
func (k *subjectCommands) lookFor(c *cli.Call, tx *store.Tx, key lookup.PhoneKey, q story.Search) (out []found, short bool, err error) {
	if k.name == payoutCommands.name {
		rows, short, err := story.FindPayouts(c.Context(), tx, key, q)
		for _, p := range rows {
			out = append(out, found{p.Subject(), p.ClientID, p.ID, string(p.Status)})
		}
		return out, short, err
	}
	rows, short, err := story.FindPayments(c.Context(), tx, key, q)
	for _, p := range rows {
		out = append(out, found{p.Subject(), p.ClientID, p.ID, string(p.Status)})
	}
	return out, short, err
}

// printFound prints what was found: as a table, or a line of JSON each.
func printFound(c *cli.Call, all []found, short bool) error {
	if c.JSON {
		for _, f := range all {
			if err := cli.PrintJSON(c.OutOrStdout(), f.object()); err != nil {
				return err
			}
		}
		return nil
	}
	err := foundColumns.Print(c.OutOrStdout(), all)
	if err == nil && short && len(all) > 0 {
		err = c.Print("There may be more: name the client, or look for more of the text.\n")
	}
	return err
}
