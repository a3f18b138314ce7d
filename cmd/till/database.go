package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"till"
	"till/store"
)

// defaultDatabase is where till dev keeps it.
const defaultDatabase = "./till-data/till.db"

// addDatabaseFlag gives a command its --database.
func addDatabaseFlag(cmd *cobra.Command, database *string) {
	cmd.Flags().StringVar(database, "database", defaultDatabase, databaseUsage)
}

const databaseUsage = "the SQLite file, or a postgres:// URL"

const sandboxUsage = "the sandbox operator's own database, a SQLite file or a postgres:// URL (default beside the database)"

// checkDatabase refuses a --database that is neither, before a folder is made
// of it.
func checkDatabase(flags *pflag.FlagSet) error {
	if f := flags.Lookup("database"); f != nil && strings.Contains(f.Value.String(), "://") && !store.IsPostgres(f.Value.String()) {
		return errors.New("--database must be the path of a SQLite file or a postgres:// URL")
	}
	return nil
}

// checkFile refuses a database that is not there, before somebody makes one of
// a mistyped path.
func checkFile(path string) error {
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

// withDatabase runs f on a database that exists and has this program's
// schema. A server may be using it meanwhile.
func withDatabase(ctx context.Context, path string, f func(s *store.Store) error) error {
	return withReaders(ctx, path, 1, f)
}

// withReaders is withDatabase for what reads several things at once.
func withReaders(ctx context.Context, path string, readers int, f func(s *store.Store) error) (err error) {
	if err := checkFile(path); err != nil {
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

// parseID reads an id from the command line.
func parseID(text, what string) (till.ID, error) {
	id, err := till.ParseID(text)
	if err != nil {
		return id, fmt.Errorf("%q is not the id of a %s", text, what)
	}
	return id, nil
}

// eachClient calls f with every client, a page at a time, until it returns
// false.
func eachClient(ctx context.Context, s *store.Store, f func(c *till.Client) (more bool, err error)) error {
	const page = 500
	for after := (till.ID{}); ; {
		var clients []*till.Client
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			clients, err = tx.Clients(ctx, after, page)
			return err
		})
		if err != nil || len(clients) == 0 {
			return err
		}
		for _, c := range clients {
			if more, err := f(c); err != nil || !more {
				return err
			}
			after = c.ID
		}
	}
}
