package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"till/api"
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
				return printJSON(w, map[string]any{"version": versionText(), "api_version": api.Version, "go": runtime.Version()})
			}
			_, err := printLine(w, versionLine())
			return err
		},
	}
	addJSONFlag(cmd, &asJSON)
	return cmd
}
