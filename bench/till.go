package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// installation is Till built and set up in a folder: a program, a database
// with one test client, and that client's key.
type installation struct {
	dir     string
	program string
	db      *database
	apiKey  string
	fresh   bool // the folder is ours alone and goes when we do
}

// install prepares a folder. One that was used before keeps its database and
// its key, so that a million payments need to be made only once.
func install(ctx context.Context, o options, engine string) (*installation, error) {
	in := &installation{dir: o.dir, program: o.till}
	if err := in.makeDir(); err != nil {
		return nil, err
	}
	var err error
	if in.db, err = openDatabase(ctx, engine, in.dir); err != nil {
		in.remove()
		return nil, err
	}
	if err := in.setUp(ctx); err != nil {
		in.remove()
		return nil, err
	}
	return in, nil
}

// makeDir makes a folder of our own beside the source unless one was named:
// the temporary folder of many systems is memory, where nothing is durable.
func (in *installation) makeDir() error {
	if in.dir != "" {
		return os.MkdirAll(in.dir, 0o700)
	}
	parent := filepath.Join("bench", "out")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	var err error
	in.dir, err = os.MkdirTemp(parent, "run")
	in.fresh = true
	return err
}

func (in *installation) setUp(ctx context.Context) error {
	if in.program == "" {
		in.program = filepath.Join(in.dir, "till.bin")
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", in.program, "till/cmd/till")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if _, err := output(cmd); err != nil {
			return err
		}
	}
	if _, err := in.till(ctx, "migrate", "--database", in.db.url); err != nil {
		return err
	}
	keyFile := filepath.Join(in.dir, "key")
	key, err := os.ReadFile(keyFile)
	if errors.Is(err, fs.ErrNotExist) || in.db.cluster != nil {
		if key, err = in.createClient(ctx); err == nil {
			err = os.WriteFile(keyFile, key, 0o600)
		}
	}
	in.apiKey = string(key)
	return err
}

func (in *installation) createClient(ctx context.Context) ([]byte, error) {
	b, err := in.till(ctx, "client", "create", "--name", "bench", "--mode", "test", "--database", in.db.url, "--json")
	if err != nil {
		return nil, err
	}
	var made struct {
		APIKey string `json:"api_key"`
	}
	if err := json.Unmarshal(b, &made); err != nil || made.APIKey == "" {
		return nil, fmt.Errorf("till client create printed no key (%v)", err)
	}
	return []byte(made.APIKey), nil
}

// serve starts `till serve` as it is shipped, but for the rate limit, and
// without the second address, which another instance may hold.
func (in *installation) serve(ctx context.Context, role string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	return start(ctx, "till", addr, in.apiKey, filepath.Join(in.dir, "till.log"), in.program,
		"serve", "--role", role, "--rate-limit", "0", "--listen", addr, "--admin-listen", "", "--database", in.db.url,
		"--secret-file", filepath.Join(in.dir, "till.secret"))
}

// serveBase starts the handler to compare with: this program, once more.
func (in *installation) serveBase(ctx context.Context) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	return start(ctx, "base", addr, in.apiKey, filepath.Join(in.dir, "base.log"), self, "base", addr)
}

// remove stops the database's server, and deletes the folder if it was made
// for this run.
func (in *installation) remove() {
	if in.db != nil {
		in.db.close()
	}
	if in.fresh {
		os.RemoveAll(in.dir)
	}
}

func (in *installation) till(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, in.program, args...)
	cmd.Env = plainEnv()
	return output(cmd)
}

// plainEnv returns the environment without Till's own settings: what is
// measured must not depend on who measures.
func plainEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "TILL_") })
}

// output runs a command to its end and returns what it printed.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(cmd.Path), strings.Join(cmd.Args[1:], " "), err, stderr.Bytes())
	}
	return b, nil
}
