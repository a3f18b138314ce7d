package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/store"
)

func newVerify() *cobra.Command {
	var database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that the books are right",
		Long: `Read the whole database and check that every franc is accounted for once. It
changes nothing and may run beside a server. The exit code is 0 if all is well,
1 if problems were found, 2 if it could not be read.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				report, err := books.Verify(cmd.Context(), s, books.Options{})
				if err != nil {
					return err
				}
				if err := printReport(cmd.OutOrStdout(), &report, asJSON); err != nil {
					return err
				}
				if !report.Clean() {
					return errProblems
				}
				return nil
			})
		},
	}
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
	return cmd
}

// reportJSON is what was read and found as the command prints it.
type reportJSON struct {
	Clean        bool          `json:"clean"`
	Clients      int64         `json:"clients"`
	Payments     int64         `json:"payments"`
	Events       int64         `json:"events"`
	Wallets      int64         `json:"wallets"`
	Transactions int64         `json:"transactions"`
	Entries      int64         `json:"entries"`
	Counters     int64         `json:"counters"`
	Audit        int64         `json:"audit"`
	Seals        int64         `json:"seals"`
	Problems     []problemJSON `json:"problems"`
	Omitted      int64         `json:"omitted"` // problems beyond the longest list
}

type problemJSON struct {
	Invariant string  `json:"invariant"`
	ClientID  string  `json:"client_id"`
	SubjectID *string `json:"subject_id"`
	Detail    string  `json:"detail"`
}

func printReport(w io.Writer, r *books.Report, asJSON bool) error {
	if asJSON {
		out := reportJSON{r.Clean(), r.Clients, r.Payments, r.Events, r.Wallets, r.Transactions, r.Entries,
			r.Counters, r.Audit, r.Seals, make([]problemJSON, len(r.Problems)), r.Omitted}
		for i, p := range r.Problems {
			out.Problems[i] = problemJSON{p.Invariant, p.Client.String(), idOrNull(p.Subject), p.Detail}
		}
		return printJSON(w, out)
	}
	fmt.Fprintf(w, "%d clients, %d payments, %d events, %d transactions, %d entries, %d audit rows\n",
		r.Clients, r.Payments, r.Events, r.Transactions, r.Entries, r.Audit)
	if r.Clean() {
		_, err := fmt.Fprintln(w, "The books are right.")
		return err
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "%s  client %s", p.Invariant, p.Client)
		if !p.Subject.IsZero() {
			fmt.Fprintf(w, "  %s", p.Subject)
		}
		fmt.Fprintf(w, ": %s\n", p.Detail)
	}
	if r.Omitted > 0 {
		fmt.Fprintf(w, "and %d more\n", r.Omitted)
	}
	return nil
}

// idOrNull is an id in JSON, null if it is unset.
func idOrNull(id till.ID) *string {
	if id.IsZero() {
		return nil
	}
	s := id.String()
	return &s
}
