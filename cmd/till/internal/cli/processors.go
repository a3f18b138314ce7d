package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"

	"github.com/spf13/cobra"

	"till"
	"till/collect"
	"till/engine"
	"till/internal/logs"
	"till/internal/seal"
	"till/journal"
	"till/operators"
	"till/payout"
	"till/provider"
	"till/provider/sandbox"
	"till/secret"
	"till/store"
	"till/store/admin"
)

// Processors record the operator's word that a command brings: through them it takes
// the same way into the books as every other answer.
type Processors struct {
	Payments *collect.Collector
	Payouts  *payout.Disburser
}

// WithProcessors runs f with processors that call no operator.
func WithProcessors(cmd *cobra.Command, s *store.Store, database, secretFile string, f func(d Processors) error) (err error) {
	ctx := cmd.Context()
	secret, err := ReadSecret(ctx, s, database, secretFile)
	if err != nil {
		return err
	}
	// The habits of the connection say when it is asked about again.
	var in, out map[string]provider.Provider
	if book := operators.SandboxPath(database); store.IsPostgres(book) || Exists(book) {
		o, err := sandbox.Open(ctx, sandbox.Config{Path: book})
		if err != nil {
			return err
		}
		defer o.Close()
		in, out = operators.Connections(o), operators.PayoutConnections(o)
	}
	log := logs.New(cmd.ErrOrStderr(), false, slog.LevelWarn)
	c := engine.Config{Store: s, Secret: secret, Connections: in, Routes: engine.ByMode(operators.Route), AcceptOnly: true, Log: log}
	payments := collect.New(c)
	c.Connections = out
	d := Processors{payments, payout.New(c)}
	defer func() { err = errors.Join(err, d.Payments.Close(ctx), d.Payouts.Close(ctx)) }()
	return f(d)
}

// Disburser runs f with a disburser that has the connections and routes of an installation, as
// its servers have them. It calls no operator: what it makes, a server sends. A folder of a
// journal is written to before each commit.
func (c *Call) Disburser(source *operators.Source, folder string, f func(d *payout.Disburser) error) (err error) {
	ctx := c.Context()
	source.Database = c.Database
	ops, ring, err := source.Open(ctx, c.Store)
	if err != nil {
		return err
	}
	in, out := maps.Clone(ops.Payments), maps.Clone(ops.Payouts)
	if book := operators.SandboxPath(c.Database); store.IsPostgres(book) || Exists(book) {
		o, err := sandbox.Open(ctx, sandbox.Config{Path: book})
		if err != nil {
			return err
		}
		defer o.Close()
		maps.Copy(in, operators.Connections(o))
		maps.Copy(out, operators.PayoutConnections(o))
	}
	refunds := ops.Refunds(in, out)
	if err := operators.CheckRefunds(ctx, c.Store, refunds.Origins); err != nil {
		return err
	}
	log := logs.New(c.ErrOrStderr(), false, slog.LevelWarn)
	e := engine.Config{Store: c.Store, Secret: ring.Root(), Ring: ring, Connections: out, Routes: ops.Routes(till.SubjectPayout), Refunds: refunds, AcceptOnly: true, Log: log}
	if folder != "" {
		w, err := openJournal(ctx, c.Store, folder, ring.Root(), log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		e.Journal = w
	}
	d := payout.New(e)
	defer func() { err = errors.Join(err, d.Close(ctx)) }()
	return f(d)
}

// openJournal opens a servers' journal, to write to it and to delete nothing.
func openJournal(ctx context.Context, s *store.Store, folder string, secret []byte, log *slog.Logger) (w *journal.Writer, err error) {
	var made *admin.Installation
	err = s.View(ctx, func(tx *store.Tx) (err error) {
		made, err = admin.ReadInstallation(ctx, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	if made == nil {
		return nil, errors.New("the journal needs an installation, and there is none")
	}
	return journal.Open(journal.Config{Folder: folder, Secret: secret, Installation: made.CreatedAt, Sync: true, Log: log})
}

// ReadSecret reads the installation's secret and refuses another's.
func ReadSecret(ctx context.Context, s *store.Store, database, file string) ([]byte, error) {
	ring, err := ReadKeyring(ctx, s, database, file)
	if err != nil {
		return nil, err
	}
	return ring.Root(), nil
}

// ReadKeyring reads the generations of the installation's secret and refuses another's.
func ReadKeyring(ctx context.Context, s *store.Store, database, file string) (*seal.Ring, error) {
	file, err := SecretPath(database, file)
	if err != nil {
		return nil, err
	}
	ring, err := secret.OpenRing(ctx, s, file)
	if err != nil {
		return nil, fmt.Errorf("the secret in %s: %w", file, err)
	}
	return ring, nil
}

// SecretPath returns the file of the installation's secret: the one that is named, or the
// one beside the database.
func SecretPath(database, file string) (string, error) {
	switch {
	case file != "":
		return file, nil
	case store.IsPostgres(database):
		return "", errors.New("name the installation's secret with --secret-file")
	}
	return secret.File(database), nil
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
