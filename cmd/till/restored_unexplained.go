package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/cmd/till/internal/money"
	"till/recovery"
	"till/store"
	"till/store/admin"
	"till/store/matching"
)

// shownUnexplained is how many items of each kind are listed as text. JSON has more.
const shownUnexplained = 20

// unexplained prints what a restore has left unexplained and, with --release,
// releases what is held. Before it releases while something is undecided, it asks.
func (r *restoredFlags) unexplained(cmd *cobra.Command) error {
	return cli.WithDatabase(cmd.Context(), r.database, func(s *store.Store) error {
		u, err := recovery.ReadUnexplained(cmd.Context(), s)
		if err != nil {
			return err
		}
		if r.release {
			if err := r.mayRelease(cmd, u); err != nil {
				return err
			}
			if u, err = recovery.Release(cmd.Context(), s, r.by); err != nil {
				return err
			}
		}
		return r.printUnexplained(cmd.OutOrStdout(), u)
	})
}

// mayRelease asks a person about money that nobody has decided.
func (r *restoredFlags) mayRelease(cmd *cobra.Command, u *recovery.Unexplained) error {
	if err := u.Refusal(); err != nil || len(u.Restores) == 0 {
		return err
	}
	payouts, payments, strays := u.Left()
	if payouts+payments+strays == 0 {
		return nil
	}
	if !r.yes {
		w := cmd.ErrOrStderr()
		if err := printSums(w, u); err != nil {
			return err
		}
		cli.Printf(w, "\n'till restored --show' lists them. Statements of the lost time may decide them; after the release, wallets that are too high can be paid out.\n")
	}
	return cli.Confirm(cmd, fmt.Sprintf("Release with %s, %s and %s that nobody has decided?",
		cli.Count(payouts, "payout", "payouts"), cli.Count(payments, "payment", "payments"), cli.Count(strays, "open stray", "open strays")), r.yes)
}

// sumJSON is money that is not explained, added up. A currency that is not said is null.
type sumJSON struct {
	What       string     `json:"what"`
	Connection string     `json:"connection"`
	Count      int        `json:"count"`
	Amount     *cli.Money `json:"amount"`
}

// sumsOf returns all sums of money, what is open first.
func sumsOf(u *recovery.Unexplained) (out []sumJSON) {
	for _, x := range u.Undecided {
		out = append(out, sumJSON{string(x.Kind) + "s, not decided", x.Connection, x.Count, cli.MoneyOrNull(x.Amount)})
	}
	for _, closed := range []bool{false, true} {
		for _, x := range u.StrayMoney {
			if (x.Why != "") == closed {
				out = append(out, sumJSON{straysText(x), x.Connection, x.Count, cli.MoneyOrNull(x.Amount)})
			}
		}
	}
	return out
}

// straysText says what strays are alike in.
func straysText(x store.StrayMoney) string {
	way := map[string]string{matching.StrayIn: "strays from customers", matching.StrayOut: "strays to recipients"}[x.Direction]
	if way == "" {
		way = "strays, direction not said"
	}
	switch {
	case x.Why != "":
		return way + ", closed: " + x.Why
	case x.Confirmed:
		return way + ", open, confirmed by a statement"
	}
	return way + ", open, claimed by a callback"
}

// moneyText is an amount as text.
func moneyText(m *cli.Money) string {
	if m == nil {
		return "an amount that is not said"
	}
	return m.Value + " " + m.Currency
}

// printSums prints the sums, and how many cases of each kind are open.
func printSums(w io.Writer, u *recovery.Unexplained) error {
	return cli.Table(w, func(row func(...any)) {
		row("WHAT", "CONNECTION", "COUNT", "TOGETHER")
		for _, x := range sumsOf(u) {
			row(x.What, x.Connection, x.Count, moneyText(x.Amount))
		}
		kinds := map[string]int{}
		for _, c := range u.Cases {
			kinds[c.Kind]++
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			row("cases "+kind+", open", "-", kinds[kind], "-")
		}
	})
}

func (r *restoredFlags) printUnexplained(w io.Writer, u *recovery.Unexplained) error {
	if r.asJSON {
		return cli.PrintJSON(w, r.unexplainedObject(u))
	}
	switch {
	case r.release && len(u.Restores) == 0:
		cli.PrintLine(w, "Nothing was held because of a restore.")
	case r.release:
		cli.Printf(w, "Released by %s: new payouts are taken again.\n", r.by)
	case len(u.Restores) == 0:
		cli.PrintLine(w, "Nothing is held because of a restore.")
	}
	for _, x := range u.Restores {
		cli.Printf(w, "Restored at %s by %s; lost from %s; keys reviewed: %s.\n", x.At, x.By, x.LostFrom, cli.TimeOr(x.KeysReviewedAt, "not yet"))
	}
	if u.Empty() {
		if _, err := cli.PrintLine(w, "Nothing is left to explain."); err != nil || len(u.StrayMoney) == 0 {
			return err
		}
		cli.PrintLine(w, "")
		return printSums(w, u)
	}
	cli.Printf(w, "\nNot explained yet:\n\n")
	if err := printSums(w, u); err != nil {
		return err
	}
	return listUnexplained(w, u)
}

// listUnexplained lists the first items of each kind, with their money.
func listUnexplained(w io.Writer, u *recovery.Unexplained) error {
	cli.Printf(w, "\nThe first of them (%d of each kind at most; --json has %d):\n\n", shownUnexplained, recovery.MaxUnexplained)
	return cli.Table(w, func(row func(...any)) {
		row("WHAT", "ID", "CLIENT", "AMOUNT", "WHY")
		for _, list := range [][]admin.Undecided{u.Payouts, u.Payments} {
			for _, x := range list[:min(len(list), shownUnexplained)] {
				row(x.Kind, x.Ref.ID, x.Ref.Client, moneyText(cli.MoneyOrNull(x.Amount)), "may have been sent on "+x.Connection+", and is not decided")
			}
		}
		for _, s := range u.Strays[:min(len(u.Strays), shownUnexplained)] {
			row("stray of "+s.Connection, s.ID, cli.OrDash(cli.IDOrNull(s.Client)), moneyText(cli.MoneyOrNull(s.Amount)), money.ClaimText(s)+"; "+money.IdentifiersText(s))
		}
		for _, c := range u.Cases[:min(len(u.Cases), shownUnexplained)] {
			row("case "+c.Kind, c.ID, c.ClientID, "-", c.Detail)
		}
	})
}

func (r *restoredFlags) unexplainedObject(u *recovery.Unexplained) cli.Object {
	return cli.Object{"cases", cli.Objects(u.Cases, money.CaseObject), "payments", cli.Objects(u.Payments, undecidedObject), "payouts", cli.Objects(u.Payouts, undecidedObject),
		"released", r.release, "restores", cli.Objects(u.Restores, restoreObject), "strays", cli.Objects(u.Strays, money.StrayObject), "sums", sumsOf(u)}
}

func restoreObject(x *admin.Restore) cli.Object {
	return cli.Object{"restored_at", x.At, "restored_by", x.By, "lost_from", x.LostFrom, "log_id", x.LogID, "keys_reviewed_at", x.KeysReviewedAt}
}

// undecidedObject is a possibly sent payment or payout.
func undecidedObject(x admin.Undecided) cli.Object {
	return cli.Object{"client_id", x.Ref.Client, "id", x.Ref.ID, "connection", x.Connection, "amount", x.Amount}
}
