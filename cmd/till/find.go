package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/store"
)

// foundJSON is a payment or payout that was found, as the command prints it.
type foundJSON struct {
	ClientID  string     `json:"client_id"`
	ID        string     `json:"id"`
	CreatedAt string     `json:"created_at"`
	Status    string     `json:"status"`
	Amount    *cli.Money `json:"amount"`
	Phone     string     `json:"phone"` // masked
	Reference *string    `json:"reference"`
	Receipt   *string    `json:"provider_reference"`
}

func (c *subjectCommands) newFind() *cobra.Command {
	var client, database, secretFile, phone string
	var q books.Search
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "find",
		Short: "Find " + c.name + "s by phone, reference or receipt",
		Long: `Find ` + c.name + `s of all clients, or of one, newest first, at most 50: by the
phone in full form, by the client's reference, or by the operator's receipt. Use
it when somebody who asks has no id. A reference is also taken as a beginning.
Phones are printed masked.

A phone is looked up in an index under the installation's secret, from
--secret-file or from till.secret beside the database.`,
		Example: "  till " + c.name + " find --phone 242061234567\n  till " + c.name + " find --reference ORDER-1042",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if client != "" {
				id, err := cli.ParseID(client, "client")
				if err != nil {
					return err
				}
				q.Client = id
			}
			if q.Phone = strings.TrimPrefix(strings.ReplaceAll(phone, " ", ""), "+"); q.Phone == "" && q.Reference == "" && q.Receipt == "" {
				return errors.New("the text to look for must not be empty")
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				var key store.PhoneKey
				if q.Phone != "" {
					secret, err := cli.ReadSecret(cmd.Context(), s, database, secretFile)
					if err != nil {
						return err
					}
					if key, err = books.PhoneKey(secret); err != nil {
						return err
					}
				}
				var found []foundJSON
				var short bool
				err := s.View(cmd.Context(), func(tx *store.Tx) (err error) {
					if q.Client != till.House {
						if _, err := tx.Client(cmd.Context(), q.Client); err != nil {
							return err
						}
					}
					found, short, err = c.lookFor(cmd, tx, key, q)
					return err
				})
				if err != nil {
					return err
				}
				return printFound(cmd, found, short, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&phone, "phone", "", "the phone number in full form, as 242061234567")
	f.StringVar(&q.Reference, "reference", "", "the client's reference")
	f.StringVar(&q.Receipt, "receipt", "", "the operator's receipt")
	f.StringVar(&client, "client", "", "only this client, by its id (default all)")
	f.StringVar(&secretFile, "secret-file", "", "the installation's secret, for --phone (default till.secret beside the database)")
	cmd.MarkFlagsOneRequired("phone", "reference", "receipt")
	cmd.MarkFlagsMutuallyExclusive("phone", "reference", "receipt")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// lookFor runs the search of payments or of payouts.
func (c *subjectCommands) lookFor(cmd *cobra.Command, tx *store.Tx, key store.PhoneKey, q books.Search) (out []foundJSON, short bool, err error) {
	add := func(s store.Subject, client, id till.ID, status string) {
		amount := s.Amount
		out = append(out, foundJSON{client.String(), id.String(), s.CreatedAt.String(), status, cli.MoneyOrNull(amount), till.MaskPhone(s.Phone), cli.TextOrNull(s.Reference), cli.TextOrNull(*s.ProviderReference)})
	}
	if c.name == payoutCommands.name {
		rows, short, err := books.FindPayouts(cmd.Context(), tx, key, q)
		for _, p := range rows {
			add(p.Subject(), p.ClientID, p.ID, string(p.Status))
		}
		return out, short, err
	}
	rows, short, err := books.FindPayments(cmd.Context(), tx, key, q)
	for _, p := range rows {
		add(p.Subject(), p.ClientID, p.ID, string(p.Status))
	}
	return out, short, err
}

// printFound prints what was found: as a table, or a line of JSON each.
func printFound(cmd *cobra.Command, found []foundJSON, short, asJSON bool) error {
	w := cmd.OutOrStdout()
	if asJSON {
		for _, f := range found {
			if err := cli.PrintJSON(w, f); err != nil {
				return err
			}
		}
		return nil
	}
	if len(found) == 0 {
		_, err := cli.PrintLine(w, "Nothing was found.")
		return err
	}
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	err := cli.Table(w, func(row func(...any)) {
		row("CREATED", "STATUS", "AMOUNT", "PHONE", "REFERENCE", "RECEIPT", "ID", "CLIENT")
		for _, f := range found {
			row(f.CreatedAt, f.Status, f.Amount.Value+" "+f.Amount.Currency, f.Phone, text(f.Reference), text(f.Receipt), f.ID, f.ClientID)
		}
	})
	if err == nil && short {
		_, err = cli.PrintLine(w, "There may be more: name the client, or look for more of the text.")
	}
	return err
}
