package cli

import (
	"io"

	"github.com/spf13/cobra"

	"till"
	"till/store"
)

// Call is one run of a command: its flags, its arguments, and where it prints.
type Call struct {
	*cobra.Command
	Args     []string
	ID       till.ID      // the argument of OnID
	JSON     bool         // --json
	Database string       // --database, "" if the command has none
	Store    *store.Store // of Database
}

// Run makes a command with --json that needs no database.
func Run(cmd *cobra.Command, run func(c *Call) error) *cobra.Command {
	c := &Call{Command: cmd}
	AddJSON(cmd, &c.JSON)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		c.Args = args
		if err := readValues(cmd); err != nil {
			return err
		}
		return run(c)
	}
	return cmd
}

// OnDatabase makes a command with --json and --database that runs on an existing database.
// What is wrong with its flags and arguments is found before the database is opened.
func OnDatabase(cmd *cobra.Command, run func(c *Call) error) *cobra.Command {
	return MayOpen(cmd, func(c *Call) error { return c.Open(run) })
}

// OnID is OnDatabase of a command with one argument, the id of what is named.
func OnID(cmd *cobra.Command, what string, run func(c *Call) error) *cobra.Command {
	cmd.Args = OneArg
	return MayOpen(cmd, func(c *Call) (err error) {
		if c.ID, err = ParseID(c.Args[0], what); err != nil {
			return err
		}
		return c.Open(run)
	})
}

// MayOpen makes a command with --json and --database that opens the database by Open.
func MayOpen(cmd *cobra.Command, run func(c *Call) error) *cobra.Command {
	var database string
	AddDatabase(cmd, &database)
	return Run(cmd, func(c *Call) error {
		c.Database = database
		return run(c)
	})
}

// Open runs a command on the database, which a server may use at the same time.
func (c *Call) Open(run func(c *Call) error) error {
	return WithDatabase(c.Context(), c.Database, func(s *store.Store) error {
		c.Store = s
		return run(c)
	})
}

// Secret reads the installation's secret, from file or from beside the database.
func (c *Call) Secret(file string) ([]byte, error) {
	return ReadSecret(c.Context(), c.Store, c.Database, file)
}

// Processors runs f with processors that call no operator.
func (c *Call) Processors(secretFile string, f func(d Processors) error) error {
	return WithProcessors(c.Command, c.Store, c.Database, secretFile, f)
}

// View runs f in a snapshot of the database.
func (c *Call) View(f func(tx *store.Tx) error) error { return c.Store.View(c.Context(), f) }

// Note prints a line to standard error, beside the result.
func (c *Call) Note(format string, args ...any) {
	Printf(c.ErrOrStderr(), "till: "+format+"\n", args...)
}

// Print prints to standard output with a format of our own.
func (c *Call) Print(format string, args ...any) error {
	_, err := Printf(c.OutOrStdout(), format, args...)
	return err
}

// Show prints a result: with --json as a line of JSON, else by text.
func (c *Call) Show(result any, text func(w io.Writer) error) error {
	if c.JSON {
		return PrintJSON(c.OutOrStdout(), result)
	}
	return text(c.OutOrStdout())
}

// Say is Show of a result whose text is a format of our own.
func (c *Call) Say(result any, format string, args ...any) error {
	return c.Show(result, func(io.Writer) error { return c.Print(format, args...) })
}

// Lines are the lines of a result that is shown as text: names and values.
func (c *Call) Lines(result any, rows func(row func(cells ...any))) error {
	return c.Show(result, func(w io.Writer) error { return Table(w, rows) })
}

// Columns are the heads of a table and the cells of an item. None is printed where there
// are no items; if it is "", the heads are alone.
type Columns[T any] struct {
	None  string
	Heads []any
	Row   func(item T) []any
}

// Print prints items as a table.
func (t Columns[T]) Print(w io.Writer, items []T) error {
	if len(items) == 0 && t.None != "" {
		_, err := PrintLine(w, t.None)
		return err
	}
	return Table(w, func(row func(...any)) {
		row(t.Heads...)
		for _, item := range items {
			row(t.Row(item)...)
		}
	})
}

// List prints a list: with --json as the member items of an object, else as a table.
func List[T any](c *Call, items []T, object func(T) Object, t Columns[T]) error {
	return c.Show(Object{"items", Objects(items, object)}, func(w io.Writer) error { return t.Print(w, items) })
}

// Problems returns ErrProblems if there are some and they could be printed.
func Problems(printed error, some bool) error {
	if printed == nil && some {
		return ErrProblems
	}
	return printed
}
