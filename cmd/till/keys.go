package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till"
	"till/account"
	"till/cmd/till/internal/cli"
	"till/store"
)

func newKey() *cobra.Command {
	return cli.NewGroup("key", "Create and manage clients' API keys",
		newKeyCreate(), newKeyList(), newKeyRevoke(), newKeyRotate())
}

func newKeyCreate() *cobra.Command {
	var client, name, database string
	var scopes []string
	var expiresIn time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an API key",
		Long: `Create an API key for a client and print it. Use it to give a program only the
scopes that it needs. The key is shown only once.`,
		Example: `  till key create --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --name shop --scopes payments:write,payments:read`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := cli.ParseID(client, "client")
			if err != nil {
				return err
			}
			var granted []till.Scope // nil: the default ones
			if cmd.Flags().Changed("scopes") {
				granted = []till.Scope{}
			}
			for _, s := range scopes {
				granted = append(granted, till.Scope(strings.TrimSpace(s)))
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				var expires till.Time
				if cmd.Flags().Changed("expires-in") {
					expires = s.Now().Add(expiresIn)
				}
				text, key, err := account.New(s, nil).CreateKey(cmd.Context(), id, name, granted, expires, cli.Actor())
				if err != nil {
					return err
				}
				return printNewKey(cmd.OutOrStdout(), key, text, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "the client's id (required)")
	cmd.Flags().StringVar(&name, "name", "", "a name to recognise the key by")
	cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "what the key may do (default all but payouts:write and keys:manage)")
	cmd.Flags().DurationVar(&expiresIn, "expires-in", 0, "how long the key works, for example 720h (default for ever)")
	cmd.MarkFlagRequired("client")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// printNewKey prints a new key, which is shown only once.
func printNewKey(w io.Writer, key *till.Key, text string, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w, struct {
			KeyID  string `json:"key_id"`
			APIKey string `json:"api_key"`
		}{key.ID, text})
	}
	_, err := cli.Printf(w, "key id   %s\nAPI key  %s\n\nThe key is not shown again.\n", key.ID, text)
	return err
}

// endOf returns when a key expires.
func endOf(ctx context.Context, s *store.Store, client till.ID, keyID string) (ends till.Time, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		k, err := tx.Key(ctx, client, keyID)
		if err == nil {
			ends = k.ExpiresAt
		}
		return err
	})
	return ends, err
}

// printRotated prints a new key, which is shown only once, and until when the
// old one works.
func printRotated(w io.Writer, key *till.Key, text string, ends till.Time, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w, struct {
			KeyID    string  `json:"key_id"`
			APIKey   string  `json:"api_key"`
			Replaces string  `json:"replaces"`
			Ends     *string `json:"replaced_ends_at"`
		}{key.ID, text, key.Replaces, cli.TimeOrNull(ends)})
	}
	if err := printNewKey(w, key, text, false); err != nil {
		return err
	}
	_, err := cli.Printf(w, "Key %s goes on until %s.\n", key.Replaces, ends)
	return err
}

// keyJSON is a key as the commands print it.
type keyJSON struct {
	KeyID      string       `json:"key_id"`
	Name       string       `json:"name"`
	Scopes     []till.Scope `json:"scopes"`
	Active     bool         `json:"active"`
	CreatedAt  string       `json:"created_at"`
	ExpiresAt  *string      `json:"expires_at"`
	RevokedAt  *string      `json:"revoked_at"`
	LastUsedAt *string      `json:"last_used_at"`
	ExposedAt  *string      `json:"exposed_at"`
	MadeBy     *string      `json:"made_by"`
	Replaces   *string      `json:"replaces"`
}

// maxKeys is how many keys are listed at most. A client has fewer active ones.
const maxKeys = 1000

func newKeyList() *cobra.Command {
	var client, database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List a client's keys, newest first",
		Long: `List a client's API keys, newest first, with their scopes and their last use. Use
it to find keys that nobody needs.`,
		Example: `  till key list --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := cli.ParseID(client, "client")
			if err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				ctx, items := cmd.Context(), []keyJSON{}
				err := s.View(ctx, func(tx *store.Tx) error {
					if _, err := tx.Client(ctx, id); err != nil {
						return err
					}
					keys, err := tx.Keys(ctx, id, maxKeys)
					for _, k := range keys {
						items = append(items, keyJSON{k.ID, k.Name, k.Scopes, k.Active(tx.Now()), k.CreatedAt.String(),
							cli.TimeOrNull(k.ExpiresAt), cli.TimeOrNull(k.RevokedAt), cli.TimeOrNull(k.LastUsedAt), cli.TimeOrNull(k.ExposedAt),
							cli.TextOrNull(k.MadeBy), cli.TextOrNull(k.Replaces)})
					}
					return err
				})
				if err != nil {
					return err
				}
				return printKeys(cmd.OutOrStdout(), items, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "the client's id (required)")
	cmd.MarkFlagRequired("client")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

func printKeys(w io.Writer, items []keyJSON, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w, map[string]any{"items": items})
	}
	return cli.Table(w, func(row func(...any)) {
		row("KEY", "STATE", "CREATED", "ENDS", "LAST USED", "NAME", "SCOPES")
		heirs := map[string]string{}
		for _, k := range items {
			if k.Replaces != nil && k.Active {
				heirs[*k.Replaces] = k.KeyID
			}
		}
		for _, k := range items {
			state, ends, used := "active", cli.OrDash(k.ExpiresAt), "never"
			switch {
			case k.RevokedAt != nil:
				state, ends = "revoked", *k.RevokedAt
			case !k.Active:
				state = "expired"
			case heirs[k.KeyID] != "":
				state = "rotated into " + heirs[k.KeyID]
			case k.ExposedAt != nil:
				state = "exposed"
			}
			if k.LastUsedAt != nil {
				used = *k.LastUsedAt
			}
			row(k.KeyID, state, k.CreatedAt, ends, used, k.Name, k.Scopes)
		}
	})
}

// ownerOf returns the client of a key, and rejects a key of another client
// than the named one.
func ownerOf(ctx context.Context, s *store.Store, keyID, client string) (id till.ID, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		owner, found, err := tx.KeyOwner(ctx, keyID)
		if err == nil && (!found || client != "" && !strings.EqualFold(client, owner.String())) {
			err = till.Errorf(till.CodeKeyNotFound, "there is no such key")
		}
		id = owner
		return err
	})
	return id, err
}

func newKeyRevoke() *cobra.Command {
	var client, database string
	var cascade, asJSON bool
	cmd := &cobra.Command{
		Use:   "revoke KEY_ID",
		Short: "Revoke a key and the keys that it made",
		Long: `Revoke a key for good, with the keys that it made. Use it when a key is not
needed or has leaked; for a leaked key add --cascade.`,
		Example: `  till key revoke 3f9a1c07 --cascade`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				owner, err := ownerOf(cmd.Context(), s, args[0], client)
				if err != nil {
					return err
				}
				done, err := account.New(s, nil).RevokeKey(cmd.Context(), owner, args[0], cascade, cli.Actor())
				if err != nil {
					return err
				}
				return printRevoked(cmd.OutOrStdout(), args[0], done, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&cascade, "cascade", false, "also revoke its successor and all keys made by them: for a leaked key")
	cmd.Flags().StringVar(&client, "client", "", "the client's id, to make sure whose key it is")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// printRevoked prints the revoked keys, and their successors that still work.
func printRevoked(w io.Writer, keyID string, done account.Revocation, asJSON bool) error {
	ended, left := keyIDs(done.Ended), keyIDs(done.Left)
	if asJSON {
		return cli.PrintJSON(w, map[string]any{"key_id": keyID, "revoked": true, "ended": ended, "left": left})
	}
	_, err := cli.Printf(w, "key %s: revoked\n", keyID)
	for _, id := range ended {
		cli.Printf(w, "key %s: revoked, it descends from it\n", id)
	}
	for _, id := range left {
		cli.Printf(w, "key %s: goes on, although it descends from it; --cascade ends it too\n", id)
	}
	return err
}

func keyIDs(keys []*till.Key) []string {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.ID
	}
	return ids
}

func newKeyRotate() *cobra.Command {
	var client, database string
	var overlap time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rotate KEY_ID",
		Short: "Replace a key by a new one",
		Long: `Create a key with the same scopes and let the old one expire. Use it regularly,
and when a person leaves. Both keys work until --overlap is over.`,
		Example: `  till key rotate 3f9a1c07 --overlap 1h`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				owner, err := ownerOf(cmd.Context(), s, args[0], client)
				if err != nil {
					return err
				}
				text, key, err := account.New(s, nil).RotateKey(cmd.Context(), owner, args[0], overlap, cli.Actor())
				if err != nil {
					return err
				}
				ends, err := endOf(cmd.Context(), s, owner, args[0])
				if err != nil {
					return err
				}
				return printRotated(cmd.OutOrStdout(), key, text, ends, asJSON)
			})
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "the client's id, to make sure whose key it is")
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key goes on working, at most 168h")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}
