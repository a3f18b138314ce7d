package money

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

func NewAudit() *cobra.Command {
	var client till.ID // unset: the installation
	var f books.AuditFilter
	var span cli.Period
	var house bool
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
	}
	cli.AddClient(cmd, &client, "the client's id")
	cmd.Flags().BoolVar(&house, "house", false, "the house's own log instead of a client's")
	cli.AddAnyID(cmd, &f.Subject, "subject", "payment, payout or endpoint", "only rows about this payment, payout or endpoint")
	cli.AddPeriod(cmd, &span, "only rows", "UTC")
	cmd.MarkFlagsOneRequired("client", "house")
	cmd.MarkFlagsMutuallyExclusive("client", "house")
	cmd.AddCommand(newAuditHead())
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		var err error
		if f.From, f.To, err = span.Read(time.UTC); err != nil {
			return err
		}
		w := bufio.NewWriter(c.OutOrStdout())
		err = books.EachAudit(c.Context(), c.Store, client, f, func(a *store.AuditRow) error {
			if c.JSON {
				return cli.PrintJSON(w, auditObject(a))
			}
			_, err := cli.PrintLine(w, auditLine(a))
			return err
		})
		if err != nil {
			return err
		}
		return w.Flush()
	})
}

func newAuditHead() *cobra.Command {
	var only till.ID
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
	}
	cli.AddAnyClient(cmd, &only, "only this client, by its id (default all)")
	return cli.OnDatabase(cmd, func(c *cli.Call) error {
		w := bufio.NewWriter(c.OutOrStdout())
		err := books.EachHead(c.Context(), c.Store, func(h books.AuditHead) bool {
			switch {
			case !only.IsZero() && h.Client != only:
			case c.JSON:
				cli.PrintJSON(w, cli.Object{"client_id", h.Client, "hash", hex.EncodeToString(h.Hash[:]), "head", h.String(), "sequence", h.Sequence})
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
}

// auditObject is an audit row. The evidence is its SHA-256.
func auditObject(a *store.AuditRow) cli.Object {
	return cli.Object{"sequence", a.Sequence, "at", a.At, "actor", a.Actor, "action", a.Action, "subject_id", a.SubjectID, "detail", a.Detail,
		"cause", cli.OrNull(a.Cause), "evidence", a.Evidence}
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
