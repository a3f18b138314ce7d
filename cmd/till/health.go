package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till/cmd/till/internal/cli"
)

// healthTimeout is how long 'till health' waits.
const healthTimeout = 5 * time.Second

func newHealth() *cobra.Command {
	var admin string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running server whether it is ready",
		Long: `Ask the admin address of a running server whether it is ready. Use it as the
health check of a container. The exit code is 0 if the server is ready, 1 if it is
not, 2 if it cannot be reached.`,
		Example: `  till health --admin-listen 127.0.0.1:8081`,
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&admin, "admin-listen", "127.0.0.1:8081", "the server's admin address")
	return cli.Run(cmd, func(c *cli.Call) error {
		if admin == "" {
			return errors.New("the server has no admin address (--admin-listen is empty)")
		}
		client := &http.Client{Timeout: healthTimeout}
		resp, err := client.Get("http://" + reachableFrom(admin) + "/readyz")
		if err != nil {
			return fmt.Errorf("the server does not answer on %s: %w", admin, errors.Unwrap(err))
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		said, ready := strings.TrimSpace(string(text)), resp.StatusCode == http.StatusOK
		if c.JSON {
			if err := cli.PrintJSON(c.OutOrStdout(), cli.Object{"detail", said, "ready", ready}); err != nil {
				return err
			}
		} else {
			cli.PrintLine(c.OutOrStdout(), said)
		}
		if !ready {
			return cli.ErrProblems
		}
		return nil
	})
}

// reachableFrom turns an address to listen on into one to call.
func reachableFrom(address string) string {
	for _, all := range []string{":", "0.0.0.0:", "[::]:"} {
		if port, found := strings.CutPrefix(address, all); found {
			return "127.0.0.1:" + port
		}
	}
	return address
}
