package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"till"
	"till/backup"
	"till/cmd/till/internal/cli"
	"till/secret"
	"till/server"
	"till/store"
)

// archiveFlags are the flags that 'till restore' and 'till drill' share.
type archiveFlags struct {
	identityFile, secretFile, installation string
}

func (a *archiveFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&a.identityFile, "identity", "", "the file with the age identity that opens the backup")
	f.StringVar(&a.secretFile, "secret-file", "", "the installation's secret, for a backup that is not encrypted and has none")
	f.StringVar(&a.installation, "installation", "", "take only backups of this installation, as in their names")
}

// archive is a backup that is read.
type archive struct {
	io.ReadCloser
	shown string       // its name, for people
	place backup.Place // where it is; nil if it has no place
	name  *backup.Name // nil if it has not the name of a backup
}

// request opens the archive that a text names and prepares a restore of it.
func (a *archiveFlags) request(cmd *cobra.Command, text string) (r backup.RestoreRequest, in *archive, err error) {
	r = backup.RestoreRequest{
		SecretFile: a.secretFile, Installation: a.installation, By: cli.Actor(), ReadSecret: secret.Read, CheckSecret: secret.CheckFile,
	}
	if a.identityFile != "" {
		if r.Identities, err = readIdentities(a.identityFile); err != nil {
			return r, nil, err
		}
	}
	if in, err = openArchive(cmd, text, a.installation); err != nil {
		return r, nil, err
	}
	r.Archive, r.Name = in, in.name
	return r, in, nil
}

// maxIdentityFile is the size of the largest file of identities.
const maxIdentityFile = 1 << 20

func readIdentities(file string) ([]age.Identity, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ids, err := age.ParseIdentities(io.LimitReader(f, maxIdentityFile))
	if err != nil { // its text may quote the file
		return nil, fmt.Errorf("%s holds no identity of age: 'age-keygen' writes such a file", file)
	}
	return ids, nil
}

// openArchive opens a file, the newest backup of a folder or of a prefix in object
// storage, one object, or standard input.
func openArchive(cmd *cobra.Command, text, installation string) (*archive, error) {
	if text == "-" {
		return &archive{ReadCloser: io.NopCloser(cmd.InOrStdin()), shown: "standard input"}, nil
	}
	dir, file := path.Split(text)
	name, named := backup.ParseName(file)
	stored := strings.HasPrefix(text, "s3://")
	if !stored {
		info, err := os.Stat(text)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() && !named {
			f, err := os.Open(text)
			return &archive{ReadCloser: f, shown: text}, err
		}
		dir, _ = filepath.Split(filepath.Clean(text))
		if named = named && !info.IsDir(); !named {
			dir = text
		} else if dir == "" {
			dir = "."
		}
	} else if !named {
		dir = text
	}
	place, err := backup.OpenPlace(dir, os.Getenv)
	if err == nil && !named {
		name, err = backup.Newest(cmd.Context(), place, installation)
	}
	if err != nil {
		return nil, err
	}
	in, err := place.Open(cmd.Context(), name.String())
	return &archive{in, name.String(), place, &name}, err
}

func newRestore() *cobra.Command {
	var a archiveFlags
	var database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "restore ARCHIVE",
		Short: "Put a backup back into an empty folder",
		Long: `Put a backup of 'till backup' back: a file, the newest of a folder or of
s3://BUCKET/PREFIX, or - for standard input. Use it when the database is lost.

The folder of --database must be empty and no server may be running there. The
backup is checked, migrated and marked as restored ('till restored') before the
database gets its name, so no server can start on it as if nothing had been lost.
If it is interrupted, nothing is there: run it again.

Like 'till restored' it lists the keys that work and ends with exit code 1: review
them, then run the command that it prints.`,
		Example: `  till restore /backup --identity key.txt --database /var/lib/till/till.db
  till restore s3://pay-backups/till --identity key.txt --database /var/lib/till/till.db`,
		Args: cli.OneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if store.IsPostgres(database) {
				return errPostgresBackup
			}
			return restore(cmd, &a, args[0], database, asJSON)
		},
	}
	a.add(cmd)
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

func restore(cmd *cobra.Command, a *archiveFlags, text, database string, asJSON bool) (err error) {
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	r, in, err := a.request(cmd, text)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(database), 0o700); err != nil {
		return fmt.Errorf("make the folder of the database: %w", err)
	}
	release, err := server.LockDatabase(database)
	if err != nil {
		return err
	}
	var keys []activeKey
	r.Database = database
	r.Read = func(ctx context.Context, s *store.Store) (err error) {
		keys, err = activeKeys(ctx, s)
		return err
	}
	if !asJSON {
		cli.Printf(w, "Putting %s back as %s.\n", in.shown, database)
	}
	done, err := backup.Restore(ctx, r)
	err = errors.Join(err, release())
	if err != nil {
		return fmt.Errorf("nothing was restored: %w", err)
	}
	if err := printRestored(w, in.shown, database, done, keys, asJSON); err != nil {
		return err
	}
	return errReviewKeys
}

func printRestored(w io.Writer, name, database string, done *backup.Restored, keys []activeKey, asJSON bool) error {
	m := done.Manifest
	if asJSON {
		return cli.PrintJSON(w, map[string]any{
			"backup": name, "database": database, "installation": m.Installation, "lost_from": m.TakenAt, "log_id": done.Marked.LogID.String(),
			"migrated":      append([]string{}, done.Migrated...),
			"possibly_sent": map[string]int{"payments": done.Marked.Payments, "payouts": done.Marked.Payouts},
			"payouts_held":  true, "keys_reviewed": false, "keys": keys,
		})
	}
	cli.Printf(w, "It is of %s: what was written from then on is lost. New payouts are held until 'till restored --release'.\n", m.TakenAt)
	cli.Printf(w, "The installation is %s: if it is not yours, somebody else made this backup: do not start it.\n", m.Installation)
	if err := (&restoredFlags{}).print(w, done.Marked, nil, nil, keys, 0); err != nil {
		return err
	}
	cli.Printf(w, "\nEnd the keys that must not work ('till key revoke'), then run:\n\n  till restored --database %s --lost-from %s --keys-reviewed\n\n", database, m.TakenAt)
	return nil
}

// errReviewKeys means that the database is back, and only the review of the keys is
// left.
var errReviewKeys = till.Errorf(till.CodeValidationFailed,
	"the database is back, and this is not the end: review the keys, then run 'till restored --keys-reviewed' as printed above")
