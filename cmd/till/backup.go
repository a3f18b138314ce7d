package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"till/backup"
	"till/cmd/till/internal/cli"
	"till/config"
	"till/internal/escape"
	"till/secret"
	"till/store"
	"till/store/admin"
)

// backupFlags are the flags of 'till backup'.
type backupFlags struct {
	database, secretFile, config string
	to, keep                     string
	recipients                   []string
	hold, asJSON                 bool
}

func newBackup() *cobra.Command {
	var b backupFlags
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Save a SQLite database, beside a running server",
		Long: `Save a SQLite database in a folder, in object storage (s3://BUCKET/PREFIX) or on
standard output (-). Run it every hour. A server may be running: it is not held
up, and the backup is the state of one moment.

The backup is one file, encrypted for the age public keys of --recipient: this
machine cannot read it. 'till restore' puts it back; so does 'age -d | tar xz'.
Without a recipient it is not encrypted, and the installation's secret is left out:
keep that elsewhere.

--keep deletes older backups of this installation, once a newer one was drilled
('till drill'). It deletes none that is younger than 48 hours, and none at all while
the last verification found problems or a restore is not released. The output says
what stayed and why. --hold keeps this backup for ever and deletes nothing: use it
before you repair something.

--config reads the same from [backup] of a file: to, recipients, keep. Object
storage needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_REGION or
AWS_ENDPOINT_URL_S3. PostgreSQL has its own tools: see the guide.`,
		Example: `  till backup --to /backup --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p
  till backup --config /etc/till/till.toml
  till backup --to s3://pay-backups/till --keep 24h,7d,5w,12m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return b.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&b.to, "to", "", "where to: a folder, s3://BUCKET/PREFIX, or - for standard output")
	f.StringArrayVar(&b.recipients, "recipient", nil, "an age public key to encrypt for; may be repeated")
	f.StringVar(&b.keep, "keep", "", "which backups to keep there, as 24h,7d,5w,12m (default all)")
	f.BoolVar(&b.hold, "hold", false, "keep this one until a person deletes its .held file, and delete none now")
	f.StringVar(&b.config, "config", "", "the TOML file whose [backup] says the same")
	f.StringVar(&b.secretFile, "secret-file", "", "the installation's secret (default till.secret beside the database)")
	cli.AddDatabase(cmd, &b.database)
	cli.AddJSON(cmd, &b.asJSON)
	return cmd
}

// fill takes what is not on the command line from the configuration.
func (b *backupFlags) fill() error {
	if b.config == "" {
		return nil
	}
	c, err := config.LoadBackup(b.config)
	if err != nil {
		return err
	}
	if b.to == "" {
		b.to = c.To
	}
	if b.keep == "" {
		b.keep = c.Keep
	}
	if len(b.recipients) == 0 {
		b.recipients = c.Recipients
	}
	return nil
}

// errPostgresBackup names the tool for PostgreSQL.
var errPostgresBackup = errors.New("this is for a SQLite file. PostgreSQL is saved by its own tools: docs/guide/backup.md shows pgBackRest")

func (b *backupFlags) run(cmd *cobra.Command) error {
	if err := b.fill(); err != nil {
		return err
	}
	switch {
	case store.IsPostgres(b.database):
		return errPostgresBackup
	case b.to == "":
		return errors.New("say where to save it: --to FOLDER, --to s3://BUCKET/PREFIX, or [backup] of --config")
	}
	keep, err := backup.ParseKeep(b.keep)
	if err != nil {
		return err
	}
	var recipients []age.Recipient
	for _, text := range b.recipients {
		r, err := parseRecipient(text)
		if err != nil {
			return err
		}
		recipients = append(recipients, r)
	}
	place, err := b.place(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	if err := cli.CheckFile(b.database); err != nil {
		return err
	}
	return b.save(cmd, place, recipients, keep)
}

func parseRecipient(text string) (age.Recipient, error) {
	if r, err := age.ParseX25519Recipient(text); err == nil {
		return r, nil
	}
	if r, err := age.ParseHybridRecipient(text); err == nil {
		return r, nil
	}
	return nil, fmt.Errorf("%q is not a public key of age: it begins with age1, and 'age-keygen' prints it", text)
}

// within reports whether a folder is another one or below it.
func within(folder, other string) bool {
	if strings.Contains(folder, "://") {
		return false
	}
	folder, err1 := filepath.Abs(folder)
	other, err2 := filepath.Abs(other)
	below, err3 := filepath.Rel(other, folder)
	return err1 == nil && err2 == nil && err3 == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
}

// place opens the place, and refuses the folder of the database and those in it: who loses
// one loses both.
func (b *backupFlags) place(stdout io.Writer) (backup.Place, error) {
	if b.to == "-" {
		if e, ok := stdout.(*escape.Writer); ok {
			stdout = e.Raw()
		}
		if cli.IsTerminal(stdout) {
			return nil, errors.New("a terminal is no place for a backup: send standard output to a file or a program")
		}
		return outputPlace{stdout}, nil
	}
	if within(b.to, filepath.Dir(b.database)) {
		return nil, errors.New("--to is in the folder of the database: what destroys one would destroy both. Choose another folder, better another disk")
	}
	return backup.OpenPlace(b.to, os.Getenv)
}

// save makes the backup and records what became of it.
func (b *backupFlags) save(cmd *cobra.Command, place backup.Place, recipients []age.Recipient, keep backup.Keep) (err error) {
	ctx, begun := cmd.Context(), time.Now()
	s, err := store.Open(ctx, store.Config{Path: b.database, Readers: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	// Before an upgrade the database is saved by the new program, too.
	current := s.CheckSchema(ctx) == nil
	bar := cli.NewProgress(cmd.ErrOrStderr(), "pages")
	src := &backup.Source{Store: s, Program: cli.VersionText(), Recipients: recipients, WithHeads: current, Progress: bar.At}
	if src.Secret, err = b.secret(ctx, s, len(recipients) > 0, current); err != nil {
		return err
	}
	m, err := src.Prepare(ctx)
	if err != nil {
		return err
	}
	name := backup.NameOf(m, len(recipients) > 0)
	size, err := place.Put(ctx, name.String(), func(w io.Writer) error { return src.Write(ctx, m, w) })
	bar.End()
	var pruned backup.Pruned
	if err == nil {
		pruned, err = b.afterwards(ctx, s, place, name, keep, current)
	} else {
		err = fmt.Errorf("no backup was made, and the earlier ones are as they were: %w", err)
	}
	took := time.Since(begun)
	if current {
		result := &admin.BackupResult{TakenAt: m.Taken(), Place: place.String(), Bytes: size, TookMS: took.Milliseconds()}
		err = errors.Join(err, recordBackup(ctx, s, admin.KindBackup, result, err))
	}
	if err != nil {
		return err
	}
	return b.print(cmd, place, m, name, size, took, &pruned)
}

// recordBackup records what became of a backup or a drill.
func recordBackup(ctx context.Context, s *store.Store, kind admin.BackupKind, r *admin.BackupResult, failed error) error {
	return s.UpdateBackground(ctx, func(tx *store.Tx) error {
		if failed != nil {
			return admin.SaveBackupProblem(ctx, tx, kind, failed.Error())
		}
		r.EndedAt = tx.Now()
		return admin.SaveBackupResult(ctx, tx, kind, r)
	})
}

// secret returns the content of the secret's file, if it is to be in the backup.
// A database of an older release has only the first generation.
func (b *backupFlags) secret(ctx context.Context, s *store.Store, encrypted, current bool) ([]byte, error) {
	if !encrypted {
		return nil, nil
	}
	file, err := cli.SecretPath(b.database, b.secretFile)
	if err != nil {
		return nil, err
	}
	if current {
		err = secret.CheckFile(ctx, s, file)
	} else {
		var root []byte
		if root, err = secret.Read(file); err == nil {
			err = secret.Check(ctx, s, root)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the secret in %s: %w", file, err)
	}
	return os.ReadFile(file)
}

func (b *backupFlags) print(cmd *cobra.Command, place backup.Place, m *backup.Manifest, name backup.Name, size int64, took time.Duration, pruned *backup.Pruned) error {
	w := cmd.OutOrStdout()
	if b.to == "-" {
		w = cmd.ErrOrStderr()
	}
	if b.asJSON {
		deleted := []string{}
		for _, n := range pruned.Removed {
			deleted = append(deleted, n.String())
		}
		stayed := pruned.Stayed
		if stayed == nil {
			stayed = map[backup.Why]int{}
		}
		return cli.PrintJSON(w, map[string]any{
			"name": name.String(), "place": place.String(), "taken_at": m.TakenAt, "installation": m.Installation, "bytes": size, "pages": m.Pages,
			"seconds": took.Seconds(), "encrypted": name.Encrypted, "secret": m.HasSecret(), "deleted": deleted,
			"held": b.hold, "not_deleted": stayed, "nothing_deleted_because": cli.TextOrNull(pruned.Stop),
		})
	}
	cli.Printf(w, "Saved the state of %s as %s in %s: %s in %s.\n", m.TakenAt, name, place, megabytes(size), took.Round(100*time.Millisecond))
	if !m.HasSecret() {
		cli.PrintLine(w, "It is not encrypted, so the installation's secret is not in it: keep till.secret elsewhere, or name a --recipient.")
	}
	if b.hold {
		cli.Printf(w, "It is held: it stays until a person deletes %s%s.\n", name, backup.Held)
	}
	printPruned(w, pruned)
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// outputPlace is standard output.
type outputPlace struct{ w io.Writer }

func (p outputPlace) Put(_ context.Context, _ string, write func(w io.Writer) error) (int64, error) {
	c := &countingWriter{w: p.w}
	err := write(c)
	return c.n, err
}

func (p outputPlace) List(context.Context) ([]string, error) { return nil, nil }
func (p outputPlace) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}
func (p outputPlace) Remove(context.Context, string) error { return nil }
func (p outputPlace) String() string                       { return "standard output" }

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
