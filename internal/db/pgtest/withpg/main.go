// Withpg runs a command with a PostgreSQL cluster of its own, whose address
// is in TILL_TEST_POSTGRES_URL, and stops the cluster when the command has
// ended. If the variable is set already, that server is used instead.
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
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withpg COMMAND ARGS…")
		return 2
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
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
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
