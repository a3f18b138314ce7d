package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/server"
	"till/store"
)

func newStrays() *cobra.Command {
	var database string
	var f store.StrayFilter
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "strays",
		Aliases: []string{"stray"},
		Short:   "List money that names us and matches nothing here",
		Long: `List strays: money that names us and that belongs to no payment or payout here.
A callback came for a payment that is not here, or 'till reconcile --apply' read a
line with a reference of our form. Such money was lost with a restored backup, or
is another system's. Use it after a restore. A callback only claims money; a line
of a statement confirms it.

A stray closes by itself when its client repeats the create with the same key and
the payment is credited. Otherwise a person decides: 'till strays attribute' gives
the money to a client by an adjustment, 'till strays foreign' closes it as not
ours. If an attributed stray's payment is credited later, the same commit takes
the adjustment back.`,
		Example: `  till strays --connection mtn-cg`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Limit < 1 || f.Limit > books.MaxStrayPage {
				return fmt.Errorf("--limit is from 1 to %d", books.MaxStrayPage)
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				strays, err := books.ListStrays(cmd.Context(), s, f)
				if err != nil {
					return err
				}
				if len(strays) == 0 && f.Connection != "" {
					if err := cli.CheckConnection(cmd.Context(), s, f.Connection); err != nil {
						return err
					}
				}
				if len(strays) == f.Limit {
					cli.Printf(cmd.ErrOrStderr(), "till: %s shown; there may be more: --limit, or close some\n", cli.Count(f.Limit, "stray is", "strays are"))
				}
				return printStrays(cmd.OutOrStdout(), strays, asJSON)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Connection, "connection", "", "only this connection (default all)")
	flags.BoolVar(&f.All, "all", false, "list open and closed strays, newest first")
	flags.IntVar(&f.Limit, "limit", 200, fmt.Sprintf("how many to list, at most %d", books.MaxStrayPage))
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	cmd.AddCommand(newStrayShow(), newStrayAttribute(), newStrayForeign())
	return cmd
}

// reportStrays prints how many strays are open.
func reportStrays(cmd *cobra.Command, s *store.Store) error {
	n, err := books.CountOpenStrays(cmd.Context(), s)
	if err == nil && n > 0 {
		cli.Printf(cmd.ErrOrStderr(), "till: %s: money that names us and that nobody has; see 'till strays'\n", books.OpenStraysText(n))
	}
	return err
}

// strayJSON is a stray as the command prints it.
type strayJSON struct {
	StrayID     string  `json:"stray_id"`
	Connection  string  `json:"connection"`
	Direction   *string `json:"direction"` // in or out; null: nobody says
	Source      string  `json:"source"`
	SeenAt      string  `json:"seen_at"`
	Reference   *string `json:"reference"`
	SubjectID   *string `json:"subject_id"`
	ClientID    *string `json:"client_id"` // whom it names
	Receipt     *string `json:"receipt"`
	Claimed     *string `json:"claimed"` // what a callback says
	Amount      *string `json:"amount"`  // claimed, unless it is confirmed
	Currency    *string `json:"currency"`
	ConfirmedAt *string `json:"confirmed_at"`
	Confirmed   *string `json:"confirmed_by"`
	Closed      *string `json:"closed"` // attributed, credited or foreign
	ClosedAt    *string `json:"closed_at"`
	ClosedBy    *string `json:"closed_by"`
	Reason      *string `json:"reason"`
	Evidence    *string `json:"evidence"`      // SHA-256
	OwnerID     *string `json:"owner_id"`      // the client that has the money
	GivenID     *string `json:"attributed_to"` // ever
	SettledID   *string `json:"settled_id"`
	TakenBack   bool    `json:"taken_back"`
}

func strayOut(s *store.Stray) strayJSON {
	out := strayJSON{
		StrayID: s.ID.String(), Connection: s.Connection, Direction: cli.TextOrNull(s.Direction), Source: s.Source, SeenAt: s.SeenAt.String(),
		Reference: cli.IDOrNull(s.Reference), SubjectID: cli.IDOrNull(s.Subject), ClientID: cli.IDOrNull(s.Client), Receipt: cli.TextOrNull(s.Receipt), Claimed: cli.TextOrNull(s.Claimed),
		ConfirmedAt: cli.TimeOrNull(s.ConfirmedAt), Confirmed: cli.TextOrNull(s.Confirmed), Closed: cli.TextOrNull(s.Why), ClosedAt: cli.TimeOrNull(s.ClosedAt), ClosedBy: cli.TextOrNull(s.ClosedBy),
		Reason: cli.TextOrNull(s.Reason), Evidence: cli.TextOrNull(hex.EncodeToString(s.Evidence)), OwnerID: cli.IDOrNull(s.Owner), GivenID: cli.IDOrNull(s.Given), SettledID: cli.IDOrNull(s.Settled), TakenBack: s.TakenBack,
	}
	if s.Amount.Currency != "" {
		out.Amount, out.Currency = cli.TextOrNull(s.Amount.Value()), cli.TextOrNull(s.Amount.Currency)
	}
	return out
}

// claimText says what is claimed and what is confirmed.
func claimText(s *store.Stray) string {
	amount := "an amount that is not said"
	if s.Amount.Currency != "" {
		amount = s.Amount.Value() + " " + s.Amount.Currency
	}
	switch {
	case !s.ConfirmedAt.IsZero():
		return amount + ", confirmed by a statement"
	case s.Claimed == "":
		return amount + ", claimed by a callback that does not say what became of it"
	}
	return amount + ", claimed: " + s.Claimed
}

// identifiersText lists the reference, id and receipt of a stray.
func identifiersText(s *store.Stray) string {
	var out []string
	for _, n := range []struct {
		word  string
		value *string
	}{{"reference", cli.IDOrNull(s.Reference)}, {"id", cli.IDOrNull(s.Subject)}, {"receipt", cli.TextOrNull(s.Receipt)}} {
		if n.value != nil {
			out = append(out, n.word+" "+*n.value)
		}
	}
	return strings.Join(out, ", ")
}

func printStrays(w io.Writer, strays []*store.Stray, asJSON bool) error {
	if asJSON {
		items := make([]strayJSON, len(strays))
		for i, s := range strays {
			items[i] = strayOut(s)
		}
		return cli.PrintJSON(w, map[string]any{"items": items})
	}
	if len(strays) == 0 {
		_, err := cli.PrintLine(w, "There are no strays.")
		return err
	}
	return cli.Table(w, func(row func(...any)) {
		row("STRAY", "SEEN", "CONNECTION", "WAY", "MONEY", "CLIENT", "CLOSED", "NAMES")
		for _, s := range strays {
			row(s.ID, s.SeenAt, s.Connection, cli.OrDash(cli.TextOrNull(s.Direction)), claimText(s), cli.OrDash(cli.IDOrNull(s.Client)), cli.OrDash(cli.TextOrNull(s.Why)), identifiersText(s))
		}
	})
}

func newStrayShow() *cobra.Command {
	var database, secretFile string
	var body, asJSON bool
	cmd := &cobra.Command{
		Use:   "show STRAY",
		Short: "Show a stray and its callback",
		Long: `Show a stray: what was claimed, what is confirmed, and how it was closed. Use it
before you decide whose money it is.`,
		Example: `  till strays show 0197a3d2-7d42-7f33-8e60-2cbd9e8f7061 --body`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := cli.ParseID(args[0], "stray")
			if err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				stray, err := books.ShowStray(cmd.Context(), s, id)
				if err != nil {
					return err
				}
				var text []byte
				if body {
					ring, err := cli.ReadKeyring(cmd.Context(), s, database, secretFile)
					if err != nil {
						return err
					}
					b, err := books.NewStrays(s, ring)
					if err != nil {
						return err
					}
					if text, err = b.Body(stray); err != nil {
						return err
					}
				}
				return printStray(cmd.OutOrStdout(), stray, text, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&body, "body", false, "also show the callback's body, which may name a customer and is kept encrypted")
	cmd.Flags().StringVar(&secretFile, "secret-file", "", "the installation's secret, for --body (default till.secret beside the database)")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

func printStray(w io.Writer, s *store.Stray, body []byte, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w, struct {
			strayJSON
			Body *string `json:"body"`
		}{strayOut(s), cli.TextOrNull(string(body))})
	}
	err := cli.Table(w, func(row func(...any)) {
		row("stray", s.ID)
		row("seen", s.SeenAt, "by a "+s.Source)
		row("connection", s.Connection)
		row("way", cli.OrDash(cli.TextOrNull(s.Direction)))
		row("money", claimText(s))
		row("names", identifiersText(s))
		row("client", cli.OrDash(cli.IDOrNull(s.Client)))
		row("confirmed", cli.OrDash(cli.TextOrNull(s.Confirmed)))
		row("closed", cli.OrDash(cli.TextOrNull(s.Why)), cli.TimeOr(s.ClosedAt, "-"), cli.OrDash(cli.TextOrNull(s.ClosedBy)), cli.OrDash(cli.TextOrNull(s.Reason)))
		row("owner", cli.OrDash(cli.IDOrNull(s.Owner)), cli.OrDash(cli.IDOrNull(s.Settled)))
		if s.TakenBack {
			row("", "it had been attributed before, which was taken back")
		}
	})
	if err == nil && body != nil {
		_, err = cli.Printf(w, "%s\n", body)
	}
	return err
}

func newStrayAttribute() *cobra.Command {
	var database, client, amount, currency, evidence string
	var a books.Attribution
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "attribute STRAY",
		Short: "Give a stray's money to a client, on evidence",
		Long: `Give a stray's money to a client, or take it if the money went out: by an
adjustment that has the stray's id, once. Use it when evidence shows whose money
it is. The wallet's balance is no limit: what is not available is owed. A stray
whose payment is here is refused. If the payment is credited later, the same
commit takes the adjustment back.

If no statement has confirmed the stray, give what the evidence shows: --amount,
--currency and, if the stray does not say it, --way.`,
		Example: `  till strays attribute 0197a3d2-7d42-7f33-8e60-2cbd9e8f7061 --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 \
    --evidence letter.pdf --by "Awa N."`,
		Args: cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if a.Stray, err = cli.ParseID(args[0], "stray"); err != nil {
				return err
			}
			if a.Client, err = cli.ParseID(client, "client"); err != nil {
				return err
			}
			if (amount == "") != (currency == "") {
				return errors.New("--amount and --currency go together")
			}
			if amount != "" {
				minor, ok := till.ParseMinor(amount)
				if !ok || minor == 0 {
					return errors.New("--amount is minor units that are not 0, such as 500")
				}
				a.Amount = till.Money{Minor: minor, Currency: currency}
			}
			shown, err := cli.ReadEvidence(evidence)
			if err != nil {
				return err
			}
			a.Evidence, a.Named = shown.Digest, shown.Name
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				done, err := books.AttributeStray(cmd.Context(), s, a)
				if err != nil {
					return err
				}
				return printAttributed(cmd.OutOrStdout(), &done, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&client, "client", "", "the client whose money it is (required)")
	cli.AddBy(cmd, &a.By, "the person who decides (required)")
	f.StringVar(&evidence, "evidence", "", "the file with the evidence, at most 64 MiB; its SHA-256 is recorded (required)")
	f.StringVar(&amount, "amount", "", "the amount that the evidence shows, in minor units, if no statement has confirmed it")
	f.StringVar(&currency, "currency", "", "the currency that the evidence shows")
	f.StringVar(&a.Direction, "way", "", "in or out, if the stray does not say it")
	for _, name := range []string{"client", "by", "evidence"} {
		cmd.MarkFlagRequired(name)
	}
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

func printAttributed(w io.Writer, a *books.AttributeResult, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w, struct {
			strayJSON
			Before  bool   `json:"made_before"`
			Balance string `json:"balance"`
			Owed    string `json:"owed"`
		}{strayOut(a.Stray), a.Before, till.Money{Minor: a.Wallet.Balance}.Value(), till.Money{Minor: a.Wallet.Owed}.Value()})
	}
	what := "attributed"
	if a.Before {
		what = "was attributed before, nothing was done now"
	}
	_, err := cli.Printf(w, "stray %s of %s %s: %s\nbalance %d %s, owed %d\n", a.ID, a.Amount.Value(), a.Amount.Currency, what, a.Wallet.Balance, a.Amount.Currency, a.Wallet.Owed)
	return err
}

func newStrayForeign() *cobra.Command {
	var database, reason, by string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "foreign STRAY",
		Short: "Close a stray whose money is not ours",
		Long: `Close a stray because its money is not ours. Use it when another system uses the
same operator account.`,
		Example: `  till strays foreign 0197a3d2-7d42-7f33-8e60-2cbd9e8f7061 --reason "payment of the old shop" --by "Awa N."`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := cli.ParseID(args[0], "stray")
			if err != nil {
				return err
			}
			if err := cli.CheckReason(reason); err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				stray, err := books.CloseForeignStray(cmd.Context(), s, id, books.CaseAction{By: by, Reason: server.Redact(reason)})
				if err != nil {
					return err
				}
				if asJSON {
					return cli.PrintJSON(cmd.OutOrStdout(), strayOut(stray))
				}
				_, err = cli.Printf(cmd.OutOrStdout(), "stray %s: closed, not ours\n", stray.ID)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "whose it is, or why it is not ours (required)")
	cli.AddBy(cmd, &by, "the person who decides (required)")
	cmd.MarkFlagRequired("reason")
	cmd.MarkFlagRequired("by")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}
