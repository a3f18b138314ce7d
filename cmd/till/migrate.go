package main

import (
	"errors"

	"github.com/spf13/cobra"

	"till/store"
)

func newMigrate() *cobra.Command {
	var database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a database's schema up to date",
		Long: `Bring the schema of a database up to this program's version. Use it before a new
version is started on PostgreSQL. A SQLite file must exist: 'till serve' creates
one at its first start. A PostgreSQL database may be empty.`,
		Example: `  till migrate --database "$TILL_DATABASE"`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := checkFile(database); err != nil {
				return err
			}
			s, err := store.Open(cmd.Context(), store.Config{Path: database, Readers: 1})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			applied, err := s.Migrate(cmd.Context())
			if err != nil {
				return err
			}
			// What instances of the version before have taken since it was filled.
			receipts, err := s.FillReceipts(cmd.Context())
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if asJSON {
				return printJSON(w, map[string]any{"applied": append([]string{}, applied...), "receipts_added": receipts})
			}
			if receipts > 0 {
				printf(w, "added %s that an older version took\n", count(receipts, "receipt", "receipts"))
			}
			for _, version := range applied {
				printLine(w, "applied "+version)
			}
			if len(applied) == 0 {
				printLine(w, "The schema is up to date.")
			}
			return nil
		},
	}
	addDatabaseFlag(cmd, &database)
	addJSONFlag(cmd, &asJSON)
	return cmd
}
