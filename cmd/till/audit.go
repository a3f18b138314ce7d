package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"till"
	"till/books"
	"till/cmd/till/internal/cli"
	"till/store"
)

func newAudit() *cobra.Command {
	var client, subject, database string
	var span cli.Period
	var asJSON, house bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List a client's audit log",
		Long: `List a client's audit log, oldest first: each person's act and each decision
about money. A row has its actor, its cause and the SHA-256 of its evidence. Use
it to find out who did what, and when. With --json each row is a line of JSON.
--house lists the house's own log: what its people did that is about no client.

'till verify' proves that no row is missing and that none was changed. To find a
log that was rewritten as a whole, keep what 'till audit head' prints.`,
		Example: `  till audit --client 0197a3d2-4d1e-7c3a-9b7d-2f6c0a4e8b11 --from 2026-11-15 --zone Africa/Brazzaville`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := till.House, error(nil)
			if !house {
				if id, err = cli.ParseID(client, "client"); err != nil {
					return err
				}
			}
			var f books.AuditFilter
			if subject != "" {
				if f.Subject, err = cli.ParseID(subject, "payment, payout or endpoint"); err != nil {
					return err
				}
			}
			if f.From, f.To, err = span.Read(time.UTC); err != nil {
				return err
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				w := bufio.NewWriter(cmd.OutOrStdout())
				err := books.EachAudit(cmd.Context(), s, id, f, func(a *store.AuditRow) error {
					if asJSON {
						return cli.PrintJSON(w, auditOut(a))
					}
					_, err := cli.PrintLine(w, auditLine(a))
					return err
				})
				if err != nil {
					return err
				}
				return w.Flush()
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&client, "client", "", "the client's id")
	f.BoolVar(&house, "house", false, "the house's own log instead of a client's")
	f.StringVar(&subject, "subject", "", "only rows about this payment, payout or endpoint")
	cli.AddPeriod(cmd, &span, "only rows", "UTC")
	cmd.MarkFlagsOneRequired("client", "house")
	cmd.MarkFlagsMutuallyExclusive("client", "house")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	cmd.AddCommand(newAuditHead())
	return cmd
}

func newAuditHead() *cobra.Command {
	var client, database string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "head",
		Short: "Print the heads of the audit chains",
		Long: `Print the newest link of each client's audit chain: the client, the number of the
row and a hash over all rows up to it. Use it to keep the heads where nobody who
can change the database can change them.

'till verify --audit-heads FILE' then proves that the logs up to these rows are
unchanged. The service also writes the heads into its log, once an hour.`,
		Example: `  till audit head > heads.txt`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var only till.ID
			var err error
			if client != "" {
				if only, err = cli.ParseID(client, "client"); err != nil {
					return err
				}
			}
			return cli.WithDatabase(cmd.Context(), database, func(s *store.Store) error {
				w := bufio.NewWriter(cmd.OutOrStdout())
				err := books.EachHead(cmd.Context(), s, func(h books.AuditHead) bool {
					switch {
					case client != "" && h.Client != only:
					case asJSON:
						cli.PrintJSON(w, map[string]any{"client_id": h.Client.String(), "sequence": h.Sequence, "hash": hex.EncodeToString(h.Hash[:]), "head": h.String()})
					default:
						cli.PrintLine(w, h.String())
					}
					return true
				})
				if err != nil {
					return err
				}
				return w.Flush() // also says what could not be written before
			})
		},
	}
	cmd.Flags().StringVar(&client, "client", "", "only this client, by its id (default all)")
	cli.AddDatabase(cmd, &database)
	cli.AddJSON(cmd, &asJSON)
	return cmd
}

// auditJSON is an audit row as the commands print it.
type auditJSON struct {
	Sequence  int64   `json:"sequence"`
	At        string  `json:"at"`
	Actor     string  `json:"actor"`
	Action    string  `json:"action"`
	SubjectID *string `json:"subject_id"`
	Detail    string  `json:"detail"`
	Cause     *string `json:"cause"`
	Evidence  *string `json:"evidence"` // SHA-256
}

func auditOut(a *store.AuditRow) auditJSON {
	return auditJSON{a.Sequence, a.At.String(), a.Actor, a.Action, cli.IDOrNull(a.SubjectID), a.Detail, cli.TextOrNull(a.Cause),
		cli.TextOrNull(hex.EncodeToString(a.Evidence))}
}

func auditLine(a *store.AuditRow) string {
	line := fmt.Sprintf("%d  %s  %s  %s", a.Sequence, a.At, a.Actor, a.Action)
	if !a.SubjectID.IsZero() {
		line += "  " + a.SubjectID.String()
	}
	if a.Detail != "" {
		line += "  " + a.Detail
	}
	if a.Cause != "" {
		line += "  (" + a.Cause + ")"
	}
	if len(a.Evidence) > 0 {
		line += "  " + cli.Digest(a.Evidence)
	}
	return line
}
