package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/internal/seal"
	"till/secret"
	"till/store"
	"till/store/admin"
	"till/upkeep"
)

func newSecret() *cobra.Command {
	return cli.NewGroup("secret", "Rotate the installation's secret",
		newSecretList(), newSecretAdd(), newSecretUse(), newSecretReseal(), newSecretRetire())
}

// secretFlags are the flags that the commands share.
type secretFlags struct {
	database, file, by string
	asJSON             bool
}

func (f *secretFlags) add(cmd *cobra.Command, file, by bool) {
	if file {
		cmd.Flags().StringVar(&f.file, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	}
	if by {
		cli.AddBy(cmd, &f.by, "the person who decides (required)")
		cmd.MarkFlagRequired("by")
	}
	cli.AddDatabase(cmd, &f.database)
	cli.AddJSON(cmd, &f.asJSON)
}

func newSecretList() *cobra.Command {
	var f secretFlags
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"status"},
		Short:   "List the generations of the installation's secret",
		Long: `List the generations of the installation's secret, and how many values of the
database each one sealed. Use it during a rotation, to see how far it is.`,
		Example: `  till secret list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WithDatabase(cmd.Context(), f.database, func(s *store.Store) error {
				g, err := upkeep.ReadGenerations(cmd.Context(), s)
				if err != nil {
					return err
				}
				return printGenerations(cmd.OutOrStdout(), &g, f.asJSON)
			})
		},
	}
	f.add(cmd, false, false)
	return cmd
}

func newSecretAdd() *cobra.Command {
	var f secretFlags
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add a generation to the installation's secret",
		Long: `Add a new key to the file of the installation's secret, and its number to the
database. It seals nothing until 'till secret use'. Use it to begin a rotation, and
put the changed file on every instance. If it was interrupted, run it again.

The first line of the file stays for ever: references that operators know derive
from it, and with another one customers could be charged twice.`,
		Example: `  till secret add --by "Anne Mbemba"`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WithDatabase(cmd.Context(), f.database, func(s *store.Store) error {
				file, err := cli.SecretPath(f.database, f.file)
				if err != nil {
					return err
				}
				number, err := secret.AddKey(cmd.Context(), s, file, f.by)
				if err != nil {
					return err
				}
				if f.asJSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"generation": number, "file": file})
				}
				_, err = cli.Printf(cmd.OutOrStdout(), "Generation %d is in %s. Put this file on every instance and into your backup, then run 'till secret use %d'.\n", number, file, number)
				return err
			})
		},
	}
	f.add(cmd, true, true)
	return cmd
}

// maxNotYet is how long a command waits for running instances, which follow a change within
// seconds.
const maxNotYet = 10 * time.Second

// whenReady makes a change, and waits a while if running instances are not ready for it.
func whenReady(ctx context.Context, change func() (bool, error)) (changed bool, err error) {
	for end := time.Now().Add(maxNotYet); ; {
		changed, err = change()
		if !errors.Is(err, upkeep.ErrNotYet) || time.Now().After(end) {
			return changed, err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return false, err
		}
	}
}

func parseGeneration(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > seal.MaxGeneration {
		return 0, fmt.Errorf("a generation is a number from 1 to %d", seal.MaxGeneration)
	}
	return n, nil
}

func newSecretUse() *cobra.Command {
	var f secretFlags
	cmd := &cobra.Command{
		Use:   "use GENERATION",
		Short: "Let all instances seal with a generation",
		Long: `Make all instances seal with a generation within seconds. They seal anew what
another generation sealed, behind requests. Use it after 'till secret add', when the
file is on every instance. If an instance runs that does not hold the generation,
the command waits ten seconds for it and is then refused. To go back, use the
generation before.

It ends every session and open link of the console: everybody signs in again.`,
		Example: `  till secret use 2 --by "Anne Mbemba"`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := parseGeneration(args[0])
			if err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), f.database, func(s *store.Store) error {
				changed, err := whenReady(cmd.Context(), func() (bool, error) { return upkeep.UseGeneration(cmd.Context(), s, number, f.by) })
				if err != nil {
					return err
				}
				if f.asJSON {
					return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"generation": number, "changed": changed})
				}
				if !changed {
					_, err = cli.Printf(cmd.OutOrStdout(), "Generation %d is in use already.\n", number)
					return err
				}
				_, err = cli.Printf(cmd.OutOrStdout(), "Generation %d is in use. 'till secret list' shows when nothing needs another one any more.\n", number)
				return err
			})
		},
	}
	f.add(cmd, false, true)
	return cmd
}

func newSecretReseal() *cobra.Command {
	var f secretFlags
	cmd := &cobra.Command{
		Use:   "reseal",
		Short: "Seal anew what another generation sealed",
		Long: `Seal every value of the database with the generation in use. A running service
does the same by itself. Use it when none runs, or to see that it is done. It may be
interrupted and run again.`,
		Example: `  till secret reseal`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cli.WithDatabase(cmd.Context(), f.database, func(s *store.Store) error {
				ring, err := cli.ReadKeyring(cmd.Context(), s, f.database, f.file)
				if err != nil {
					return err
				}
				done, err := secret.Reseal(cmd.Context(), s, ring)
				if err != nil {
					return err
				}
				if f.asJSON {
					err = cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"generation": ring.Used(), "sealed": done.Sealed, "unreadable": done.Unreadable})
				} else {
					_, err = cli.Printf(cmd.OutOrStdout(), "%s sealed anew with generation %d.\n", cli.Count(int(done.Sealed), "value was", "values were"), ring.Used())
				}
				if err == nil && done.Unreadable > 0 {
					err = fmt.Errorf("%s not be opened: the generation is not in the file, or the value was changed; nothing was done to it", cli.Count(int(done.Unreadable), "value could", "values could"))
				}
				return err
			})
		},
	}
	f.add(cmd, true, false)
	return cmd
}

func newSecretRetire() *cobra.Command {
	var f secretFlags
	var moved bool
	cmd := &cobra.Command{
		Use:   "retire GENERATION",
		Short: "End a generation that nothing needs any more",
		Long: `End a generation, and delete its key from the file of the secret; the first line,
which is also generation 1, stays. Use it at the end of a rotation. It is refused
while a value is sealed with the generation, and while a payment or payout is open
whose operator may call back to an address of that time.

Some operators call one address, which a person entered in their portal. It changes
with the generation: enter the one that 'till connections' shows, then say so with
--callbacks-moved. Keep the old file with the backups of its time: they need it.

It ends every session and open link of the console: everybody signs in again.`,
		Example: `  till secret retire 1 --callbacks-moved --by "Anne Mbemba"`,
		Args:    cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := parseGeneration(args[0])
			if err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), f.database, func(s *store.Store) error {
				return retireGeneration(cmd, s, &f, number, moved)
			})
		},
	}
	cmd.Flags().BoolVar(&moved, "callbacks-moved", false, "operators with an address in their portal have the new one")
	f.add(cmd, true, true)
	return cmd
}

// errCallbacks refuses a retirement that could leave an operator with an address that does
// not exist any more.
var errCallbacks = errors.New("operators may have a callback address of this generation in their portal: compare it with 'till connections', then say so with --callbacks-moved")

func retireGeneration(cmd *cobra.Command, s *store.Store, f *secretFlags, number int, moved bool) error {
	ctx := cmd.Context()
	file, err := cli.SecretPath(f.database, f.file)
	if err != nil {
		return err
	}
	if err := secret.CheckFile(ctx, s, file); err != nil {
		return fmt.Errorf("the secret in %s: %w", file, err)
	}
	if !moved {
		asks, err := hasOperators(ctx, s)
		if err != nil {
			return err
		}
		if asks {
			return errCallbacks
		}
	}
	changed, err := whenReady(ctx, func() (bool, error) { return upkeep.RetireGeneration(ctx, s, number, f.by) })
	if err == nil {
		err = secret.RemoveKey(file, number)
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		return cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"generation": number, "changed": changed, "file": file})
	}
	if !changed {
		_, err = cli.Printf(cmd.OutOrStdout(), "Generation %d is retired already.\n", number)
		return err
	}
	if number == 1 {
		_, err = cli.PrintLine(cmd.OutOrStdout(), "Generation 1 is retired. Its line stays in the file: it is the root, which is never rotated.")
		return err
	}
	_, err = cli.Printf(cmd.OutOrStdout(), "Generation %d is retired, and its line deleted from %s. Put this file on every instance.\n", number, file)
	return err
}

// hasOperators reports whether a connection other than the sandbox was ever configured.
func hasOperators(ctx context.Context, s *store.Store) (has bool, err error) {
	err = s.View(ctx, func(tx *store.Tx) error {
		names, err := admin.Connections(ctx, tx)
		has = false
		for name := range names {
			has = has || strings.TrimSuffix(name, " payout") != till.SandboxConnection // as the server registers them
		}
		return err
	})
	return has, err
}

// generationJSON is a generation as the command prints it.
type generationJSON struct {
	Generation int                    `json:"generation"`
	State      upkeep.GenerationState `json:"state"`
	AddedAt    *string                `json:"added_at"`
	UsedAt     *string                `json:"used_at"`
	RetiredAt  *string                `json:"retired_at"`
	Sealed     int64                  `json:"sealed"`
	Values     map[string]int64       `json:"values"`
}

func printGenerations(w io.Writer, g *upkeep.Generations, asJSON bool) error {
	all := g.All
	if len(all) == 0 {
		all = []admin.Generation{{Number: 1}}
	}
	rows := []generationJSON{}
	for i := range all {
		r := generationJSON{Generation: all[i].Number, State: g.State(&all[i]), AddedAt: cli.TimeOrNull(all[i].AddedAt), UsedAt: cli.TimeOrNull(all[i].UsedAt),
			RetiredAt: cli.TimeOrNull(all[i].RetiredAt), Sealed: g.SealedBy(all[i].Number), Values: map[string]int64{}}
		for kind, by := range g.Sealed {
			if n := by[all[i].Number]; n > 0 {
				r.Values[string(kind)] = n
			}
		}
		rows = append(rows, r)
	}
	if asJSON {
		return cli.PrintJSON(w, map[string]any{"used": g.Used(), "generations": rows})
	}
	return cli.Table(w, func(row func(cells ...any)) {
		row("GENERATION", "STATE", "SEALED", "ADDED", "IN USE SINCE", "RETIRED")
		for i, r := range rows {
			row(r.Generation, r.State, r.Sealed, cli.TimeOr(all[i].AddedAt, "-"), cli.TimeOr(all[i].UsedAt, "-"), cli.TimeOr(all[i].RetiredAt, "-"))
		}
	})
}
