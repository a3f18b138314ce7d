package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"till/books"
	"till/store"
)

func newCases() *cobra.Command {
	var database string
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "cases",
		Short: "List what a person has to look at",
		Long: `List what a person has to look at: payments that the operator does not decide,
money that came late or differs from what was asked for. A case is closed by
'till payment resolve', or by itself where the operator decides after all. What
is wrong with a connection is told first; with --json 'till connections' has it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				cases, err := books.Cases(cmd.Context(), s, all, books.MaxCases)
				if err != nil {
					return err
				}
				if len(cases) == books.MaxCases {
					fmt.Fprintf(cmd.ErrOrStderr(), "till: only the first %d cases are shown\n", books.MaxCases)
				}
				if err := tellOperatorCases(cmd, s, asJSON); err != nil {
					return err
				}
				return printCases(cmd.OutOrStdout(), cases, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "closed cases too, newest first")
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// caseJSON is a case as the command prints it.
type caseJSON struct {
	CaseID    string  `json:"case_id"`
	ClientID  string  `json:"client_id"`
	PaymentID string  `json:"payment_id"`
	Kind      string  `json:"kind"`
	Detail    string  `json:"detail"`
	OpenedAt  string  `json:"opened_at"`
	ClosedAt  *string `json:"closed_at"`
	ClosedBy  *string `json:"closed_by"`
}

func printCases(w io.Writer, cases []*store.Case, asJSON bool) error {
	if asJSON {
		items := make([]caseJSON, len(cases))
		for i, c := range cases {
			items[i] = caseJSON{c.ID.String(), c.ClientID.String(), c.SubjectID.String(), c.Kind, c.Detail,
				c.OpenedAt.String(), timeOrNull(c.ClosedAt), nil}
			if c.ClosedBy != "" {
				items[i].ClosedBy = &c.ClosedBy
			}
		}
		return printJSON(w, map[string]any{"items": items})
	}
	if len(cases) == 0 {
		_, err := fmt.Fprintln(w, "There are no cases.")
		return err
	}
	return table(w, func(row func(...any)) {
		row("OPENED", "CLOSED", "KIND", "PAYMENT", "WHAT")
		for _, c := range cases {
			row(c.OpenedAt, timeOr(c.ClosedAt, "-"), c.Kind, c.SubjectID, c.Detail)
		}
	})
}
