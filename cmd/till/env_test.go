package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestEveryFlagHasAnEnvironmentVariable(t *testing.T) {
	t.Parallel()
	visit(newRoot(), func(cmd *cobra.Command, f *pflag.Flag) {
		value := map[string]string{"bool": "true", "duration": "5s", "float64": "7", "int": "7", "int64": "7", "uint64": "7"}[f.Value.Type()]
		if value == "" {
			value = "x"
		}
		want := f.Value.String()
		err := setFromEnvironment(cmd.Flags(), func(name string) (string, bool) {
			return value, name == environmentName(f.Name)
		})
		if err != nil {
			t.Errorf("%s --%s from %s: %v", cmd.CommandPath(), f.Name, environmentName(f.Name), err)
		}
		if got := f.Value.String(); got == want && want != value || !f.Changed {
			t.Errorf("%s --%s stayed %q when %s was %q", cmd.CommandPath(), f.Name, got, environmentName(f.Name), value)
		}
	})
}

func TestEveryCommandHasJSON(t *testing.T) {
	t.Parallel()
	each(newRoot(), func(cmd *cobra.Command) {
		if !cmd.HasSubCommands() && cmd.Flags().Lookup("json") == nil {
			t.Errorf("%s has no --json", cmd.CommandPath())
		}
	})
}

func TestACommandLineFlagWins(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	listen := flags.String("listen", "", "")
	if err := flags.Parse([]string{"--listen", "from the line"}); err != nil {
		t.Fatal(err)
	}
	err := setFromEnvironment(flags, func(string) (string, bool) { return "from the environment", true })
	if err != nil || *listen != "from the line" {
		t.Errorf("got %q, %v; want the command line's value", *listen, err)
	}
}

// each calls f with a command and all below it.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		each(c, f)
	}
}

// visit calls f with every flag of every command, but those of cobra's own.
func visit(root *cobra.Command, f func(*cobra.Command, *pflag.Flag)) {
	each(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Name != "help" {
				f(cmd, flag)
			}
		})
	})
}
