package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"till"
	"till/account"
	"till/store"
)

func newClientFees() *cobra.Command {
	var f till.Fee
	var kind, flat, database, configFile string
	var bps int
	var remove, asJSON bool
	cmd := &cobra.Command{
		Use:   "fees ID",
		Short: "Show or change what is taken from a client's money",
		Long: `Show what is taken from a client for its payments and payouts, or change it.
With nothing but the id the schedule is shown. A fee is a flat amount and a part in
basis points (hundredths of a percent), rounded to the nearest minor unit, half
of one up, and never more than the amount. It holds for new payments and
payouts; those that exist keep the fee that they were made with.`,
		Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID(args[0], "client")
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
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				accounts := account.New(s, nil)
				switch {
				case remove:
					err = accounts.RemoveFee(cmd.Context(), id, f, actor())
				case change:
					err = accounts.SetFee(cmd.Context(), id, f, actor())
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
	flags.StringVar(&flat, "flat", "0", "the flat part, in minor units")
	flags.IntVar(&bps, "bps", 0, "the part of the amount, in basis points: 150 is 1.5 %")
	flags.BoolVar(&remove, "remove", false, "take nothing any more")
	addMethodsFlag(cmd, &configFile)
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
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
		return printJSON(w, map[string]any{"client_id": client.String(), "fees": items})
	}
	if len(fees) == 0 {
		_, err := printLine(w, "There are no fees.")
		return err
	}
	return table(w, func(row func(...any)) {
		row("KIND", "METHOD", "CURRENCY", "FLAT", "BASIS POINTS")
		for _, f := range fees {
			row(f.Kind, f.Method, f.Currency, f.Flat, f.BasisPoints)
		}
	})
}
