package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"till/api"
	"till/cmd/till/internal/cli"
)

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version of the program and of its API. Use it in a report about a
problem.`,
		Example: `  till version`,
		Args:    cobra.NoArgs,
	}
	return cli.Run(cmd, func(c *cli.Call) error {
		w := c.OutOrStdout()
		if c.JSON {
			return cli.PrintJSON(w, cli.Object{"api_version", api.Version, "go", runtime.Version(), "version", cli.VersionText()})
		}
		_, err := cli.PrintLine(w, cli.VersionLine())
		return err
	})
}
