package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"till/backup"
	"till/cmd/till/internal/cli"
	"till/cmd/till/internal/money"
	"till/store"
	"till/store/admin"
)

// drillFlags are the flags of 'till drill'.
type drillFlags struct {
	archiveFlags
	database, work string
	asJSON         bool
}

func newDrill() *cobra.Command {
	var d drillFlags
	cmd := &cobra.Command{
		Use:   "drill ARCHIVE",
		Short: "Prove that a backup can be put back",
		Long: `Restore a backup into a folder of its own, verify its books, compare its audit
chains with the heads in its manifest, and delete the folder. Run it every week,
also on another machine. ARCHIVE is what 'till restore' takes: a folder or
s3://BUCKET/PREFIX stands for its newest backup.

A backup that is good gets a small file beside it, NAME.drilled: 'till backup --keep'
deletes only what is older than such a one. With --database, the running database, it
refuses another installation's backup and records the result there, for 'till doctor'.

The exit code is 0 if the backup is good, 1 if its books have problems, 2 if it
cannot be restored.`,
		Example: `  till drill /backup --identity key.txt
  till drill s3://pay-backups/till --identity key.txt --database /var/lib/till/till.db`,
		Args: cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args[0]) },
	}
	d.archiveFlags.add(cmd)
	f := cmd.Flags()
	f.StringVar(&d.database, "database", "", "the running database, to record the result in (default none)")
	f.StringVar(&d.work, "work", os.TempDir(), "where to make the folder: it needs the size of the database, twice")
	cli.AddJSON(cmd, &d.asJSON)
	return cmd
}

func (d *drillFlags) run(cmd *cobra.Command, archive string) (err error) {
	if d.database == "" {
		_, err := d.drill(cmd, archive)
		return err
	}
	if store.IsPostgres(d.database) {
		return errPostgresBackup
	}
	ctx := cmd.Context()
	return cli.WithDatabase(ctx, d.database, func(s *store.Store) error {
		var i *admin.Installation
		err := s.View(ctx, func(tx *store.Tx) (err error) {
			i, err = admin.ReadInstallation(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
		if mine := backup.InstallationID(i.SecretCheck); d.installation == "" {
			d.installation = mine
		} else if d.installation != mine {
			return fmt.Errorf("--installation %s is not the one of %s, which is %s", d.installation, d.database, mine)
		}
		result, err := d.drill(cmd, archive)
		return errors.Join(err, recordBackup(ctx, s, admin.KindDrill, result, err))
	})
}

func (d *drillFlags) drill(cmd *cobra.Command, text string) (*admin.BackupResult, error) {
	r, in, err := d.request(cmd, text)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	bar := cli.NewProgress(cmd.ErrOrStderr(), "rows")
	done, err := backup.RunDrill(cmd.Context(), r, d.work, bar.At)
	bar.End()
	if err != nil {
		return nil, fmt.Errorf("%s could not be restored: %w", in.shown, err)
	}
	m := done.Restored.Manifest
	result := &admin.BackupResult{TakenAt: m.Taken(), Place: in.shown, Bytes: m.Pages * m.PageSize, TookMS: (done.Restoring + done.Verifying).Milliseconds()}
	if done.Report.Clean() {
		markDrilled(cmd, in, m)
	}
	return result, d.print(cmd, in.shown, done)
}

// markDrilled notes beside the backup that it is good: then older ones may be deleted. The
// drill counts also where it cannot be noted, such as on a copy that cannot be written.
func markDrilled(cmd *cobra.Command, in *archive, m *backup.Manifest) {
	if in.place == nil || *in.name != backup.NameOf(m, in.name.Encrypted) {
		return
	}
	if err := backup.SetMark(cmd.Context(), in.place, *in.name, backup.Drilled, "verified by "+cli.VersionText()); err != nil {
		cli.Printf(cmd.ErrOrStderr(), "till: the drill was not noted beside the backup, so 'till backup --keep' does not know of it: %v\n", err)
	}
}

func (d *drillFlags) print(cmd *cobra.Command, name string, done *backup.Drill) error {
	w, m, report := cmd.OutOrStdout(), done.Restored.Manifest, &done.Report
	if d.asJSON {
		err := cli.PrintJSON(w, map[string]any{
			"backup": name, "taken_at": m.TakenAt, "installation": m.Installation, "clean": report.Clean(), "payments": report.Payments, "payouts": report.Payouts,
			"bytes": m.Pages * m.PageSize, "restore_seconds": done.Restoring.Seconds(), "verify_seconds": done.Verifying.Seconds(), "audit_heads": report.Heads,
			"problems": len(report.Problems) + int(report.Omitted), "migrated": append([]string{}, done.Restored.Migrated...),
		})
		if err == nil && !report.Clean() {
			err = cli.ErrProblems
		}
		return err
	}
	cli.Printf(w, "%s of %s was restored in %s and verified in %s: %s, %s, %s.\n", name, m.TakenAt, tenths(done.Restoring), tenths(done.Verifying),
		cli.Count(report.Payments, "payment", "payments"), cli.Count(report.Payouts, "payout", "payouts"), cli.Count(report.Heads, "audit head found again", "audit heads found again"))
	if err := money.PrintReport(w, report, true, false); err != nil {
		return err
	}
	if !report.Clean() {
		return cli.ErrProblems
	}
	return nil
}

func tenths(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
