package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"till/api"
	"till/cmd/till/internal/cli"
)

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the version of the program and of its API. Use it in a report about a
problem.`,
		Example: `  till version`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := cmd.OutOrStdout()
			if asJSON {
				return cli.PrintJSON(w, map[string]any{"version": cli.VersionText(), "api_version": api.Version, "go": runtime.Version()})
			}
			_, err := cli.PrintLine(w, cli.VersionLine())
			return err
		},
	}
	cli.AddJSON(cmd, &asJSON)
	return cmd
}
