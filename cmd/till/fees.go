package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"till"
	"till/account"
	"till/cmd/till/internal/cli"
	"till/store"
)

func newClientFees() *cobra.Command {
	var f till.Fee
	var kind, flat, database, configFile string
	var bps int
	var remove, asJSON bool
	cmd := &cobra.Command{
		Use:   "fees ID",
		Short: "Show or change a client's fees",
		Long: `Show the fees that a client pays for payments and payouts, or change one. Use it
to agree on a price. With only the id, it prints the schedule.

A fee is a flat amount plus a share in basis points (hundredths of a percent),
rounded half up to the minor unit and never more than the amount. A change
applies to new payments and payouts; existing ones keep their fee.`,
		Example: `  till client fees 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --kind payment --method mtn_momo --currency XAF --flat 50 --bps 150`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := cli.ParseID(args[0], "client")
			if err != nil {
				return err
			}
			var ok bool
			if f.Flat, ok = till.ParseMinor(flat); !ok {
				return errors.New("--flat is an amount in minor units, such as 50")
			}
			if remove && (cmd.Flags().Changed("flat") || cmd.Flags().Changed("bps")) {
				return errors.New("--remove takes the whole fee away: leave out --flat and --bps, or leave out --remove to change it")
			}
			if err := extendMethods(configFile); err != nil {
				return err
			}
			f.Kind, f.BasisPoints = till.FeeKind(kind), int64(bps)
			change := kind != "" || f.Method != "" || f.Currency != "" || f.Flat != 0 || bps != 0
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				accounts := account.New(s, nil)
				switch {
				case remove:
					err = accounts.RemoveFee(cmd.Context(), id, f, cli.Actor())
				case change:
					err = accounts.SetFee(cmd.Context(), id, f, cli.Actor())
				}
				if err != nil {
					return err
				}
				fees, err := accounts.Fees(cmd.Context(), id)
				if err != nil {
					return err
				}
				return printFees(cmd.OutOrStdout(), id, fees, asJSON)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kind, "kind", "", "payment or payout")
	flags.StringVar(&f.Method, "method", "", "the code of the method")
	flags.StringVar(&f.Currency, "currency", "", "the currency")
	flags.StringVar(&flat, "flat", "0", "the flat part of the fee, in minor units")
	flags.IntVar(&bps, "bps", 0, "the share of the amount, in basis points: 150 is 1.5 % (default 0)")
	flags.BoolVar(&remove, "remove", false, "remove the fee")
	addMethodsFlag(cmd, &configFile)
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// feeJSON is a fee as the command prints it.
type feeJSON struct {
	Kind        till.FeeKind `json:"kind"`
	Method      string       `json:"method"`
	Currency    string       `json:"currency"`
	Flat        string       `json:"flat"`
	BasisPoints int64        `json:"basis_points"`
}

func printFees(w io.Writer, client till.ID, fees []till.Fee, asJSON bool) error {
	if asJSON {
		items := make([]feeJSON, len(fees))
		for i, f := range fees {
			items[i] = feeJSON{f.Kind, f.Method, f.Currency, till.Money{Minor: f.Flat}.Value(), f.BasisPoints}
		}
		return cli.PrintJSON(w, map[string]any{"client_id": client.String(), "fees": items})
	}
	if len(fees) == 0 {
		_, err := cli.PrintLine(w, "There are no fees.")
		return err
	}
	return cli.Table(w, func(row func(...any)) {
		row("KIND", "METHOD", "CURRENCY", "FLAT", "BASIS POINTS")
		for _, f := range fees {
			row(f.Kind, f.Method, f.Currency, f.Flat, f.BasisPoints)
		}
	})
}
