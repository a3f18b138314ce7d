package main

import (
	"errors"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/store"
)

func newMigrate() *cobra.Command {
	var database string
	var asJSON, citus bool
	var shards int
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring a database's schema up to date",
		Long: `Bring the schema of a database up to this program's version. Use it before a new
version is started on PostgreSQL. A SQLite file must exist: 'till serve' creates
one at its first start. A PostgreSQL database may be empty.

With --citus it also distributes the tables of a PostgreSQL with Citus over its
nodes, by client, and prints each command before it runs it. Stop all instances
first: it refuses while one runs. If it was interrupted, run it again, and it goes
on. When all tables are in their places it repeats settings of the nodes only; then
instances may run.`,
		Example: `  till migrate
  till migrate --citus --shards 64`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := cli.CheckFile(database); err != nil {
				return err
			}
			if citus && !store.IsPostgres(database) {
				return errors.New("--citus needs a PostgreSQL database")
			}
			s, err := store.Open(cmd.Context(), store.Config{Path: database, Readers: 1, PlainSQL: citus})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			w := cmd.OutOrStdout()
			commands := []string{}
			say := func(command string) {
				if commands = append(commands, command); !asJSON {
					cli.PrintLine(w, command)
				}
			}
			if !cmd.Flags().Changed("shards") {
				shards = 0 // as many as there are
			}
			if citus {
				if err := s.ReadyToDistribute(cmd.Context()); err != nil {
					return err
				}
				if err := s.GoOnDistributing(cmd.Context(), shards, say); err != nil {
					return err
				}
			}
			applied, err := s.Migrate(cmd.Context())
			if err != nil {
				return err
			}
			// What instances of the version before have taken since it was filled.
			receipts, err := s.FillReceipts(cmd.Context())
			if err != nil {
				return err
			}
			if citus {
				if err := s.Distribute(cmd.Context(), shards, say); err != nil {
					return err
				}
			}
			if asJSON && citus {
				return cli.PrintJSON(w, cli.Object{"applied", append([]string{}, applied...), "distributed", commands, "receipts_added", receipts})
			}
			if asJSON {
				return cli.PrintJSON(w, cli.Object{"applied", append([]string{}, applied...), "receipts_added", receipts})
			}
			if receipts > 0 {
				cli.Printf(w, "added %s that an older version took\n", cli.Count(receipts, "receipt", "receipts"))
			}
			for _, version := range applied {
				cli.PrintLine(w, "applied "+version)
			}
			if len(applied) == 0 {
				cli.PrintLine(w, "The schema is up to date.")
			}
			return nil
		},
	}
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	cmd.Flags().BoolVar(&citus, "citus", false, "distribute the tables over the nodes of a Citus cluster, by client")
	cmd.Flags().IntVar(&shards, "shards", store.DefaultShards, "with --citus, into how many parts the clients are divided")
	return cmd
}
