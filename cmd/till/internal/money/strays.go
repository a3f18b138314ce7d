package money

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/store/matching"
)

func NewStrays() *cobra.Command {
	var f matching.StrayFilter
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
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Connection, "connection", "", "only this connection (default all)")
	flags.BoolVar(&f.All, "all", false, "list open and closed strays, newest first")
	cli.AddLimit(cmd, &f.Limit, books.MaxStrayPage, "how many to list")
	cmd.AddCommand(newStrayShow(), newStrayAttribute(), newStrayForeign())
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		strays, err := books.ListStrays(c.Context(), c.Store, f)
		if err != nil {
			return err
		}
		if len(strays) == 0 && f.Connection != "" {
			if err := cli.CheckConnection(c.Context(), c.Store, f.Connection); err != nil {
				return err
			}
		}
		if len(strays) == f.Limit {
			c.Note("%s shown; there may be more: --limit, or close some", cli.Count(f.Limit, "stray is", "strays are"))
		}
		return cli.List(c, strays, StrayObject, strayColumns)
	})
}

// reportStrays prints how many strays are open.
func reportStrays(c *cli.Call) error {
	n, err := books.CountOpenStrays(c.Context(), c.Store)
	if err == nil && n > 0 {
		c.Note("%s: money that names us and that nobody has; see 'till strays'", books.OpenStraysText(n))
	}
	return err
}

// StrayObject is a stray as commands print it. The evidence is its SHA-256.
func StrayObject(s *matching.Stray) cli.Object {
	var amount any
	if s.Amount.Currency != "" {
		amount = s.Amount.Value()
	}
	return cli.Object{"stray_id", s.ID, "connection", s.Connection, "direction", cli.OrNull(s.Direction), "source", s.Source, "seen_at", s.SeenAt,
		"reference", s.Reference, "subject_id", s.Subject, "client_id", s.Client, "receipt", cli.OrNull(s.Receipt), "claimed", cli.OrNull(s.Claimed),
		"amount", amount, "currency", cli.OrNull(s.Amount.Currency), "confirmed_at", s.ConfirmedAt, "confirmed_by", cli.OrNull(s.Confirmed),
		"closed", cli.OrNull(s.Why), "closed_at", s.ClosedAt, "closed_by", cli.OrNull(s.ClosedBy), "reason", cli.OrNull(s.Reason),
		"evidence", s.Evidence, "owner_id", s.Owner, "attributed_to", s.Given, "settled_id", s.Settled, "taken_back", s.TakenBack}
}

// ClaimText says what is claimed and what is confirmed.
func ClaimText(s *matching.Stray) string {
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

// IdentifiersText lists the reference, id and receipt of a stray.
func IdentifiersText(s *matching.Stray) string {
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

var strayColumns = cli.Columns[*matching.Stray]{
	None:  "There are no strays.",
	Heads: []any{"STRAY", "SEEN", "CONNECTION", "WAY", "MONEY", "CLIENT", "CLOSED", "NAMES"},
	Row: func(s *matching.Stray) []any {
		return []any{s.ID, s.SeenAt, s.Connection, cli.OrNull(s.Direction), ClaimText(s), s.Client, cli.OrNull(s.Why), IdentifiersText(s)}
	},
}

func newStrayShow() *cobra.Command {
	var secretFile string
	var body bool
	cmd := &cobra.Command{
		Use:   "show STRAY",
		Short: "Show a stray and its callback",
		Long: `Show a stray: what was claimed, what is confirmed, and how it was closed. Use it
before you decide whose money it is.`,
		Example: `  till strays show 0197a3d2-7d42-7f33-8e60-2cbd9e8f7061 --body`,
	}
	cmd.Flags().BoolVar(&body, "body", false, "also show the callback's body, which may name a customer and is kept encrypted")
	cli.AddSecretFile(cmd, &secretFile, ", for --body")
	return cli.OnID(cmd, "stray", func(c *cli.Call) error {
		stray, err := books.ShowStray(c.Context(), c.Store, c.ID)
		if err != nil {
			return err
		}
		var text []byte
		if body {
			ring, err := cli.ReadKeyring(c.Context(), c.Store, c.Database, secretFile)
			if err != nil {
				return err
			}
			b, err := books.NewStrays(c.Store, ring)
			if err != nil {
				return err
			}
			if text, err = b.Body(stray); err != nil {
				return err
			}
		}
		return printStray(c, stray, text)
	})
}

func printStray(c *cli.Call, s *matching.Stray, body []byte) error {
	return c.Show(StrayObject(s).With("body", cli.OrNull(string(body))), func(w io.Writer) error {
		err := cli.Table(w, func(row func(...any)) {
			row("stray", s.ID)
			row("seen", s.SeenAt, "by a "+s.Source)
			row("connection", s.Connection)
			row("way", cli.OrNull(s.Direction))
			row("money", ClaimText(s))
			row("names", IdentifiersText(s))
			row("client", s.Client)
			row("confirmed", cli.OrNull(s.Confirmed))
			row("closed", cli.OrNull(s.Why), s.ClosedAt, cli.OrNull(s.ClosedBy), cli.OrNull(s.Reason))
			row("owner", s.Owner, s.Settled)
			if s.TakenBack {
				row("", "it had been attributed before, which was taken back")
			}
		})
		if err == nil && body != nil {
			_, err = cli.Printf(w, "%s\n", body)
		}
		return err
	})
}

func newStrayAttribute() *cobra.Command {
	var amount, currency, evidence string
	var a books.Attribution
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
	}
	f := cmd.Flags()
	cli.AddClient(cmd, &a.Client, "the client whose money it is (required)")
	cli.AddBy(cmd, &a.By, "the person who decides (required)")
	f.StringVar(&evidence, "evidence", "", "the file with the evidence, at most 64 MiB; its SHA-256 is recorded (required)")
	f.StringVar(&amount, "amount", "", "the amount that the evidence shows, in minor units, if no statement has confirmed it")
	f.StringVar(&currency, "currency", "", "the currency that the evidence shows")
	f.StringVar(&a.Direction, "way", "", "in or out, if the stray does not say it")
	cli.Require(cmd, "client", "by", "evidence")
	return cli.OnID(cmd, "stray", func(c *cli.Call) error {
		a.Stray = c.ID
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
		done, err := books.AttributeStray(c.Context(), c.Store, a)
		if err != nil {
			return err
		}
		return printAttributed(c, &done)
	})
}

func printAttributed(c *cli.Call, a *books.AttributeResult) error {
	what := "attributed"
	if a.Before {
		what = "was attributed before, nothing was done now"
	}
	return c.Say(StrayObject(a.Stray).With("made_before", a.Before, "balance", cli.Minor(a.Wallet.Balance), "owed", cli.Minor(a.Wallet.Owed)),
		"stray %s of %s %s: %s\nbalance %d %s, owed %d\n", a.ID, a.Amount.Value(), a.Amount.Currency, what, a.Wallet.Balance, a.Amount.Currency, a.Wallet.Owed)
}

func newStrayForeign() *cobra.Command {
	var reason, by string
	cmd := &cobra.Command{
		Use:   "foreign STRAY",
		Short: "Close a stray whose money is not ours",
		Long: `Close a stray because its money is not ours. Use it when another system uses the
same operator account.`,
		Example: `  till strays foreign 0197a3d2-7d42-7f33-8e60-2cbd9e8f7061 --reason "payment of the old shop" --by "Awa N."`,
	}
	cli.AddReason(cmd, &reason, "whose it is, or why it is not ours (required)")
	cli.AddBy(cmd, &by, "the person who decides (required)")
	cli.Require(cmd, "reason", "by")
	return cli.OnID(cmd, "stray", func(c *cli.Call) error {
		stray, err := books.CloseForeignStray(c.Context(), c.Store, c.ID, books.CaseAction{By: by, Reason: reason})
		if err != nil {
			return err
		}
		return c.Say(StrayObject(stray), "stray %s: closed, not ours\n", stray.ID)
	})
}
