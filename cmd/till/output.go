package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"till"
)

// printJSON writes a value as one line of JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// addJSONFlag gives a command its --json.
func addJSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
}

// table writes rows in columns.
func table(w io.Writer, rows func(row func(cells ...any))) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	rows(func(cells ...any) {
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, c)
		}
		fmt.Fprintln(t)
	})
	return t.Flush()
}

// timeOrNull is a moment in JSON, null if it is unset.
func timeOrNull(t till.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.String()
	return &s
}

// timeOr is a moment in text, or a word if it is unset.
func timeOr(t till.Time, unset string) string {
	if t.IsZero() {
		return unset
	}
	return t.String()
}

// textOrNull is a text in JSON, null if it is empty.
func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
