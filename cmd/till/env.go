package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// setFromEnvironment sets each flag that is not on the command line from its
// environment variable: --base-url from TILL_BASE_URL.
func setFromEnvironment(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if err != nil || f.Changed || f.Name == "help" {
			return
		}
		name := environmentName(f.Name)
		value, ok := lookup(name)
		if !ok {
			return
		}
		if e := flags.Set(f.Name, value); e != nil {
			err = fmt.Errorf("the environment variable %s: %q is not a %s", name, value, f.Value.Type())
		}
	})
	return err
}

func environmentName(flag string) string {
	return "TILL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
