package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"till"
	"till/internal/escape"
)

// Commands print only with Printf, PrintLine, Table and PrintJSON, which escape
// each value that somebody else chose. The escape.Writer of run is the second
// protection.

// TrustedText is our own text of several lines; Printf prints it unescaped.
type TrustedText string

// Printf prints with a format of our own. Only the format has line breaks.
func Printf(w io.Writer, format string, args ...any) (int, error) {
	for i := range args {
		args[i] = shown(args[i])
	}
	return fmt.Fprintf(w, format, args...)
}

// PrintLine prints a line.
func PrintLine(w io.Writer, text string) (int, error) {
	return fmt.Fprintln(w, escape.Text(text))
}

// shown returns a value as it is printed: numbers as they are, text escaped.
func shown(v any) any {
	switch x := v.(type) {
	case nil:
		return v
	case TrustedText:
		return string(x)
	case string:
		return escape.Text(x)
	case error, fmt.Stringer:
		return escape.Text(fmt.Sprint(x))
	}
	switch reflect.TypeOf(v).Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return v
	}
	return escape.Text(fmt.Sprint(v))
}

// Count is till.Count, which the commands need often.
func Count[N int | int64](n N, one, many string) string { return till.Count(n, one, many) }

// PrintJSON writes a value as one line of JSON.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// AddJSON adds --json.
func AddJSON(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON instead of text")
}

// cell is "-" for what is unset: nothing, a time, an id.
func cell(v any) any {
	switch x := v.(type) {
	case nil:
		return "-"
	case till.Time:
		if x.IsZero() {
			return "-"
		}
	case till.ID:
		if x.IsZero() {
			return "-"
		}
	}
	return v
}

// Table writes rows in columns.
func Table(w io.Writer, rows func(row func(cells ...any))) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	rows(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, shown(cell(c)))
		}
		fmt.Fprintln(t)
	})
	return t.Flush()
}
