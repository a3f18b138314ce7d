package config

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
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

// runCommand runs a program, without a shell, and returns what it printed. What it says on
// standard error is not kept: it may be the credential.
func runCommand(command []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	var out boundedOutput
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.WaitDelay = &out, commandGrace
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
