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
	"till/store/access"
)

func newKey() *cobra.Command {
	return cli.NewGroup("key", "Create and manage clients' API keys",
		newKeyCreate(), newKeyList(), newKeyRevoke(), newKeyRotate())
}

func newKeyCreate() *cobra.Command {
	var client till.ID
	var name string
	var scopes []string
	var expiresIn time.Duration
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an API key",
		Long: `Create an API key for a client and print it. Use it to give a program only the
scopes that it needs. The key is shown only once.`,
		Example: `  till key create --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --name shop --scopes payments:write,payments:read`,
		Args:    cobra.NoArgs,
	}
	cli.AddClient(cmd, &client, "the client's id (required)")
	cmd.Flags().StringVar(&name, "name", "", "a name to recognise the key by")
	cmd.Flags().StringSliceVar(&scopes, "scopes", nil, "what the key may do (default all but payouts:write and keys:manage)")
	cmd.Flags().DurationVar(&expiresIn, "expires-in", 0, "how long the key works, for example 720h (default for ever)")
	cli.Require(cmd, "client")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		var granted []till.Scope // nil: the default ones
		if c.Flags().Changed("scopes") {
			granted = []till.Scope{}
		}
		for _, s := range scopes {
			granted = append(granted, till.Scope(strings.TrimSpace(s)))
		}
		var expires till.Time
		if c.Flags().Changed("expires-in") {
			expires = c.Store.Now().Add(expiresIn)
		}
		text, key, err := account.New(c.Store, nil).CreateKey(c.Context(), client, name, granted, expires, cli.Actor())
		if err != nil {
			return err
		}
		return printNewKey(c, key, text)
	})
}

// printNewKey prints a new key, which is shown only once.
func printNewKey(c *cli.Call, key *till.Key, text string) error {
	return c.Say(cli.Object{"key_id", key.ID, "api_key", text}, newKeyText, key.ID, text)
}

const newKeyText = "key id   %s\nAPI key  %s\n\nThe key is not shown again.\n"

// endOf returns when a key expires.
func endOf(ctx context.Context, s *store.Store, client till.ID, keyID string) (ends till.Time, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		k, err := access.Key(ctx, tx, client, keyID)
		if err == nil {
			ends = k.ExpiresAt
		}
		return err
	})
	return ends, err
}

// maxKeys is how many keys are listed at most. A client has fewer active ones.
const maxKeys = 1000

func newKeyList() *cobra.Command {
	var client till.ID
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List a client's keys, newest first",
		Long: `List a client's API keys, newest first, with their scopes and their last use. Use
it to find keys that nobody needs.`,
		Example: `  till key list --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11`,
		Args:    cobra.NoArgs,
	}
	cli.AddClient(cmd, &client, "the client's id (required)")
	cli.Require(cmd, "client")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		var keys []*till.Key
		var now till.Time
		err := c.View(func(tx *store.Tx) (err error) {
			if _, err = tx.Client(c.Context(), client); err == nil {
				keys, err = access.Keys(c.Context(), tx, client, maxKeys)
			}
			now = tx.Now()
			return err
		})
		if err != nil {
			return err
		}
		heirs := map[string]string{}
		for _, k := range keys {
			if k.Active(now) {
				heirs[k.Replaces] = k.ID
			}
		}
		return cli.List(c, keys, func(k *till.Key) cli.Object { return keyObject(k, now) }, cli.Columns[*till.Key]{
			Heads: []any{"KEY", "STATE", "CREATED", "ENDS", "LAST USED", "NAME", "SCOPES"},
			Row: func(k *till.Key) []any {
				state, ends := keyState(k, now, heirs[k.ID])
				return []any{k.ID, state, k.CreatedAt, ends, cli.TimeOr(k.LastUsedAt, "never"), k.Name, k.Scopes}
			},
		})
	})
}

func keyObject(k *till.Key, now till.Time) cli.Object {
	return cli.Object{"key_id", k.ID, "name", k.Name, "scopes", k.Scopes, "active", k.Active(now), "created_at", k.CreatedAt, "expires_at", k.ExpiresAt,
		"revoked_at", k.RevokedAt, "last_used_at", k.LastUsedAt, "exposed_at", k.ExposedAt, "made_by", cli.OrNull(k.MadeBy), "replaces", cli.OrNull(k.Replaces)}
}

// keyState says how a key is, and when it ends or ended. heir is the key that it was rotated
// into, if that works.
func keyState(k *till.Key, now till.Time, heir string) (state string, ends till.Time) {
	switch {
	case !k.RevokedAt.IsZero():
		return "revoked", k.RevokedAt
	case !k.Active(now):
		return "expired", k.ExpiresAt
	case heir != "":
		return "rotated into " + heir, k.ExpiresAt
	case !k.ExposedAt.IsZero():
		return "exposed", k.ExpiresAt
	}
	return "active", k.ExpiresAt
}

// ownerOf returns the client of a key, and rejects a key of another client
// than the named one.
func ownerOf(ctx context.Context, s *store.Store, keyID, client string) (id till.ID, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		owner, found, err := access.KeyOwner(ctx, tx, keyID)
		if err == nil && (!found || client != "" && !strings.EqualFold(client, owner.String())) {
			err = till.Errorf(till.CodeKeyNotFound, "there is no such key")
		}
		id = owner
		return err
	})
	return id, err
}

func newKeyRevoke() *cobra.Command {
	var client string
	var cascade bool
	cmd := &cobra.Command{
		Use:   "revoke KEY_ID",
		Short: "Revoke a key and the keys that it made",
		Long: `Revoke a key for good, with the keys that it made. Use it when a key is not
needed or has leaked; for a leaked key add --cascade.`,
		Example: `  till key revoke 3f9a1c07 --cascade`,
		Args:    cli.OneArg,
	}
	cmd.Flags().BoolVar(&cascade, "cascade", false, "also revoke its successor and all keys made by them: for a leaked key")
	cmd.Flags().StringVar(&client, "client", "", "the client's id, to make sure whose key it is")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		owner, err := ownerOf(c.Context(), c.Store, c.Args[0], client)
		if err != nil {
			return err
		}
		done, err := account.New(c.Store, nil).RevokeKey(c.Context(), owner, c.Args[0], cascade, cli.Actor())
		if err != nil {
			return err
		}
		return printRevoked(c, c.Args[0], done)
	})
}

// printRevoked prints the revoked keys, and their successors that still work.
func printRevoked(c *cli.Call, keyID string, done account.Revocation) error {
	ended, left := keyIDs(done.Ended), keyIDs(done.Left)
	return c.Show(cli.Object{"ended", ended, "key_id", keyID, "left", left, "revoked", true}, func(w io.Writer) error {
		_, err := cli.Printf(w, "key %s: revoked\n", keyID)
		for _, id := range ended {
			cli.Printf(w, "key %s: revoked, it descends from it\n", id)
		}
		for _, id := range left {
			cli.Printf(w, "key %s: goes on, although it descends from it; --cascade ends it too\n", id)
		}
		return err
	})
}

func keyIDs(keys []*till.Key) []string {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.ID
	}
	return ids
}

func newKeyRotate() *cobra.Command {
	var client string
	var overlap time.Duration
	cmd := &cobra.Command{
		Use:   "rotate KEY_ID",
		Short: "Replace a key by a new one",
		Long: `Create a key with the same scopes and let the old one expire. Use it regularly,
and when a person leaves. Both keys work until --overlap is over.`,
		Example: `  till key rotate 3f9a1c07 --overlap 1h`,
		Args:    cli.OneArg,
	}
	cmd.Flags().StringVar(&client, "client", "", "the client's id, to make sure whose key it is")
	cmd.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key goes on working, at most 168h")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		owner, err := ownerOf(c.Context(), c.Store, c.Args[0], client)
		if err != nil {
			return err
		}
		text, key, err := account.New(c.Store, nil).RotateKey(c.Context(), owner, c.Args[0], overlap, cli.Actor())
		if err != nil {
			return err
		}
		ends, err := endOf(c.Context(), c.Store, owner, c.Args[0])
		if err != nil {
			return err
		}
		return c.Say(cli.Object{"key_id", key.ID, "api_key", text, "replaces", key.Replaces, "replaced_ends_at", ends},
			newKeyText+"Key %s goes on until %s.\n", key.ID, text, key.Replaces, ends)
	})
}
