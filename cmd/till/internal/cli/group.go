package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	ExitRefused = 1 // what was asked was refused, or problems were found
	ExitUnable  = 2 // wrong usage, or it cannot run
)

// NewGroup makes a command that only has subcommands.
func NewGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("say what to do: 'till %s --help' shows the commands", use)
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}

// ErrProblems means that a command has printed problems.
var ErrProblems = errors.New("problems were found")
