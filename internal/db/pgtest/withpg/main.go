// Withpg runs a command with a PostgreSQL cluster of its own, whose address
// is in TILL_TEST_POSTGRES_URL, and stops the cluster when the command has
// ended. If the variable is set already, that server is used instead. With -memory the
// command's temporary files are in memory where there is room: a test's file waits for the
// disk at each commit otherwise.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"till/internal/db/pgtest"
)

func main() {
	os.Exit(run())
}

func run() int {
	args := os.Args[1:]
	inMemory := len(args) > 0 && args[0] == "-memory"
	if inMemory {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withpg [-memory] COMMAND ARGS…")
		return 2
	}
	if inMemory {
		defer useMemory()()
	}
	if os.Getenv("TILL_TEST_POSTGRES_URL") == "" {
		c, err := pgtest.NewInMemory(context.Background(), "synchronous_commit = off", "full_page_writes = off", "shared_buffers = 64MB")
		if err != nil {
			fmt.Fprintln(os.Stderr, "withpg:", err)
			return 2
		}
		defer c.Remove()
		os.Setenv("TILL_TEST_POSTGRES_URL", c.URL("postgres"))
	}
	// An interrupt goes to the command too; the cluster is stopped after it.
	signal.Notify(make(chan os.Signal, 8), syscall.SIGINT, syscall.SIGTERM)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, "withpg:", err)
		return 2
	}
	return 0
}

// useMemory puts temporary files into memory, but those of compilers, which are large. It
// returns what removes them at the end.
func useMemory() (remove func()) {
	parent := pgtest.Memory()
	if parent == "" {
		return func() {}
	}
	folder, err := os.MkdirTemp(parent, "till-")
	if err == nil {
		err = os.Chmod(folder, 0o777|os.ModeSticky) // servers of tests run as other users
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
		return func() {}
	}
	if os.Getenv("GOTMPDIR") == "" {
		os.Setenv("GOTMPDIR", os.TempDir())
	}
	os.Setenv("TMPDIR", folder)
	return func() { os.RemoveAll(folder) }
}
