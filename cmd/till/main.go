package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"till"
	"till/cmd/till/internal/cli"
	"till/cmd/till/internal/money"
	"till/config"
	"till/internal/escape"
	"till/internal/system"
	"till/store"
)

func main() {
	setGCPercent()
	if len(os.Args) > 1 && (os.Args[1] == "backup" || os.Args[1] == "drill") {
		system.LowerPriority() // the server's requests go first
	}
	os.Exit(run(untilSignal(), os.Args[1:], os.Stdout, os.Stderr))
}

// forceExitAfter is how long after the first signal a second one ends the
// process at once. Some wrappers send the same signal twice, to the process
// and to its group; that counts as one.
const forceExitAfter = time.Second

// untilSignal returns a context that ends with the first signal to stop.
func untilSignal() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		asked := time.Now()
		for range signals {
			if time.Since(asked) > forceExitAfter {
				os.Exit(cli.ExitUnable)
			}
		}
	}()
	return ctx
}

// run runs one command and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out, errs := escape.NewWriter(stdout), escape.NewWriter(stderr)
	defer errs.Flush()
	defer out.Flush()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, cli.ErrProblems) {
		cli.Printf(errs, "till: %s\n", cli.TrustedText(errorText(err)))
	}
	return exitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "till",
		Short:         "Collect money from mobile money wallets",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       cli.VersionLine(), // of --version
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := setFromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			cmd.SetContext(store.WithCause(cmd.Context(), cli.CauseOf(cmd))) // the cause that the audit log gets
			return cli.CheckDatabase(cmd.Flags())
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newDev(), newServe(), newClient(), newKey(), newPerson(), money.NewPayment(), money.NewPayout(), money.NewRefund(), money.NewPayouts(), money.NewAdjust(), money.NewCases(), money.NewStrays(), newWebhook(), money.NewAudit(),
		money.NewStatement(), money.NewVerify(), money.NewReport(), newStatus(), money.NewReconcile(), money.NewConnections(), newSimulate(), newDoctor(), newRestored(), newBench(),
		newProxy(), newListen(), newTrigger(), newMigrate(), newLevel(), newSecret(), newVersion())
	root.AddCommand(newBackup(), newRestore(), newDrill(), newHealth(), newTop())
	root.AddCommand(newPersonData(), newPages())
	root.AddCommand(newErase(), money.NewRepair())
	group(root)
	return root
}

// helpGroups is how 'till --help' lists the commands, by what a person wants to do.
var helpGroups = []struct{ title, commands string }{
	{"Try it out, and write an integration:", "dev simulate listen trigger proxy webhook bench"},
	{"Run the service:", "serve migrate level secret version health"},
	{"See how it is:", "status doctor top connections"},
	{"Clients and people:", "client key person pages"},
	{"Payments, refunds, payouts and what needs a person:", "payment refund payout payouts cases strays adjust"},
	{"The books:", "verify repair report statement reconcile audit"},
	{"Backups:", "backup drill restore restored"},
	{"Personal data:", "person-data erase"},
}

// group gives each command its group.
func group(root *cobra.Command) {
	for _, g := range helpGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, name := range strings.Fields(g.commands) {
			for _, c := range root.Commands() {
				if c.Name() == name {
					c.GroupID = g.title
				}
			}
		}
	}
}

func exitCode(err error) int {
	var refused *till.Error
	switch {
	case err == nil:
		return 0
	case errors.Is(err, cli.ErrProblems), errors.As(err, &refused):
		return cli.ExitRefused
	}
	return cli.ExitUnable
}

// errorText returns what a person should read of an error, with other people's
// text escaped.
func errorText(err error) string {
	var refused *till.Error
	var misconfigured *config.Error
	switch joined, many := err.(interface{ Unwrap() []error }); {
	case errors.As(err, &refused):
		return refusalText(refused)
	case errors.As(err, &misconfigured):
		lines := make([]string, len(misconfigured.Problems))
		for i, p := range misconfigured.Problems {
			lines[i] = escape.Text(fmt.Sprintf("%s:%d: %s", misconfigured.File, p.Line, p.Text))
		}
		return strings.Join(lines, "\n")
	case errors.Is(err, store.ErrUnavailable):
		return "the database cannot be used just now: " + escape.Text(err.Error())
	case many:
		var lines []string
		for _, e := range joined.Unwrap() {
			lines = append(lines, errorText(e))
		}
		return strings.Join(lines, "\n")
	}
	text, meant, suggested := strings.Cut(err.Error(), "\n\nDid you mean this?\n") // cobra's way
	if suggested {
		text += "; did you mean " + strings.Join(strings.Fields(meant), " or ") + "?"
	}
	return escape.Text(text)
}

// refusalText leaves out the code, which is for programs.
func refusalText(e *till.Error) string {
	lines := []string{escape.Text(e.Detail)}
	if e.Detail == "" {
		lines[0] = strings.ReplaceAll(string(e.Code), "_", " ")
	}
	for _, f := range e.Fields {
		name := strings.ReplaceAll(strings.TrimPrefix(f.Pointer, "/"), "/", " ")
		lines = append(lines, escape.Text(strings.TrimLeft("  "+name+": ", " :")+f.Detail))
	}
	return strings.Join(lines, "\n  ")
}
