package cli

import (
	"bufio"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"till"
)

// maxReply is how many bytes of an answer to a question are read.
const maxReply = 100

// Confirm asks a question on standard error and reads the answer from standard input. It
// returns nil for yes, or if yes was said on the command line. A program that answers
// nothing has not agreed.
func Confirm(cmd *cobra.Command, question string, yes bool) error {
	if yes {
		return nil
	}
	Printf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	reply, _ := bufio.NewReader(io.LimitReader(cmd.InOrStdin(), maxReply)).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(reply)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}

// errNotConfirmed means that a person has not agreed.
var errNotConfirmed = till.Errorf(till.CodeValidationFailed, "nothing was done: answer y, or say --yes")
