package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
	"till/store"
	"till/store/admin"
	"till/upkeep"
)

func newLevel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "level",
		Short: "Show what may be written, and which instances run",
		Long: `Show the level of the database and the instances that were seen within the last
hour. The level says what may be written. A new release reads new forms at once
and writes them after the level was raised. Until then a release that knows all
migrations that are not rolling runs beside it and can be started again; the newest
of these is named.

The level is raised by itself after 24 hours in which only instances of the new
release were seen. Use it after an upgrade, to see whether the release before can
still run; use 'till level raise' to raise it at once.`,
		Example: `  till level`,
		Args:    cobra.NoArgs,
	}
	cmd.AddCommand(newLevelRaise())
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		l, err := upkeep.ReadLevels(c.Context(), c.Store)
		if err != nil {
			return err
		}
		return printLevels(c, &l)
	})
}

func newLevelRaise() *cobra.Command {
	var by string
	cmd := &cobra.Command{
		Use:   "raise",
		Short: "Let the new release write what it brings",
		Long: `Raise the level of the database to this program's. Use it after an upgrade, when
you are sure that you will not go back: the release before cannot run on the
database any more. It is refused while an instance of that release runs. The
audit log of the house records it.`,
		Example: `  till level raise --by "Anne Mbemba"`,
		Args:    cobra.NoArgs,
	}
	cli.AddBy(cmd, &by, "the person who decides (required)")
	cli.Require(cmd, "by")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		ctx := store.WithCause(c.Context(), cli.CauseOf(c.Command))
		raised, err := upkeep.RaiseLevel(ctx, c.Store, admin.Level, by)
		if err != nil {
			return err
		}
		if c.JSON {
			return cli.PrintJSON(c.OutOrStdout(), cli.Object{"level", admin.Level, "raised", raised})
		}
		if !raised {
			_, err = cli.Printf(c.OutOrStdout(), "The level is %d already.\n", admin.Level)
			return err
		}
		_, err = cli.Printf(c.OutOrStdout(), "The level is %d now. Programs that do not know it stop within two seconds and do not start any more.\n", admin.Level)
		return err
	})
}

// instanceJSON is an instance as the command prints it.
type instanceJSON struct {
	InstanceID string `json:"instance_id"`
	Version    string `json:"version"`
	Level      int64  `json:"level"`
	Role       string `json:"role"`
	StartedAt  string `json:"started_at"`
	SeenAt     string `json:"seen_at"`
	Running    bool   `json:"running"`
}

func printLevels(c *cli.Call, l *upkeep.Levels) error {
	instances := []instanceJSON{}
	for _, i := range l.Instances {
		instances = append(instances, instanceJSON{InstanceID: i.ID.String(), Version: i.Version, Level: i.Level, Role: i.Role,
			StartedAt: i.StartedAt.String(), SeenAt: i.SeenAt.String(), Running: i.Running(l.At)})
	}
	older := len(l.Older(l.Program))
	return c.Show(cli.Object{"instances", instances, "level", l.Level, "may_raise", l.Level < l.Program && older == 0, "program_level", l.Program, "since_migration", l.Since}, func(w io.Writer) error {
		_, err := cli.Printf(w, "The database has level %d, this program knows level %d.\n", l.Level, l.Program)
		if len(instances) > 0 {
			err = errors.Join(err, cli.Table(w, func(row func(cells ...any)) {
				row("INSTANCE", "VERSION", "LEVEL", "ROLE", "STARTED", "SEEN")
				for _, i := range instances {
					row(i.InstanceID, i.Version, i.Level, i.Role, i.StartedAt, i.SeenAt)
				}
			}))
		}
		switch {
		case l.Level >= l.Program:
			_, e := cli.PrintLine(w, "There is nothing to raise.")
			return errors.Join(err, e)
		case older > 0:
			_, e := cli.Printf(w, "It cannot be raised yet: %s.\n", cli.Count(older, "instance of an older release runs", "instances of an older release run"))
			return errors.Join(err, e)
		}
		_, e := cli.Printf(w, "It can be raised with 'till level raise'; until then %s.\n", l.WayBack())
		return errors.Join(err, e)
	})
}
