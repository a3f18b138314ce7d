package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"till/books"
	"till/store"
	"till/store/admin"
)

// CheckConnection rejects a name that was never used: all lines would be
// missing on both sides.
func CheckConnection(ctx context.Context, s *store.Store, name string) error {
	return s.View(ctx, func(tx *store.Tx) error {
		known, err := tx.ConnectionFingerprint(ctx, name)
		if err == nil && known == "" {
			return noConnection(ctx, tx, name)
		}
		return err
	})
}

// noConnection is the error that no connection of this name was ever used,
// with those that were.
func noConnection(ctx context.Context, tx *store.Tx, name string) error {
	known, err := admin.Connections(ctx, tx)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for k := range known {
		names[strings.TrimSuffix(k, books.PayoutSuffix)] = true
	}
	list := "none"
	if len(names) > 0 {
		list = strings.Join(slices.Sorted(maps.Keys(names)), ", ")
	}
	return fmt.Errorf("there is no connection %q here; there are %s", name, list)
}

// DefaultListen is where dev and serve listen by default.
const DefaultListen = "127.0.0.1:8080"

const ConfigUsage = "the TOML file of connections and routes (default none)"

// AddOperatorFlags adds --config and --base-url.
func AddOperatorFlags(cmd *cobra.Command, configFile, baseURL *string) {
	cmd.Flags().StringVar(configFile, "config", "", ConfigUsage)
	cmd.Flags().StringVar(baseURL, "base-url", "", "the URL at which operators reach the API, ending in /v1, as for 'till serve'")
}
