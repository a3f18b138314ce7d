package config

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"time"
)

// The limits of a command that prints a credential.
const (
	maxArguments   = 64
	commandTimeout = 10 * time.Second
	commandGrace   = time.Second // for what it started and that holds its output open
)

// errTooLong says that a command printed more than a credential can be.
var errTooLong = fmt.Errorf("it printed more than %d bytes", maxSecret)

// commandVariables are what a command gets of the environment, beside what
// command_environment names. The rest is none of its business: it has the database's URL
// and other operators' credentials.
var commandVariables = []string{"PATH", "HOME", "LANG"}

// environment returns the environment of commands.
func (o *Options) environment() []string {
	out := []string{} // and not nil, which means all
	for _, name := range append(slices.Clone(commandVariables), o.commandEnvironment...) {
		if value, ok := o.Env(name); ok {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// runCommand runs a program, without a shell, and returns what it printed. What it says on
// standard error is not kept: it may be the credential.
func runCommand(command, environment []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	var out boundedOutput
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.WaitDelay, cmd.Env = &out, commandGrace, environment
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it took longer than %s", commandTimeout)
	case out.over:
		return nil, errTooLong
	case errors.As(err, &exit):
		return nil, fmt.Errorf("it ended with %s", exit.ProcessState)
	case err != nil:
		return nil, err
	}
	return out.b, nil
}

// boundedOutput keeps as much as a credential can be.
type boundedOutput struct {
	b    []byte
	over bool
}

// Write implements io.Writer. Its error ends the copying, and so the command.
func (o *boundedOutput) Write(p []byte) (int, error) {
	if len(o.b)+len(p) > maxSecret {
		o.over = true
		return 0, errTooLong
	}
	o.b = append(o.b, p...)
	return len(p), nil
}

// validVariable is what a variable of the environment may be called.
var validVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maxVariables is how many variables command_environment may name.
const maxVariables = 64

// commandEnvironment reads which variables commands get.
func (r *reader) commandEnvironment(names []string) {
	if len(names) > maxVariables {
		r.problem(r.lines.line("command_environment"), "there are more than %d variables", maxVariables)
	}
	for _, name := range names {
		if !validVariable.MatchString(name) {
			r.problem(r.lines.line("command_environment"), "command_environment has names of variables, as VAULT_ADDR")
		}
	}
	r.o.commandEnvironment = names
}
