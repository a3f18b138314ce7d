package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"till/api"
)

// version is set when a release is built.
var version = ""

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
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

// versionLine is what a person is told.
func versionLine() string {
	return fmt.Sprintf("till %s (API %s, %s)", versionText(), api.Version, runtime.Version())
}

// versionText returns the release, or the commit that was built.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "devel-" + s.Value[:12]
			}
		}
	}
	return "devel"
}
