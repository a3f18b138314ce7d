package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"till/books"
	"till/store"
)

func newRestored() *cobra.Command {
	var database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "restored",
		Short: "Say that the database was put back from a backup",
		Long: `Say that the database was put back from a backup and lost what came after it.
Run it before the service is started again. The event logs get a new log_id, by
which clients that follow them notice that numbers are given out a second time.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withDatabase(cmd.Context(), database, func(s *store.Store) error {
				id, err := books.Restored(cmd.Context(), s, actor())
				if err != nil {
					return err
				}
				w := cmd.OutOrStdout()
				if asJSON {
					return printJSON(w, map[string]any{"log_id": id.String()})
				}
				_, err = fmt.Fprintf(w, "The event logs are now %s. Run 'till verify', then start the service.\n", id)
				return err
			})
		},
	}
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
	return cmd
}
