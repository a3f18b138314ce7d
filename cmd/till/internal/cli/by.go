package cli

import (
	"fmt"
	"os/user"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/internal/logs"
)

// AddBy adds --by. The flag holds the person's name as the audit log has
// it, and rejects a name that is not a person's. So no command can forget the
// check.
func AddBy(cmd *cobra.Command, by *string, usage string) {
	cmd.Flags().Var((*personFlag)(by), "by", usage)
}

// personFlag is a person's name on the command line.
type personFlag string

// Set implements pflag.Value.
func (f *personFlag) Set(name string) error {
	actor, err := till.PersonActor(name)
	if err != nil {
		return fmt.Errorf("--by %w", err)
	}
	*f = personFlag(actor)
	return nil
}

// String implements pflag.Value.
func (f *personFlag) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *personFlag) Type() string { return "person" }

// AddReason adds --reason, one line for the audit log. Phone numbers in it are masked.
func AddReason(cmd *cobra.Command, reason *string, usage string) {
	addValue(cmd, "reason", usage, func(text string) error {
		*reason = logs.Redact(text)
		return CheckReason(text)
	})
}

// CheckReason rejects a --reason that is empty or has several lines.
func CheckReason(reason string) error {
	if !IsPlainLine(reason, books.MaxReason) {
		return fmt.Errorf("--reason must say why on one line, in at most %d characters", books.MaxReason)
	}
	return nil
}

// Actor is the audit log's name for the user who runs the command.
func Actor() string {
	if u, err := user.Current(); err == nil && IsPlainLine(u.Username, till.MaxName) {
		return "cli:" + u.Username
	}
	return "cli"
}

// CauseOf is the cause in the audit log: the command, and the operating
// system's user of the process.
func CauseOf(cmd *cobra.Command) string {
	u, err := user.Current()
	if err != nil || !IsPlainLine(u.Username, till.MaxName) || !IsPlainLine(u.Uid, 2*till.MaxName) {
		return cmd.CommandPath() + ", user unknown"
	}
	return fmt.Sprintf("%s, user %s (%s)", cmd.CommandPath(), u.Username, u.Uid)
}
