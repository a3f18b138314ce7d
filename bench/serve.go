package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"till/internal/logs"
	"till/server"
)

// helperServers are the hidden subcommands: servers that the benchmark starts as
// processes of their own by running its own program once more.
var helperServers = map[string]func(ctx context.Context, args []string) error{
	"serve-base":      serveBase,
	"serve-operator":  serveOperator,
	"serve-mtn":       serveMTN,
	"serve-receiver":  serveReceiver,
	"serve-collector": serveCollector,
	"serve-till":      serveTill,
	"attack":          runAttack,
}

// untilOrphaned returns a context that also ends when standard input does,
// which is when the process that started this one has died.
func untilOrphaned(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		os.Stdin.Read(make([]byte, 1))
	}()
	return ctx
}

// serveUntil serves on the address that is the one argument, until ctx ends.
func serveUntil(ctx context.Context, args []string, h http.Handler) error {
	if len(args) != 1 {
		return errors.New("an address is missing")
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// servedGCPercent is what the shipped program sets, too.
const servedGCPercent = 400

// serveTill is Till with what the shipped program has no flags for: the size
// of batches, and an operator in another process.
func serveTill(ctx context.Context, args []string) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(servedGCPercent)
	}
	c := server.Config{Role: server.RoleAPI, Log: logs.New(os.Stderr, false, slog.LevelInfo)}
	f := flag.NewFlagSet("serve-till", flag.ContinueOnError)
	f.StringVar(&c.Listen, "listen", "", "address")
	f.StringVar(&c.Database, "database", "", "database")
	f.StringVar(&c.SecretFile, "secret", "", "file of the secret")
	f.IntVar(&c.MaxBatch, "batch", 0, "creates in a commit, 0 for as many as wait")
	f.BoolVar(&c.NoMetrics, "no-metrics", false, "count nothing")
	f.StringVar(&c.Trace.Endpoint, "otlp", "", "URL that traces are posted to")
	f.Float64Var(&c.Trace.Ratio, "trace-ratio", 0, "the part of all payments that is traced")
	role := f.String("role", "", "all, api or worker; without it api, or all where there is an operator")
	operator := f.String("operator", "", "URL of the operator; with one, it also works")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *operator != "" {
		c.Role, c.Operator = server.RoleAll, newOperatorClient(*operator)
	}
	if *role != "" {
		c.Role = server.Role(*role)
	}
	s, err := server.New(ctx, c)
	if err != nil {
		return err
	}
	if c.Role == server.RoleWorker { // it serves no requests, and start waits for an answer
		go serveUntil(ctx, []string{c.Listen}, http.HandlerFunc(emptyList))
	}
	return s.Run(ctx)
}

// serveOwnTill starts Till as this program has it.
func (s *testbed) serveOwnTill(ctx context.Context, args ...string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args = append([]string{"serve-till", "-listen", addr, "-database", s.url, "-secret", s.secretFile()}, args...)
	return start(ctx, "till", addr, s.apiKey, filepath.Join(s.dir, "till.log"), self, args...)
}

// serveBase starts the handler that stores nothing.
func (in *installation) serveBase(ctx context.Context) (*process, error) {
	return in.serveHelper(ctx, "serve-base")
}

// serveHelper starts a subcommand that takes nothing but an address.
func (in *installation) serveHelper(ctx context.Context, name string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ctx, name, addr, "", filepath.Join(in.dir, name+".log"), self, name, addr)
}
