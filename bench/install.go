package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// installation is Till built in a folder that goes when the run ends.
type installation struct {
	dir     string
	program string
}

// install makes the folder beside the source unless another place was named:
// the temporary folder of many systems is memory, where nothing is durable.
func install(ctx context.Context, o options) (*installation, error) {
	parent := o.dir
	if parent == "" {
		parent = filepath.Join("bench", "out")
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "run")
	if err != nil {
		return nil, err
	}
	in := &installation{program: o.till}
	if in.dir, err = filepath.Abs(dir); err == nil && in.program == "" {
		in.program = filepath.Join(in.dir, "till.bin")
		err = in.build(ctx)
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return in, nil
}

func (in *installation) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", in.program, "till/cmd/till")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	_, err := output(cmd)
	return err
}

// remove deletes the folder.
func (in *installation) remove() { os.RemoveAll(in.dir) }

// till runs one command of the program to its end.
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
