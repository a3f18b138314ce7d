package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"till/store"
)

// DefaultDatabase is the database of till dev.
const DefaultDatabase = "./till-data/till.db"

// AddDatabase adds --database.
func AddDatabase(cmd *cobra.Command, database *string) {
	cmd.Flags().StringVar(database, "database", DefaultDatabase, DatabaseUsage)
}

const DatabaseUsage = "the SQLite file, or a postgres:// URL, which is better given as TILL_DATABASE"

const SandboxUsage = "the sandbox operator's own database, a SQLite file or a postgres:// URL (default beside the database)"

// CheckDatabase rejects another URL than postgres://, which would become a
// folder.
func CheckDatabase(flags *pflag.FlagSet) error {
	if f := flags.Lookup("database"); f != nil && strings.Contains(f.Value.String(), "://") && !store.IsPostgres(f.Value.String()) {
		return errors.New("--database must be the path of a SQLite file or a postgres:// URL")
	}
	return nil
}

// CheckFile rejects a file that does not exist, so that a mistyped path
// creates none.
func CheckFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case store.IsPostgres(path):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no database at %s; name one with --database", path)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name the file in it with --database", path)
	}
	return nil
}

// WithDatabase runs f on an existing database with this program's schema. A
// server may use it at the same time.
func WithDatabase(ctx context.Context, path string, f func(s *store.Store) error) error {
	return WithReaders(ctx, path, 1, f)
}

// WithReaders is withDatabase with several parallel reads.
func WithReaders(ctx context.Context, path string, readers int, f func(s *store.Store) error) (err error) {
	if err := CheckFile(path); err != nil {
		return err
	}
	s, err := store.Open(ctx, store.Config{Path: path, Readers: readers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.CheckSchema(ctx); err != nil {
		return err
	}
	return f(s)
}
