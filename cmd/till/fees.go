package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"till"
	"till/account"
	"till/cmd/till/internal/cli"
)

func newClientFees() *cobra.Command {
	var f till.Fee
	var kind, flat, configFile string
	var bps int
	var remove bool
	cmd := &cobra.Command{
		Use:   "fees ID",
		Short: "Show or change a client's fees",
		Long: `Show the fees that a client pays for payments, payouts and refunds, or change one. Use it
to agree on a price. With only the id, it prints the schedule.

A fee is a flat amount plus a share in basis points (hundredths of a percent),
rounded half up to the minor unit and never more than the amount. A change
applies to new ones; existing payments, payouts and refunds keep their fee.`,
		Example: `  till client fees 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --kind payment --method mtn_momo --currency XAF --flat 50 --bps 150`,
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", "", "payment, payout or refund")
	flags.StringVar(&f.Method, "method", "", "the code of the method")
	flags.StringVar(&f.Currency, "currency", "", "the currency")
	flags.StringVar(&flat, "flat", "0", "the flat part of the fee, in minor units")
	flags.IntVar(&bps, "bps", 0, "the share of the amount, in basis points: 150 is 1.5 % (default 0)")
	flags.BoolVar(&remove, "remove", false, "remove the fee")
	addMethodsFlag(cmd, &configFile)
	return cli.OnID(cmd, "client", func(c *cli.Call) error {
		var ok bool
		var err error
		if f.Flat, ok = till.ParseMinor(flat); !ok {
			return errors.New("--flat is an amount in minor units, such as 50")
		}
		if remove && (c.Flags().Changed("flat") || c.Flags().Changed("bps")) {
			return errors.New("--remove takes the whole fee away: leave out --flat and --bps, or leave out --remove to change it")
		}
		if err := extendMethods(configFile); err != nil {
			return err
		}
		f.Kind, f.BasisPoints = till.FeeKind(kind), int64(bps)
		change := kind != "" || f.Method != "" || f.Currency != "" || f.Flat != 0 || bps != 0
		accounts := account.New(c.Store, nil)
		switch {
		case remove:
			err = accounts.RemoveFee(c.Context(), c.ID, f, cli.Actor())
		case change:
			err = accounts.SetFee(c.Context(), c.ID, f, cli.Actor())
		}
		if err != nil {
			return err
		}
		fees, err := accounts.Fees(c.Context(), c.ID)
		if err != nil {
			return err
		}
		return c.Show(cli.Object{"client_id", c.ID, "fees", cli.Objects(fees, feeObject)}, func(w io.Writer) error {
			return feeColumns.Print(w, fees)
		})
	})
}

func feeObject(f till.Fee) cli.Object {
	return cli.Object{"kind", f.Kind, "method", f.Method, "currency", f.Currency, "flat", cli.Minor(f.Flat), "basis_points", f.BasisPoints}
}

var feeColumns = cli.Columns[till.Fee]{
	None:  "There are no fees.",
	Heads: []any{"KIND", "METHOD", "CURRENCY", "FLAT", "BASIS POINTS"},
	Row:   func(f till.Fee) []any { return []any{f.Kind, f.Method, f.Currency, f.Flat, f.BasisPoints} },
}
