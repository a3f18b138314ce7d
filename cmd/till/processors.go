package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"till/collect"
	"till/engine"
	"till/internal/seal"
	"till/payout"
	"till/provider"
	"till/provider/sandbox"
	"till/server"
	"till/store"
)

// processors record the operator's word that a command brings: through them it takes
// the same way into the books as every other answer.
type processors struct {
	payments *collect.Collector
	payouts  *payout.Disburser
}

// withProcessors runs f with processors that call no operator.
func withProcessors(cmd *cobra.Command, s *store.Store, database, secretFile string, f func(d processors) error) (err error) {
	ctx := cmd.Context()
	secret, err := readSecret(ctx, s, database, secretFile)
	if err != nil {
		return err
	}
	// The habits of the connection say when it is asked about again.
	var in, out map[string]provider.Provider
	if book := server.SandboxPath(database); store.IsPostgres(book) || exists(book) {
		o, err := sandbox.Open(ctx, sandbox.Config{Path: book})
		if err != nil {
			return err
		}
		defer o.Close()
		in, out = server.Connections(o), server.PayoutConnections(o)
	}
	log := server.NewLogger(cmd.ErrOrStderr(), false, slog.LevelWarn)
	c := engine.Config{Store: s, Secret: secret, Connections: in, Routes: engine.ByMode(server.Route), AcceptOnly: true, Log: log}
	payments := collect.New(c)
	c.Connections = out
	d := processors{payments, payout.New(c)}
	defer func() { err = errors.Join(err, d.payments.Close(ctx), d.payouts.Close(ctx)) }()
	return f(d)
}

// readSecret reads the installation's secret and refuses another's.
func readSecret(ctx context.Context, s *store.Store, database, file string) ([]byte, error) {
	ring, err := readKeyring(ctx, s, database, file)
	if err != nil {
		return nil, err
	}
	return ring.Root(), nil
}

// readKeyring reads the generations of the installation's secret and refuses another's.
func readKeyring(ctx context.Context, s *store.Store, database, file string) (*seal.Ring, error) {
	file, err := secretPath(database, file)
	if err != nil {
		return nil, err
	}
	ring, err := server.OpenKeyring(ctx, s, file)
	if err != nil {
		return nil, fmt.Errorf("the secret in %s: %w", file, err)
	}
	return ring, nil
}

// secretPath returns the file of the installation's secret: the one that is named, or the
// one beside the database.
func secretPath(database, file string) (string, error) {
	switch {
	case file != "":
		return file, nil
	case store.IsPostgres(database):
		return "", errors.New("name the installation's secret with --secret-file")
	}
	return server.SecretFile(database), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
