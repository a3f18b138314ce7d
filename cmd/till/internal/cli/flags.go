package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"till"
)

// value is a flag that is checked when its command runs.
type value struct {
	text, kind string
	read       func(text string) error
}

// Set implements pflag.Value.
func (v *value) Set(text string) error {
	v.text = text
	return nil
}

// String implements pflag.Value.
func (v *value) String() string { return v.text }

// Type implements pflag.Value.
func (v *value) Type() string { return v.kind }

// addValue adds a flag that read checks and keeps, before the command runs.
func addValue(cmd *cobra.Command, name, usage string, read func(text string) error) {
	cmd.Flags().Var(&value{kind: "string", read: read}, name, usage)
}

// readValues reads the flags of AddValue that are set.
func readValues(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(*value); ok && err == nil {
			err = v.read(v.text)
		}
	})
	return err
}

// AddClient adds --client, the id of a client, which must not be empty if it is given.
func AddClient(cmd *cobra.Command, id *till.ID, usage string) {
	addValue(cmd, "client", usage, func(text string) (err error) {
		*id, err = ParseID(text, "client")
		return err
	})
}

// AddAnyClient adds --client, the id of a client; unset and empty mean any.
func AddAnyClient(cmd *cobra.Command, id *till.ID, usage string) {
	AddAnyID(cmd, id, "client", "client", usage)
}

// AddAnyID adds a flag with the id of what is named; unset and empty mean any.
func AddAnyID(cmd *cobra.Command, id *till.ID, name, what, usage string) {
	addValue(cmd, name, usage, func(text string) (err error) {
		if *id = (till.ID{}); text != "" {
			*id, err = ParseID(text, what)
		}
		return err
	})
}

// AddSecretFile adds --secret-file. What it is for comes after the words that all share.
func AddSecretFile(cmd *cobra.Command, file *string, what string) {
	cmd.Flags().StringVar(file, "secret-file", "", "the installation's secret"+what+" (default till.secret beside the database)")
}

// AddLimit adds --limit: how many items are listed, 200 by default.
func AddLimit(cmd *cobra.Command, limit *int, most int, usage string) {
	const usual = 200
	*limit = usual
	cmd.Flags().Var(&value{text: fmt.Sprint(usual), kind: "int", read: func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return fmt.Errorf("--limit is from 1 to %d", most)
		}
		*limit = n
		return nil
	}}, "limit", fmt.Sprintf("%s, at most %d", usage, most))
}

// Require marks flags as required.
func Require(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// OneArg accepts exactly one argument.
func OneArg(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("there are %d arguments and not one: %s", len(args), cmd.UseLine())
}

// ParseID reads an id from the command line.
func ParseID(text, what string) (till.ID, error) {
	id, err := till.ParseID(text)
	if err != nil {
		return id, fmt.Errorf("%q is not the id of a %s", text, what)
	}
	return id, nil
}

// AddChoice adds a flag whose value is one of a list, so that a typing mistake is an error
// and not an empty list.
func AddChoice(cmd *cobra.Command, choice *string, name string, of []string, usage string) {
	addValue(cmd, name, usage, func(text string) error {
		if text != "" && !slices.Contains(of, text) {
			return errors.New("--" + name + " is one of: " + strings.Join(of, ", "))
		}
		*choice = text
		return nil
	})
}
