package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"till"
	"till/checkout"
	"till/cmd/till/internal/cli"
	"till/store"
	"till/store/checkouts"
)

func newPages() *cobra.Command {
	return cli.NewGroup("pages", "Stop pages to pay on, and numbers they never ask", newPagesList(), newPagesBlock("block"), newPagesBlock("unblock"), newPagesSwitch("off"), newPagesSwitch("on"))
}

func newPagesList() *cobra.Command {
	return cli.OnDatabase(&cobra.Command{
		Use:   "list",
		Short: "List what is switched off, and blocked numbers",
		Long: `List whose pages are switched off, the blocks of numbers, newest first, and the
names on pages that wait to be confirmed. Use it to see what is in force.

Of a blocked number only a MAC is kept: the list says when, by whom and why it was
blocked, and not which one it is.`,
		Example: `  till pages list`,
		Args:    cobra.NoArgs,
	}, printPages)
}

// printPages prints what the house has decided about pages, and what waits for it.
func printPages(c *cli.Call) error {
	var off []checkouts.Switch
	var blocks []checkouts.Block
	var names []checkouts.PayName
	err := c.View(func(tx *store.Tx) (err error) {
		if off, err = checkouts.Switches(c.Context(), tx, checkout.MaxListed); err != nil {
			return err
		}
		if names, err = checkouts.PayNamesAsked(c.Context(), tx, checkout.MaxListed); err != nil {
			return err
		}
		blocks, err = checkouts.Blocks(c.Context(), tx, checkout.MaxListed)
		return err
	})
	if err != nil {
		return err
	}
	block := func(b checkouts.Block) cli.Object {
		return cli.Object{"since", b.At, "by", b.By, "reason", b.Reason}
	}
	result := cli.Object{
		"off", cli.Objects(off, func(s checkouts.Switch) cli.Object {
			return append(cli.Object{"client_id", cli.IDOrNull(s.Client)}, block(s.Block)...)
		}),
		"blocked", cli.Objects(blocks, block),
		"names", cli.Objects(names, func(n checkouts.PayName) cli.Object {
			return cli.Object{"client_id", n.Client, "name", n.Asked, "shown", cli.OrNull(n.Shown), "since", n.AskedAt, "by", n.AskedBy}
		}),
	}
	return c.Show(result, func(w io.Writer) error {
		err := cli.Table(w, func(row func(...any)) {
			for _, s := range off {
				whose := "client " + s.Client.String()
				if s.Client == store.EveryClient {
					whose = "all clients"
				}
				row("off", whose, "since "+s.At.String(), "by "+s.By, s.Reason)
			}
			for _, b := range blocks {
				row("blocked", "a number", "since "+b.At.String(), "by "+b.By, b.Reason)
			}
			for _, n := range names {
				row("name", "client "+n.Client.String(), "since "+n.AskedAt.String(), "by "+n.AskedBy, n.Asked)
			}
		})
		if len(off)+len(blocks)+len(names) == 0 {
			_, none := cli.PrintLine(w, "Pages are on, no number is blocked, and no name waits.")
			err = errors.Join(err, none)
		}
		return err
	})
}

// newPagesBlock makes the command that blocks a number, or lets it go.
func newPagesBlock(verb string) *cobra.Command {
	var by, reason, secretFile string
	block := verb == "block"
	cmd := &cobra.Command{
		Use:   verb + " NUMBER",
		Short: "Never ask a number on pages",
		Long: `Let no page that customers pay on ask a number, whichever merchant it is of. Use
it when somebody wants to be left alone. The page says that it cannot ask the
number and what to do instead, and not why. What was asked before goes on, and
clients may still ask by the API and at the counter.

The number is kept as a MAC under the installation's secret, from --secret-file or
from till.secret beside the database: nobody can read it again.`,
		Example: `  till pages ` + verb + ` 242061234567 --reason "letter of 3 March" --by "Awa N."`,
		Args:    cli.OneArg,
	}
	if !block {
		cmd.Short = "Let pages ask a number again"
		cmd.Long = `Let pages ask a number again that 'till pages block' has blocked. Use it when its
owner wants to pay on pages.`
	}
	cli.AddReason(cmd, &reason, "why, for the audit log (required)")
	cli.AddBy(cmd, &by, "the person who decides (required)")
	cli.AddSecretFile(cmd, &secretFile, "")
	cli.Require(cmd, "by", "reason")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		phone, err := parsePhone(c.Args[0])
		if err != nil {
			return err
		}
		secret, err := c.Secret(secretFile)
		if err != nil {
			return err
		}
		limits, err := checkout.NewLimits(secret)
		if err != nil {
			return err
		}
		changed, err := limits.Block(c.Context(), c.Store, phone, block, by, reason)
		if err != nil {
			return err
		}
		text := "%s: blocked\n"
		switch {
		case !block && changed:
			text = "%s: no longer blocked\n"
		case !block:
			text = "%s: was not blocked\n"
		case !changed:
			text = "%s: was blocked before\n"
		}
		return c.Say(cli.Object{"phone", till.MaskPhone(phone), "blocked", block, "changed", changed}, text, till.MaskPhone(phone))
	})
}

// newPagesSwitch makes the command that switches pages off, or on.
func newPagesSwitch(verb string) *cobra.Command {
	var client till.ID // unset: all
	var all bool
	var by, reason string
	off := verb == "off"
	cmd := &cobra.Command{
		Use:   verb,
		Short: "Switch off pages that customers pay on",
		Long: `Switch off the pages of one client or of all. Use it when pages are abused: their
addresses stay, and say that the merchant cannot be paid there just now. It is in
force on each instance when the command returns.

New checkouts and links are answered 422 pages_not_available. What was asked
before goes on, and its page says what became of it. 'till pages on' ends it.
'till serve --pages off' serves no pages at all.`,
		Example: `  till pages ` + verb + ` --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --reason "poster was forged" --by "Awa N."
  till pages ` + verb + ` --all --reason "operator asked" --by "Awa N."`,
		Args: cobra.NoArgs,
	}
	if !off {
		cmd.Short = "Switch pages on again"
		cmd.Long = `Switch the pages of one client, or of all, on again. Use it when the reason for
'till pages off' is gone. A client that was switched off alone stays off if all
are switched on.`
	}
	cli.AddAnyClient(cmd, &client, "the client, by its id")
	cmd.Flags().BoolVar(&all, "all", false, "all clients")
	cmd.MarkFlagsMutuallyExclusive("client", "all")
	cmd.MarkFlagsOneRequired("client", "all")
	cli.AddReason(cmd, &reason, "why, for the audit log (required)")
	cli.AddBy(cmd, &by, "the person who decides (required)")
	cli.Require(cmd, "by", "reason")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		if !all && client == store.EveryClient {
			return errors.New("--client must name a client; for all clients use --all")
		}
		if err := checkout.SwitchPages(c.Context(), c.Store, client, off, by, reason); err != nil {
			return err
		}
		return printPages(c)
	})
}

func newClientPayName() *cobra.Command {
	var set, confirm, by string
	cmd := &cobra.Command{
		Use:   "pay-name ID",
		Short: "Show, confirm or set a client's name on pages",
		Long: `Show the name that the pages to pay on show of a client, and the one that its owner
asks for. Use it when an owner has asked for another name.

A live client's pages show the old name until you confirm the new one: look whether
it is theirs, and name it as you have read it, so that one which has changed
meanwhile is not confirmed. --set gives a name at once; an empty one gives the
client's own name back.

A name has at most 40 Latin letters, digits, spaces and . , ' & -, not the name of
an operator, a method or this service as a word in it, and does not look like that
of another live client.`,
		Example: `  till client pay-name 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11
  till client pay-name 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --confirm "Marché Total" --by "Awa N."`,
	}
	cmd.Flags().StringVar(&confirm, "confirm", "", "the name that is asked for, as you have read it")
	cmd.Flags().StringVar(&set, "set", "", "the name that pages show from now on")
	cli.AddBy(cmd, &by, "the person who decides (required with --confirm and --set)")
	cmd.MarkFlagsMutuallyExclusive("confirm", "set")
	return cli.OnID(cmd, "client", func(c *cli.Call) error {
		confirms, sets := c.Flags().Changed("confirm"), c.Flags().Changed("set")
		if (confirms || sets) && by == "" {
			return errors.New("--by must name who decides")
		}
		var err error
		switch {
		case confirms:
			err = checkout.ConfirmName(c.Context(), c.Store, c.ID, confirm, by)
		case sets:
			err = checkout.SetName(c.Context(), c.Store, c.ID, set, by)
		}
		if err != nil {
			return err
		}
		var client *till.Client
		var n checkouts.PayName
		err = c.View(func(tx *store.Tx) (err error) {
			if client, err = tx.Client(c.Context(), c.ID); err != nil {
				return err
			}
			n, err = checkouts.ReadPayName(c.Context(), tx, c.ID)
			return err
		})
		if err != nil {
			return err
		}
		shown := checkout.NameOnPages(client.Name, n.Shown)
		result := cli.Object{"client_id", c.ID, "name", client.Name, "shown", cli.OrNull(shown), "asked", cli.OrNull(n.Asked), "asked_at", n.AskedAt, "asked_by", cli.OrNull(n.AskedBy)}
		return c.Lines(result, func(row func(...any)) {
			row("client", c.ID)
			row("name", client.Name)
			if shown == "" {
				row("on pages", "none: its name breaks a rule of names on pages")
			} else {
				row("on pages", shown)
			}
			if n.Asked != "" {
				row("asks for", n.Asked)
				row("since", n.AskedAt)
				row("by", n.AskedBy)
			}
		})
	})
}
