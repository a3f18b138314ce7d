package money

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"till/books"
	"till/cmd/till/internal/cli"
	"till/internal/escape"
	"till/ledger"
	"till/store"
)

func NewStatement() *cobra.Command {
	var client, format, currency, kind, output, database string
	var span cli.Period
	var newest, quiet, asJSON bool
	cmd := &cobra.Command{
		Use:   "statement",
		Short: "Export a client's wallet statement as CSV or JSON Lines",
		Long: `Export each movement of a client's wallets, oldest first: what GET /transactions
shows. Use it for accounting. It may run beside a server. Commits after its start
are left out. Progress goes to standard error.

CSV is for people: control and direction characters are escaped, and a text that
a spreadsheet would run as a formula has an apostrophe in front. JSON Lines are
for programs.`,
		Example: `  till statement --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --from 2026-11-01 --to 2026-11-30 --output november.csv`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if asJSON {
				if cmd.Flags().Changed("format") && format != string(books.JSONL) {
					return errors.New("--json is --format jsonl: leave one of them out")
				}
				format = string(books.JSONL)
			}
			st := books.Statement{Format: books.Format(format), NewestTop: newest, Text: escape.Text}
			if !slices.Contains(books.Formats, st.Format) {
				return errors.New("--format is csv or jsonl")
			}
			if kind != "" && !slices.Contains(ledger.TransactionTypes, kind) {
				return fmt.Errorf("--type is one of: %s", strings.Join(ledger.TransactionTypes, ", "))
			}
			st.Filter.Type, st.Filter.Currency = kind, currency
			if st.Client, err = cli.ParseID(client, "client"); err != nil {
				return err
			}
			if st.Filter.From, st.Filter.To, err = span.Read(time.UTC); err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				bar := cli.NewProgress(cmd.ErrOrStderr(), "lines")
				if !quiet {
					st.Progress = func(lines int64) { bar.At(lines, 0) }
				}
				lines, err := exportTo(output, cmd.OutOrStdout(), func(w io.Writer) (int64, error) {
					return books.Export(cmd.Context(), s, st, w)
				})
				bar.End()
				if err == nil && !quiet {
					cli.Printf(cmd.ErrOrStderr(), "till: %s\n", cli.Count(lines, "line", "lines"))
				}
				return err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&client, "client", "", "the client's id (required)")
	f.StringVar(&format, "format", string(books.CSV), "csv or jsonl")
	f.StringVar(&currency, "currency", "", "only the wallet of this currency (default all)")
	f.StringVar(&kind, "type", "", "only this type, for example collection (default all)")
	cli.AddPeriod(cmd, &span, "only lines", "UTC")
	f.StringVar(&output, "output", "", "the file to write (default standard output)")
	f.BoolVar(&asJSON, "json", false, "the same as --format jsonl")
	f.BoolVar(&newest, "newest-first", false, "write the newest line first")
	f.BoolVar(&quiet, "quiet", false, "write no progress to standard error")
	cmd.MarkFlagRequired("client")
	cli.AddDatabase(cmd, &database)
	return cmd
}

// exportTo runs f with a file, which gets its name when it is complete, or
// with w if no file is named.
func exportTo(path string, w io.Writer, f func(w io.Writer) (int64, error)) (lines int64, err error) {
	if path == "" {
		return f(w)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		file.Close()
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	safe := escape.NewWriter(file)
	if lines, err = f(safe); err == nil {
		err = safe.Flush()
	}
	if err != nil {
		return lines, err
	}
	if err := file.Sync(); err != nil {
		return lines, fmt.Errorf("write %s: %w", path, err)
	}
	return lines, os.Rename(file.Name(), path)
}
