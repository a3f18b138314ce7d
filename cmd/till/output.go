package main

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

// Commands print only with printf, printLine, table and printJSON, which escape
// each value that somebody else chose. The escape.Writer of run is the second
// protection.

// trustedText is our own text of several lines; printf prints it unescaped.
type trustedText string

// printf prints with a format of our own. Only the format has line breaks.
func printf(w io.Writer, format string, args ...any) (int, error) {
	for i := range args {
		args[i] = shown(args[i])
	}
	return fmt.Fprintf(w, format, args...)
}

// printLine prints a line.
func printLine(w io.Writer, text string) (int, error) {
	return fmt.Fprintln(w, escape.Text(text))
}

// shown returns a value as it is printed: numbers as they are, text escaped.
func shown(v any) any {
	switch x := v.(type) {
	case nil:
		return v
	case trustedText:
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

// count is till.Count, which the commands need often.
func count[N int | int64](n N, one, many string) string { return till.Count(n, one, many) }

// printJSON writes a value as one line of JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// addJSONFlag adds --json.
func addJSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON instead of text")
}

// table writes rows in columns.
func table(w io.Writer, rows func(row func(cells ...any))) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	rows(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, shown(c))
		}
		fmt.Fprintln(t)
	})
	return t.Flush()
}
