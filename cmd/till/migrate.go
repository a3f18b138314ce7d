package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/store"
	"till/store/admin"
)

func newMigrate() *cobra.Command {
	var m migration
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("shards") {
				m.shards = 0 // as many as there are
			}
			return m.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cli.AddDatabase(cmd, &m.database)
	cli.AddJSON(cmd, &m.asJSON)
	cmd.Flags().BoolVar(&m.citus, "citus", false, "distribute the tables over the nodes of a Citus cluster, by client")
	cmd.Flags().IntVar(&m.shards, "shards", store.DefaultShards, "with --citus, into how many parts the clients are divided")
	return cmd
}

// migration is a run of 'till migrate'.
type migration struct {
	database string
	asJSON   bool
	citus    bool
	shards   int

	applied  []string // versions of the schema
	commands []string // to the cluster
	receipts int64    // that were added
}

func (m *migration) run(ctx context.Context, w io.Writer) (err error) {
	if err := cli.CheckFile(m.database); err != nil {
		return err
	}
	if m.citus && !store.IsPostgres(m.database) {
		return errors.New("--citus needs a PostgreSQL database")
	}
	s, err := store.Open(ctx, store.Config{Path: m.database, Readers: 1, PlainSQL: m.citus})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := m.migrate(ctx, s, w); err != nil {
		return err
	}
	return m.print(w)
}

func (m *migration) migrate(ctx context.Context, s *store.Store, w io.Writer) (err error) {
	say := func(command string) {
		if m.commands = append(m.commands, command); !m.asJSON {
			cli.PrintLine(w, command)
		}
	}
	if m.citus {
		if err := admin.ReadyToDistribute(ctx, s); err != nil {
			return err
		}
		if err := s.GoOnDistributing(ctx, m.shards, say); err != nil {
			return err
		}
	}
	if m.applied, err = s.Migrate(ctx); err != nil {
		return err
	}
	// What instances of the version before have taken since it was filled.
	if m.receipts, err = s.FillReceipts(ctx); err != nil || !m.citus {
		return err
	}
	return s.Distribute(ctx, m.shards, say)
}

func (m *migration) print(w io.Writer) error {
	if m.asJSON {
		out := cli.Object{"applied", append([]string{}, m.applied...)}
		if m.citus {
			out = append(out, "distributed", append([]string{}, m.commands...))
		}
		return cli.PrintJSON(w, append(out, "receipts_added", m.receipts))
	}
	if m.receipts > 0 {
		cli.Printf(w, "added %s that an older version took\n", cli.Count(m.receipts, "receipt", "receipts"))
	}
	for _, version := range m.applied {
		cli.PrintLine(w, "applied "+version)
	}
	if len(m.applied) == 0 {
		cli.PrintLine(w, "The schema is up to date.")
	}
	return nil
}
