package operators

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"till/config"
	"till/internal/seal"
	"till/secret"
	"till/store"
	"till/tokens"
)

// Source says where an installation's connections are read from. What is "" is not known.
type Source struct {
	Database   string // a SQLite file that exists, or the URL of a PostgreSQL
	SecretFile string // "": the one beside a SQLite file
	Config     string // the file of connections and routes
	Adapters   Adapters
	BaseURL    string
}

// SecretPath returns the file of the secret, "" if it is not known.
func (s *Source) SecretPath() string {
	if s.SecretFile == "" && !store.IsPostgres(s.Database) {
		return secret.File(s.Database)
	}
	return s.SecretFile
}

// Open reads the source's configuration, if it names one, and opens its connections on its database.
// It uses the servers' shared tokens: some operators accept only the newest token.
func (s *Source) Open(ctx context.Context, db *store.Store) (*Operators, *seal.Ring, error) {
	var file *config.File
	if s.Config != "" {
		var err error
		if file, err = LoadConfig(s.Config, s.Adapters); err != nil {
			return nil, nil, err
		}
	}
	path := s.SecretPath()
	if path == "" {
		return nil, nil, errors.New("name the file of the installation's secret with --secret-file")
	}
	ring, err := secret.OpenRing(ctx, db, path)
	if err != nil {
		return nil, nil, fmt.Errorf("the secret in %s: %w", path, err)
	}
	k, err := tokens.New(db, ring, nil)
	if err != nil {
		return nil, nil, err
	}
	deps := DepsOf(k, s.BaseURL, ring, slog.New(slog.DiscardHandler))
	ops, err := Open(file, s.Adapters, deps)
	return ops, ring, err
}
